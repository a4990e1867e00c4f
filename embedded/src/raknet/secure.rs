//! The identity of the remote peer of a secure connection.

use rakwire::raknet::{Hook, RakNet, SecurePeer};

use crate::connection::Connection;

impl<H: Hook<RakNet>> Connection<'_, RakNet, H> {
    /// Returns the identity that the remote peer of a secure connection has proved. Returns `None` if the connection
    /// is not secure; it may also return `None` after the connection is closed.
    ///
    /// [`Config::security`](rakwire::raknet::Config::security) makes a peer secure. A client sets the server that it
    /// trusts in [`ConnectOptions::trust`](rakwire::raknet::ConnectOptions::trust).
    ///
    /// ```
    /// use embassy_futures::join::join;
    /// use rakwire::raknet::{Config, ConnectOptions, RakNet, SecurePeer, Security};
    /// use rakwire::secure::{ServerIdentity, ServerTrust, StaticKey};
    ///
    /// /// The configuration of a peer that can open secure connections.
    /// fn secure(rng: &mut impl rand_core::RngCore) -> Config {
    ///     let mut config = Config::new(rakwire_embassy::entropy(rng));
    ///     config.security = Some(Security::new(rakwire_embassy::entropy(rng)));
    ///     config
    /// }
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let mut config = secure(&mut loopback::Rng);
    /// # let key = StaticKey::from_bytes([9; 32]);
    /// # let server_key = key.public();
    /// # config.max_incoming = 1;
    /// # if let Some(security) = &mut config.security { security.server = Some(ServerIdentity::new(key)) }
    /// # let server = loopback::peer_with::<RakNet>(stack, 19_132, config);
    /// # let client = loopback::peer_with::<RakNet>(stack, 0, secure(&mut loopback::Rng));
    /// // `server_key` comes with the firmware: rakwire keygen prints it.
    /// let options = ConnectOptions { trust: Some(ServerTrust::Key(server_key)), ..Default::default() };
    /// let (opened, _accepted) = join(client.connect_with(loopback::SERVER, &options), server.accept()).await;
    /// let Some(SecurePeer::Server(known)) = opened?.secure_peer() else { return Err("not secure".into()) };
    /// assert_eq!(known.key, server_key);
    /// # Ok(()) }) }
    /// ```
    #[must_use]
    pub fn secure_peer(&self) -> Option<SecurePeer> {
        self.reference.update(|hooked, _, id| hooked.peer.secure_peer(id?))
    }
}
