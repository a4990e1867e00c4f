//! Requests with the forged addresses of unreachable hosts.

use std::time::Duration;

use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;

use super::{ABSENT, echoing, ethernet, go_on_beside};
use crate::raknet::silence::{forged_ping, forged_ping_v6, forged_salt, forged_salt_v6};
use crate::support::{Net, PORT, Tested, join, run};

/// Sends a request to machine 2 every `pause`, from one unreachable host after another.
async fn forge(net: std::rc::Rc<Net>, pause: Duration, request: fn(u8, u8) -> Vec<u8>) {
    loop {
        for from in ABSENT..=u8::MAX - 1 {
            net.forge(2, request(from, 2));
            tokio::time::sleep(pause).await;
        }
    }
}

fn a_server_continues_while_requests_are_forged<P: Tested>(pause: Duration, request: fn(u8, u8) -> Vec<u8>) {
    run(async {
        let (net, client, server) = ethernet::<P>();
        let connection = echoing(&client, &server).await;
        go_on_beside(&connection, forge(net.into(), pause, request)).await;
        let unsent = server.handle.unsent();
        assert!(unsent.unanswered + unsent.rate_limited > 0, "{unsent:?}");
        assert_eq!(unsent.backed_off, 0, "no datagram of the connection was backed off");
    });
}

#[test]
fn a_server_survives_two_forged_requests_per_second() {
    a_server_continues_while_requests_are_forged::<RakNet>(Duration::from_millis(500), forged_ping);
    a_server_continues_while_requests_are_forged::<GameProtocol>(Duration::from_millis(500), forged_salt);
}

#[test]
fn a_server_survives_continuous_forged_requests() {
    a_server_continues_while_requests_are_forged::<RakNet>(Duration::from_millis(1), forged_ping);
    a_server_continues_while_requests_are_forged::<GameProtocol>(Duration::from_millis(1), forged_salt);
}

#[test]
fn a_server_survives_forged_requests_over_ipv6() {
    a_server_continues_while_requests_are_forged::<RakNet>(Duration::from_millis(100), forged_ping_v6);
    a_server_continues_while_requests_are_forged::<GameProtocol>(Duration::from_millis(100), forged_salt_v6);
}

fn clients_are_admitted_while_requests_are_forged<P: Tested>(request: fn(u8, u8) -> Vec<u8>) {
    run(async {
        let (mut net, _client, server) = ethernet::<P>();
        let newcomers: Vec<_> = (0..4).map(|_| net.client::<P, 1, 48, 128, 4>()).collect();
        let forging = tokio::task::spawn_local(forge(net.into(), Duration::from_millis(300), request));
        for newcomer in newcomers {
            let (here, there) = tokio::join!(join(&newcomer, server.address), server.handle.accept());
            tokio::task::spawn_local(crate::support::echo(there));
            crate::support::round_trips(&here, 10, 40).await;
        }
        assert!(!forging.is_finished());
        forging.abort();
    });
}

#[test]
fn new_clients_connect_while_pings_are_forged() {
    clients_are_admitted_while_requests_are_forged::<RakNet>(forged_ping);
}

#[test]
fn new_clients_connect_while_salts_are_forged() {
    clients_are_admitted_while_requests_are_forged::<GameProtocol>(forged_salt);
}

#[test]
fn a_broadcast_ping_is_answered() {
    run(async {
        let (mut net, client, server) = ethernet::<RakNet>();
        let _connection = echoing(&client, &server).await;
        // The server has to request the hardware address of the client.
        let seeker = net.client::<RakNet, 1, 24, 128, 4>();
        let forging = tokio::task::spawn_local(forge(net.into(), Duration::from_millis(500), forged_ping));
        let all = (std::net::Ipv4Addr::BROADCAST, PORT).into();
        loop {
            let limit = embassy_time::Duration::from_millis(300);
            if let Ok(pong) = seeker.handle.discover(all, limit).await {
                assert_eq!(pong.from(), server.address);
                break;
            }
        }
        assert!(!forging.is_finished());
        forging.abort();
    });
}
