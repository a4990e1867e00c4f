//! TCP connections on an interface that also requests the hardware addresses of unreachable hosts.

use std::time::Duration;

use rakwire::raknet::{Delivery, RakNet};
use rakwire_embassy::tcp::{Connection, Memory};

use super::{ABSENT, dial, echoing, ethernet, go_on_beside};
use crate::raknet::silence::{forged_ping, forged_syn};
use crate::support::{Medium, Net, PORT, Wire, join, message, round_trips, run};

fn memory() -> &'static mut Memory<1_024, 512, 256> {
    Box::leak(Box::new(Memory::new()))
}

async fn exchange(mut here: Connection<'static>, mut there: Connection<'static>) {
    for number in 0..100 {
        here.send(&message(number, 40), Delivery::RELIABLE_ORDERED).await.expect("an open connection");
        assert_eq!(there.recv().await, Some(&message(number, 40)[..]));
    }
}

#[test]
fn tcp_connects_despite_unreachable_hosts_and_forged_pings() {
    run(async {
        let (mut net, _client, server) = ethernet::<RakNet>();
        let (there, address) = net.machine_without_peer();
        let here = net.stack_of(2);
        for number in 0..2 {
            let absent = ([10, 0, 0, ABSENT + number], PORT).into();
            tokio::task::spawn_local(dial(server.handle, absent));
        }
        tokio::task::spawn_local(async move {
            for from in (ABSENT + 2..=u8::MAX - 1).cycle() {
                net.forge(2, forged_ping(from, 2));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        // Other sockets request hardware addresses before the TCP connection requests that of its server.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let connecting = Connection::connect(here, memory(), (address, PORT).into());
        let (here, there) = tokio::join!(connecting, Connection::accept(there, memory(), PORT));
        exchange(here.expect("an open connection"), there.expect("an open connection")).await;
    });
}

#[test]
fn peers_connect_while_tcp_dials_an_unreachable_host() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        let client = net.client::<RakNet, 2, 96, 128, 8>();
        let stack = net.stack_of(1);
        let dialling = tokio::task::spawn_local(async move {
            let absent = ([10, 0, 0, ABSENT], PORT).into();
            while Connection::connect(stack, memory(), absent).await.is_err() {}
        });
        // The request for the unreachable host is sent first.
        tokio::time::sleep(Duration::from_millis(300)).await;
        for _ in 0..3 {
            let server = net.server::<RakNet, 2, 96, 128, 8>();
            let (here, there) = tokio::join!(join(&client, server.address), server.handle.accept());
            tokio::task::spawn_local(crate::support::echo(there));
            round_trips(&here, 100, 40).await;
            here.disconnect().await;
        }
        assert!(!dialling.is_finished());
        dialling.abort();
    });
}

#[test]
fn a_connection_survives_tcp_dialling_an_unreachable_host() {
    run(async {
        let (net, client, server) = ethernet::<RakNet>();
        let connection = echoing(&client, &server).await;
        let stack = net.stack_of(1);
        let dialling = async move {
            let absent = ([10, 0, 0, ABSENT], PORT).into();
            while Connection::connect(stack, memory(), absent).await.is_err() {}
        };
        go_on_beside(&connection, dialling).await;
    });
}

#[test]
fn a_client_connects_after_an_incomplete_tcp_handshake_times_out() {
    run(async {
        let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
        let ((here, _), (there, address)) = (net.machine_without_peer(), net.machine_without_peer());
        let accepting = tokio::task::spawn_local(Connection::accept(there, memory(), PORT));
        // Wait until the server listens.
        tokio::time::sleep(Duration::from_millis(50)).await;
        net.forge(2, forged_syn(ABSENT, 2));
        tokio::time::sleep(Duration::from_millis(50)).await;
        let here = loop {
            // The server refuses connections until the incomplete handshake times out.
            if let Ok(connection) = Connection::connect(here, memory(), (address, PORT).into()).await {
                break connection;
            }
            tokio::task::yield_now().await;
        };
        exchange(here, accepting.await.expect("no panic").expect("an open connection")).await;
    });
}
