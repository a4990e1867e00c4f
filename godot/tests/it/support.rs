//! A server and its clients, polled one after another.

use std::time::{Duration, Instant};

use rakwire_godot::{ClientSettings, Notice, Packet, ServerSettings, Session, Status, Value};

/// The time limit of each wait in a test.
const DEADLINE: Duration = Duration::from_secs(120);

/// A session, and the notices that it has returned so far.
pub(crate) struct Side {
    pub(crate) session: Session,
    pub(crate) notices: Vec<Notice>,
}

impl Side {
    fn new(session: Session) -> Self {
        Self { session, notices: Vec::new() }
    }

    fn poll(&mut self) {
        let notices = self.session.poll();
        self.notices.extend(notices);
    }

    pub(crate) fn id(&self) -> i32 {
        self.session.unique_id()
    }

    /// Returns the peers that have connected, in the order of their connections.
    pub(crate) fn joined(&self) -> Vec<i32> {
        self.notices
            .iter()
            .filter_map(|notice| if let Notice::PeerConnected(id) = notice { Some(*id) } else { None })
            .collect()
    }

    /// Returns the peers that have disconnected, in the order of their disconnections.
    pub(crate) fn left(&self) -> Vec<i32> {
        self.notices
            .iter()
            .filter_map(|notice| if let Notice::PeerDisconnected(id) = notice { Some(*id) } else { None })
            .collect()
    }

    /// Reads all packets, and returns their senders and payloads.
    pub(crate) fn take_all(&mut self) -> Vec<(i32, Vec<u8>)> {
        std::iter::from_fn(|| self.session.take())
            .map(|packet| (packet.from(), packet.payload().to_vec()))
            .collect()
    }
}

/// A server on loopback and its clients.
pub(crate) struct Game {
    pub(crate) server: Side,
    pub(crate) clients: Vec<Side>,
}

/// Returns settings with these options, for a server bound to loopback.
pub(crate) fn server_settings(options: &[(&str, Value)]) -> ServerSettings {
    let mut settings = ServerSettings::default();
    settings.set("bind_address", &text("127.0.0.1")).expect("an address");
    options.iter().for_each(|(name, value)| settings.set(name, value).expect("an option"));
    settings
}

pub(crate) fn client_settings(options: &[(&str, Value)]) -> ClientSettings {
    let mut settings = ClientSettings::default();
    options.iter().for_each(|(name, value)| settings.set(name, value).expect("an option"));
    settings
}

pub(crate) fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

impl Game {
    /// Creates a server for up to `max_clients` clients, without clients.
    pub(crate) fn with(max_clients: i64, options: &[(&str, Value)]) -> Self {
        let server = Session::server(0, max_clients, server_settings(options)).expect("a server");
        Self { server: Side::new(server), clients: Vec::new() }
    }

    /// Creates a server with `clients` connected clients.
    pub(crate) fn new(clients: usize) -> Self {
        let mut game = Self::with(8, &[]);
        for _ in 0..clients {
            game.join(&[]);
            game.until("the client is connected", |game| {
                let client = game.clients.last().expect("a client");
                client.session.status() == Status::Connected && game.server.joined().contains(&client.id())
            });
        }
        game
    }

    pub(crate) fn port(&self) -> i64 {
        self.server.session.local_addr().port().into()
    }

    /// Adds a client that starts connecting.
    pub(crate) fn join(&mut self, options: &[(&str, Value)]) {
        let session =
            Session::client("127.0.0.1", self.port(), client_settings(options)).expect("an attempt");
        self.clients.push(Side::new(session));
    }

    /// Polls all sessions until `condition` holds. Panics after [`DEADLINE`].
    pub(crate) fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        let begin = Instant::now();
        while !condition(self) {
            assert!(begin.elapsed() < DEADLINE, "timed out before {what}");
            self.server.poll();
            self.clients.iter_mut().for_each(Side::poll);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Polls all sessions until a client is disconnected, and returns the reason.
    pub(crate) fn end_of(&mut self, client: usize) -> String {
        self.until("the client is disconnected", |game| {
            game.clients[client].session.status() == Status::Disconnected
        });
        self.clients[client].session.end_reason().expect("a reason").to_owned()
    }

    /// Polls all sessions until a client has `count` packets, and reads them.
    pub(crate) fn packets_of(&mut self, client: usize, count: usize) -> Vec<(i32, Vec<u8>)> {
        self.until("the packets arrive at the client", |game| {
            game.clients[client].session.available() >= count
        });
        self.clients[client].take_all()
    }

    /// Polls all sessions until the server has `count` packets, and reads them.
    pub(crate) fn packets_of_server(&mut self, count: usize) -> Vec<Packet> {
        self.until("the packets arrive at the server", |game| game.server.session.available() >= count);
        std::iter::from_fn(|| self.server.session.take()).collect()
    }
}
