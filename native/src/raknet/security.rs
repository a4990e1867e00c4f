//! Secure connections: what endpoints need for them, and what connections know of the other peer.

use std::io;

use rakwire::raknet::{RakNet, SecurePeer, Security};
use rakwire::secure::AcceptedToken;

use crate::endpoint::{Connection, Options};
use crate::entropy::entropy;

impl Options<RakNet> {
    /// What the endpoint needs for secure connections: made with random bytes of the system by the first call.
    ///
    /// A server sets its key in it, and a client with an identity that. A client without one only has to call this.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    ///
    /// ```
    /// use rakwire_native::secure::{ServerIdentity, ServerTrust, StaticKey};
    /// use rakwire_native::{ConnectOptions, Endpoint, Options, SecurePeer};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key = StaticKey::from_bytes([7; 32]); // `read_key_file` in a real program
    /// let public = key.public();
    /// let mut identity = ServerIdentity::new(key);
    /// identity.requires_security = true;
    /// let mut options = Options::server(8)?;
    /// options.secure()?.server = Some(identity);
    /// let server = Endpoint::bind("127.0.0.1:0", options).await?;
    ///
    /// let mut options = Options::client()?;
    /// options.secure()?;
    /// let client = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let trust = Some(ServerTrust::Key(public));
    /// let options = ConnectOptions { trust, ..ConnectOptions::default() };
    /// let connection = client.connect_with(server.local_addr(), &options).await?;
    /// let Some(SecurePeer::Server(known)) = connection.secure_peer() else { return Err("not secure".into()) };
    /// assert_eq!(known.key, public);
    /// # Ok(())
    /// # }
    /// ```
    pub fn secure(&mut self) -> io::Result<&mut Security> {
        let security = match self.config.security.take() {
            Some(security) => security,
            None => with_fast_cipher(Security::new(entropy()?)),
        };
        Ok(self.config.security.insert(security))
    }
}

#[cfg(feature = "ring")]
fn with_fast_cipher(mut security: Security) -> Security {
    security.cipher = &super::RingCipher;
    security
}

#[cfg(not(feature = "ring"))]
const fn with_fast_cipher(security: Security) -> Security {
    security
}

impl Connection<RakNet> {
    /// Whom the other peer of a secure connection has shown to be; none if the connection is plain, or has ended.
    #[must_use]
    pub fn secure_peer(&self) -> Option<SecurePeer> {
        self.reference.shared.act(|state, _| state.hooked.peer.secure_peer(self.reference.id))
    }

    /// What the connect token of the client said; none if the server asked for none, or the connection has ended.
    #[must_use]
    pub fn accepted_token(&self) -> Option<AcceptedToken> {
        self.reference.shared.act(|state, _| state.hooked.peer.accepted_token(self.reference.id).cloned())
    }
}
