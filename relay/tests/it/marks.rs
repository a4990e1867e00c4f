//! The table of marks on WebSocket and WebTransport. Unit tests use it for data channels and for the front.

use std::net::SocketAddr;

use rakwire_relay::DropReason;

use crate::support::{Client, Running, Server, config, game, repeated};
use crate::webtransport::Session;

#[path = "../marks/mod.rs"]
mod table;

use table::{Mark, MarkOutcome, marks};

enum Player {
    WebSocket(Box<Client>),
    WebTransport(Box<Session>),
}

impl Player {
    async fn connect(relay: &Running, transport: &str) -> Self {
        match transport {
            "WebSocket" => Self::WebSocket(Box::new(relay.client().await)),
            _ => Self::WebTransport(Box::new(Session::game(relay.address).await)),
        }
    }

    async fn send(&mut self, datagram: &[u8]) {
        match self {
            Self::WebSocket(client) => client.send(datagram).await,
            Self::WebTransport(session) => session.send(datagram),
        }
    }

    async fn receive(&mut self) -> Vec<u8> {
        match self {
            Self::WebSocket(client) => client.receive().await,
            Self::WebTransport(session) => session.receive().await.into(),
        }
    }
}

/// Returns the number of datagrams dropped as forged headers, and as reserved bytes.
fn drops(relay: &Running) -> [u64; 2] {
    [DropReason::ForgedHeader, DropReason::Reserved].map(|reason| relay.snapshot().drops(reason))
}

/// Returns true if a client's mark reaches the game server before the client's next datagram. Also returns the source
/// address of the client's flow.
async fn reaches_server(player: &mut Player, server: &Server, mark: &Mark, end: &[u8]) -> (bool, SocketAddr) {
    let mut arrived = Vec::new();
    let sent = async || {
        player.send(&mark.datagram).await;
        player.send(end).await;
    };
    let ended = async {
        loop {
            let (datagram, from) = server.receive().await;
            if datagram.ends_with(end) {
                break from;
            }
            arrived.push((datagram, from));
        }
    };
    let flow = repeated(sent, ended).await;
    // A PROXY header of the relay may precede the mark, and earlier datagrams of other clients may still arrive.
    let is_it =
        |(datagram, from): &(Vec<u8>, SocketAddr)| *from == flow && datagram.ends_with(&mark.datagram);
    (arrived.iter().any(is_it), flow)
}

/// Returns true if a mark of the game server reaches the client.
async fn reaches_client(
    player: &mut Player,
    server: &Server,
    flow: SocketAddr,
    mark: &Mark,
    end: &[u8],
) -> bool {
    let mut has_passed = false;
    let sent = async || {
        server.send(&mark.datagram, flow).await;
        server.send(end, flow).await;
    };
    let ended = async {
        loop {
            let datagram = player.receive().await;
            if datagram == end {
                break;
            }
            has_passed |= datagram == mark.datagram;
        }
    };
    repeated(sent, ended).await;
    has_passed
}

async fn check(relay: &Running, server: &Server, transport: &str, mark: &Mark) {
    let case = format!("{} by {transport}", mark.name);
    let mut player = Player::connect(relay, transport).await;
    let (to_server, to_client) = (mark.to_server(transport), mark.to_client(transport));
    let before = drops(relay);
    // The mark is sent twice: before the game server has answered, as after a restart of the server, and after its
    // answer.
    for is_answered in [false, true] {
        let end = format!("{case}, answered: {is_answered}");
        let (has_passed, flow) = reaches_server(&mut player, server, mark, end.as_bytes()).await;
        assert_eq!(has_passed, to_server == MarkOutcome::Passes, "to the server, {end}");
        repeated(async || server.send(b"answer", flow).await, player.receive()).await;
        let between = drops(relay);
        assert_eq!(between[0] > before[0], to_server == MarkOutcome::Forged, "to the server, {end}");
        if is_answered {
            let has_passed = reaches_client(&mut player, server, flow, mark, end.as_bytes()).await;
            assert_eq!(has_passed, to_client == MarkOutcome::Passes, "to the client, {end}");
            assert_eq!(
                drops(relay)[1] > between[1],
                to_client == MarkOutcome::Reserved,
                "to the client, {end}"
            );
        }
    }
}

#[tokio::test]
async fn marked_datagrams_have_the_outcome_of_the_table() {
    for reads_headers in [true, false] {
        let server = Server::bind().await;
        let mut config = config(server.address());
        game(&mut config).proxy_protocol = reads_headers;
        let relay = Running::start(config).await;
        for mark in marks().iter().filter(|mark| mark.reads_headers == reads_headers) {
            for transport in ["WebSocket", "WebTransport"] {
                check(&relay, &server, transport, mark).await;
            }
        }
        relay.stop().await;
    }
}
