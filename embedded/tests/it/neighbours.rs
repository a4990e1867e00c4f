//! Unreachable hosts on an Ethernet, and connections that continue meanwhile.
//!
//! The tests make many round trips. They would exceed their time limit if every round trip waited for a request for
//! the hardware address of an unreachable host.

mod beside_tcp;
mod changes;
mod dialling;
mod flood;
mod forged;

use rakwire::endpoint::Protocol;
use rakwire_embassy::{Connection, Handle};

use crate::support::{Machine, Medium, Net, Tested, Wire, connect, echo, round_trips};

/// The number of round trips in a test.
const MANY: u32 = 300;
/// The number of an address without a machine.
const ABSENT: u8 = 99;

/// Creates a network with a client (machine 1), which has memory for eight connections, and a server (machine 2).
fn ethernet<P: Tested>() -> (Net, Machine<P>, Machine<P>) {
    let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
    let (client, server) = (net.client::<P, 8, 192, 128, 8>(), net.server::<P, 4, 96, 128, 8>());
    (net, client, server)
}

/// Connects the two machines; the server echoes everything.
async fn echoing<P: Tested>(client: &Machine<P>, server: &Machine<P>) -> Connection<'static, P> {
    let (here, there) = connect(client, server).await;
    tokio::task::spawn_local(echo(there));
    here
}

/// Connects to an address again and again.
async fn dial<P: Protocol>(handle: Handle<'static, P>, to: std::net::SocketAddr) {
    loop {
        if handle.connect(to).await.is_ok() {
            panic!("connected to an unreachable host");
        }
    }
}

/// Makes round trips while another task runs.
async fn go_on_beside<P: Tested>(
    connection: &Connection<'static, P>,
    other: impl Future<Output = ()> + 'static,
) {
    let other = tokio::task::spawn_local(other);
    for _ in 0..MANY / 10 {
        round_trips(connection, 10, 40).await;
        // The other task runs first.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(!other.is_finished());
    other.abort();
}
