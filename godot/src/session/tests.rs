//! Tests that inspect the queues and links of sessions.

use rakwire_native::Options;
use rakwire_native::polled::Queued;

use super::*;
use crate::options::{ServerSettings, Value};
use crate::packet::Transfer;

/// Calls `step` until it returns true.
fn until(what: &str, mut step: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if step() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("timed out before {what}");
}

fn client_at(server: SocketAddr) -> Session {
    Session::client("127.0.0.1", server.port().into(), ClientSettings::default()).expect("an attempt")
}

/// Returns a server and two connected clients.
fn game() -> (Session, [Session; 2]) {
    let mut settings = ServerSettings::default();
    settings.set("bind_address", &Value::Text("127.0.0.1".to_owned())).expect("an address");
    let mut server = Session::server(0, 2, settings).expect("a server");
    let mut clients = [(); 2].map(|()| client_at(server.local_addr()));
    until("both clients are connected", || {
        server.poll();
        clients.iter_mut().for_each(|client| drop(client.poll()));
        clients.iter().all(|client| client.status() == Status::Connected)
    });
    (server, clients)
}

/// A plain RakNet server, which assigns no id.
struct Other {
    endpoint: polled::Endpoint<RakNet>,
    connection: Option<ConnectionId>,
}

impl Other {
    fn new() -> Self {
        let options = Options::server(1).expect("entropy");
        Self { endpoint: polled::Endpoint::bind("127.0.0.1:0", options).expect("a port"), connection: None }
    }

    fn poll(&mut self) {
        self.endpoint.update();
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Connected { id, .. } = event {
                self.connection = Some(id);
            }
        }
    }

    /// Sends a message repeatedly until the send memory is full.
    fn send(&mut self, message: &[u8]) {
        while let Some(id) = self.connection
            && self.endpoint.send(id, message, Delivery::RELIABLE).is_ok()
        {}
    }
}

#[test]
fn a_packet_for_one_peer_may_be_longer_than_another_peer_accepts() {
    let (mut server, clients) = game();
    let [narrow, wide] = clients.each_ref().map(Session::unique_id);
    server.links.get_mut(&narrow).expect("a link").max_len = 51;
    assert_eq!(server.max_packet_size(), 50);
    let transfer = Transfer::default();
    server.put(wide, transfer, &[7; 100]).expect("sent");
    for target in [narrow, 0, -wide] {
        let sent = server.put(target, transfer, &[7; 51]);
        assert!(matches!(sent, Err(Error::TooLong { length: 51, most: 50 })), "{target}: {sent:?}");
    }
    server.put(0, transfer, &[7; 50]).expect("sent");
}

#[test]
fn a_client_without_an_id_queues_a_limited_number_of_packets() {
    let mut other = Other::new();
    let mut client = client_at(other.endpoint.local_addr());
    let message = vec![0x86; 100_000];
    until("the queue is full", || {
        other.poll();
        other.send(&message);
        client.poll();
        client.queued_bytes >= MAX_QUEUED
    });
    for _ in 0..100 {
        other.poll();
        other.send(&message);
        client.poll();
        assert!(client.queued_bytes < MAX_QUEUED + 2 * message.len());
    }
    until("the client gives up", || {
        other.poll();
        client.poll();
        client.status() == Status::Disconnected
    });
    assert_eq!((client.queue.len(), client.queued_bytes), (0, 0));
    until("the connection is closed", || {
        other.poll();
        client.poll();
        client.links.is_empty()
    });
    assert!(client.end_reason().expect("a reason").contains("not a RakwirePeer"));
}

#[test]
fn each_queued_packet_counts_64_bytes_of_overhead() {
    let (mut server, [mut client, _]) = game();
    for _ in 0..10 {
        client.put(1, Transfer::default(), b"x").expect("sent");
    }
    until("the server has received the packets", || {
        client.poll();
        server.poll();
        server.available() == 10
    });
    assert_eq!(server.queued_bytes, 10 * (2 + 64));
    while server.take().is_some() {}
    assert_eq!(server.queued_bytes, 0);
}

#[test]
fn a_client_that_disconnects_before_its_id_is_assigned_never_gets_an_id() {
    let mut other = Other::new();
    let mut client = client_at(other.endpoint.local_addr());
    until("the connection is open", || {
        other.poll();
        client.poll();
        !client.links.is_empty() && other.connection.is_some()
    });
    // The client is still closing the connection when the welcome message arrives.
    client.disconnect(SERVER, false).expect("the server");
    client.receive(client.links[&SERVER].connection, Delivery::RELIABLE_ORDERED, welcome(9).to_vec());
    assert_eq!((client.status(), client.unique_id(), client.dropped().leaving), (Status::Connecting, 0, 1));
    let mut notices = Vec::new();
    until("the client is disconnected", || {
        other.poll();
        notices.extend(client.poll());
        client.status() == Status::Disconnected
    });
    assert_eq!(notices, []);
    let Role::Client(attempt) = &client.role else { panic!("not a client") };
    assert_eq!(attempt.welcome_until, None);
}

#[test]
fn a_refused_packet_closes_the_connection_with_a_notice_and_a_reason() {
    let (mut server, [mut client, mut second]) = game();
    let id = client.unique_id();
    let link = server.links.get_mut(&id).expect("a link");
    // While the send memory is full, packets are queued without a check. The next packet has an invalid id and is
    // refused later.
    let large = vec![0x86; 100_000];
    while link.outgoing.is_empty() {
        let sent = link.outgoing.send(&mut server.endpoint, &large, Delivery::RELIABLE_ORDERED);
        assert!(matches!(sent, Ok(Queued::Sent(_) | Queued::Waiting)), "{sent:?}");
    }
    let sent = link.outgoing.send(&mut server.endpoint, &[0][..], Delivery::RELIABLE_ORDERED);
    assert_eq!(sent, Ok(Queued::Waiting));
    let mut notices = Vec::new();
    until("the peer is disconnected", || {
        client.poll();
        second.poll();
        notices.extend(server.poll());
        notices.contains(&Notice::PeerDisconnected(id))
    });
    notices.retain(|notice| !matches!(notice, Notice::PeerConnected(_)));
    let failed = Notice::SendFailed { peer: id, error: SendError::ReservedId };
    assert_eq!(notices, [failed, Notice::PeerDisconnected(id)]);
    assert!(server.end_reason().expect("a reason").contains("reserves"));
}
