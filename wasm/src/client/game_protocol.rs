//! The Game Protocol: the configuration of a client.

use core::time::Duration;

use rakwire::endpoint::{Hook, Protocol};
use rakwire::game_protocol::{Carrier, GameProtocol};

use super::{Client, Dialling, Memory, OutOfMemory, SERVER};

/// The time limit of one connection attempt. The next attempt needs a new WebSocket, for which the relay uses another
/// port: a server of the Game Protocol ignores repeated requests from the same port.
pub(super) const ATTEMPT: Duration = Duration::from_secs(2);

impl<H: Hook<GameProtocol>> Client<GameProtocol, H> {
    /// Creates a client that is not connected. `entropy` must be random.
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

    /// Sets the carrier of the following datagrams.
    pub(crate) fn set_carrier(&mut self, carrier: Carrier) {
        self.hooked.peer.set_carrier(carrier);
    }
}
