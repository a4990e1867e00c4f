//! Peers with keys for secure connections.

use rakwire::raknet::{Config, ConnectOptions, ConnectionId, Security};
use rakwire::secure::{ServerIdentity, ServerTrust, StaticKey};
use rakwire::sim::Conditions;

use super::raknet::{Net, OwnedEvent, client_config, peer, server_config};

/// Returns the key of the server.
pub(crate) fn server_key() -> StaticKey {
    StaticKey::from_bytes([0x5E; 32])
}

/// Returns the key of a client with an identity.
pub(crate) fn client_key() -> StaticKey {
    StaticKey::from_bytes([0xC1; 32])
}

/// Returns the configuration of a server that offers security; `ask` sets its requirements.
pub(crate) fn secure_server(ask: impl FnOnce(&mut ServerIdentity)) -> Config {
    let mut identity = ServerIdentity::new(server_key());
    ask(&mut identity);
    let mut security = Security::new([0x11; 32]);
    security.server = Some(identity);
    let mut config = server_config();
    config.security = Some(security);
    config
}

pub(crate) fn requiring_server() -> Config {
    secure_server(|identity| identity.requires_security = true)
}

pub(crate) fn secure_client(identity: Option<StaticKey>) -> Config {
    let mut security = Security::new([0x22; 32]);
    security.identity = identity;
    let mut config = client_config();
    config.security = Some(security);
    config
}

/// Returns the options of a secure attempt with `trust`.
pub(crate) fn trusting(trust: ServerTrust) -> ConnectOptions<'static> {
    ConnectOptions { trust: Some(trust), ..ConnectOptions::default() }
}

pub(crate) fn pinned() -> ConnectOptions<'static> {
    trusting(ServerTrust::Key(server_key().public()))
}

pub(crate) fn net(client: Config, server: Config, conditions: Conditions, seed: u64) -> Net {
    Net::with(peer(client), peer(server), conditions, seed)
}

impl Net {
    /// Starts an attempt with `options`; returns its id.
    pub(crate) fn dial(&mut self, options: &ConnectOptions<'_>) -> ConnectionId {
        let to = self.pair.b_address;
        self.pair.a.connect_with(self.pair.now, to, options).expect("a free slot")
    }

    /// Opens a connection with `options`; returns its ids at both peers.
    pub(crate) fn open(&mut self, options: &ConnectOptions<'_>) -> (ConnectionId, ConnectionId) {
        let client = self.dial(options);
        let opened = |events: &[OwnedEvent]| {
            events
                .iter()
                .find_map(|event| if let OwnedEvent::Connected(id) = event { Some(*id) } else { None })
        };
        self.run_until(core::time::Duration::from_secs(60), |net| {
            opened(&net.client).is_some() && opened(&net.server).is_some()
        });
        let server = opened(&self.server);
        assert_eq!(opened(&self.client), Some(client), "{:?}", self.client);
        self.client.clear();
        self.server.clear();
        (client, server.expect("an open connection at the server"))
    }
}
