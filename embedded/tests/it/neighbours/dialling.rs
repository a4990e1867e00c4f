//! Attempts to connect to unreachable hosts.

use std::net::{Ipv4Addr, SocketAddr};

use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;

use super::{ABSENT, dial, echoing, ethernet, go_on_beside};
use crate::support::{PORT, Tested, ipv6, round_trips, run};

fn absent() -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, ABSENT), PORT).into()
}

fn continues_during_an_attempt_to<P: Tested>(absent: SocketAddr) {
    run(async {
        let (_net, client, server) = ethernet::<P>();
        let connection = echoing(&client, &server).await;
        go_on_beside(&connection, dial(client.handle, absent)).await;
        let unsent = client.handle.unsent();
        assert!(unsent.unanswered + unsent.backed_off > 0, "{unsent:?}");
    });
}

#[test]
fn a_raknet_connection_continues_during_an_attempt_to_an_unreachable_host() {
    continues_during_an_attempt_to::<RakNet>(absent());
}

#[test]
fn a_game_protocol_connection_continues_during_an_attempt_to_an_unreachable_host() {
    continues_during_an_attempt_to::<GameProtocol>(absent());
}

#[test]
fn a_connection_continues_during_an_attempt_to_an_unreachable_ipv6_host() {
    continues_during_an_attempt_to::<RakNet>((ipv6(ABSENT), PORT).into());
}

#[test]
fn an_ipv6_connection_continues_during_an_attempt_to_an_unreachable_host() {
    run(async {
        let (_net, client, mut server) = ethernet::<RakNet>();
        server.address = (ipv6(2), PORT).into();
        let connection = echoing(&client, &server).await;
        go_on_beside(&connection, dial(client.handle, (ipv6(ABSENT), PORT).into())).await;
    });
}

#[test]
fn a_connection_continues_while_the_gateway_is_absent() {
    run(async {
        let mut net = crate::support::Net::with_medium(
            crate::support::Wire::losing(0),
            crate::support::Medium::Ethernet,
        );
        net.gateway = Some(Ipv4Addr::new(10, 0, 0, ABSENT));
        let (client, server) = (net.client::<RakNet, 2, 96, 128, 8>(), net.server::<RakNet, 2, 96, 128, 8>());
        let connection = echoing(&client, &server).await;
        go_on_beside(&connection, dial(client.handle, ([192, 0, 2, 1], PORT).into())).await;
        let unsent = client.handle.unsent();
        assert_eq!(unsent.no_route, 0);
        assert!(unsent.unanswered + unsent.backed_off > 0, "{unsent:?}");
    });
}

#[test]
fn a_connection_continues_without_a_gateway() {
    run(async {
        let (_net, client, server) = ethernet::<RakNet>();
        let connection = echoing(&client, &server).await;
        go_on_beside(&connection, dial(client.handle, ([192, 0, 2, 1], PORT).into())).await;
        assert!(client.handle.unsent().no_route > 0);
    });
}

#[test]
fn a_present_mesh_member_is_reached_despite_four_absent_members() {
    run(async {
        let (mut net, client, server) = ethernet::<RakNet>();
        let connection = echoing(&client, &server).await;
        let member = net.server::<RakNet, 2, 96, 128, 8>();
        // The requests for the unreachable hosts are sent first.
        let absent = (0..4).map(|number| ([10, 0, 0, ABSENT + number], PORT).into());
        let dialling: Vec<_> =
            absent.map(|address| tokio::task::spawn_local(dial(client.handle, address))).collect();
        tokio::task::yield_now().await;
        let reached = tokio::task::spawn_local(async move {
            crate::support::join(&client, member.address).await;
        });
        while !reached.is_finished() {
            round_trips(&connection, 10, 40).await;
            tokio::task::yield_now().await;
        }
        round_trips(&connection, 100, 40).await;
        assert!(dialling.iter().all(|task| !task.is_finished()));
    });
}

#[test]
fn peers_that_dial_each_other_connect_despite_absent_candidates() {
    run(async {
        let mut net = crate::support::Net::with_medium(
            crate::support::Wire::losing(0),
            crate::support::Medium::Ethernet,
        );
        let (one, other) = (net.server::<RakNet, 4, 96, 128, 8>(), net.server::<RakNet, 4, 96, 128, 8>());
        for (machine, number) in [(&one, 0), (&other, 2)] {
            for candidate in [ABSENT + number, ABSENT + number + 1] {
                tokio::task::spawn_local(dial(machine.handle, ([10, 0, 0, candidate], PORT).into()));
            }
        }
        let (there, here) = tokio::join!(
            crate::support::join(&one, other.address),
            crate::support::join(&other, one.address)
        );
        tokio::task::spawn_local(crate::support::echo(there));
        round_trips(&here, 100, 40).await;
    });
}
