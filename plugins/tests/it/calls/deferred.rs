//! Calls that their handler has left pending.

use rakwire::Instant;
use rakwire::endpoint::Plugin;
use rakwire::raknet::{DisconnectReason, RakNet};
use rakwire_plugins::calls::RemoteCalls;

use super::{Add, Client, ORDERED, Queries, TIMEOUT, receive, transmit};
use crate::support::connections;

#[test]
fn a_pending_call_of_a_closed_connection_cannot_be_answered() {
    let id = connections::<RakNet>(1)[0];
    let mut server = RemoteCalls::<RakNet, Queries, 2, 4, 128>::new(Queries::default());
    server.register_deferred::<Add, Add>().expect("enough space");
    let mut client = Client::new(());
    client.call::<Add>(id, &(1, 1), TIMEOUT, ORDERED).expect("enough space");
    transmit(&mut client, Instant::ZERO).iter().for_each(|call| receive(&mut server, id, call));
    let (pending, _) = server.context.0[0];
    Plugin::<RakNet>::on_disconnected(&mut server, Instant::ZERO, id, DisconnectReason::Lost);
    assert!(!server.answer::<Add>(pending, &2));
}
