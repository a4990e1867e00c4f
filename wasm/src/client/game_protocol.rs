//! The Game Protocol: the configuration of a client.

use core::time::Duration;

use rakwire::endpoint::{Hook, Protocol};
use rakwire::game_protocol::{Carrier, GameProtocol};

use super::{Client, Dialling, Memory, OutOfMemory, SERVER};

/// How long one attempt to connect waits. The next one needs another WebSocket, for which the relay calls the server from
/// another port: an original server does not hear a client twice from the same one.
pub(super) const ATTEMPT: Duration = Duration::from_secs(2);

impl<H: Hook<GameProtocol>> Client<GameProtocol, H> {
    /// A client that is not connected; the bytes must be random.
    pub(crate) fn game_protocol(
        entropy: [u8; 32],
        memory: Memory,
        timeout: Option<Duration>,
        hook: H,
    ) -> Result<Self, OutOfMemory> {
        let mut config = GameProtocol::config(entropy);
        config.handshake_timeout = ATTEMPT;
        config.timeout = timeout.unwrap_or(config.timeout);
        #[cfg(feature = "npm-server")]
        {
            config.max_incoming = 1;
        }
        Self::new(memory, config, Dialling::default(), |peer, now, _| peer.connect(now, SERVER), hook)
    }

    /// Says what carries the datagrams from now on.
    pub(crate) fn set_carrier(&mut self, carrier: Carrier) {
        self.hooked.peer.set_carrier(carrier);
    }
}
