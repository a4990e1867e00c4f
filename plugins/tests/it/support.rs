//! Helpers for plugins without real peers: messages are passed directly, in order between two plugins.

use std::collections::VecDeque;

use rakwire::Instant;
use rakwire::endpoint::{Capacity, ConnectionId, MessageSender, Peer, Protocol, Receipt, SendError};

/// Returns connection ids that belong to no real connection.
pub(crate) fn connections<P: Protocol>(count: usize) -> Vec<ConnectionId> {
    let capacity = Capacity { connections: count, blocks: 64, block_size: 64 };
    let mut peer = Peer::<P>::with_capacity(capacity, P::config([7; 32]));
    let address = |number: usize| ([10, 0, 0, 1], 1_000 + number as u16).into();
    (0..count).map(|number| peer.connect(Instant::ZERO, address(number)).expect("a free slot")).collect()
}

/// A sender that collects messages, up to a limit.
#[derive(Debug)]
pub(crate) struct Collector<P: Protocol> {
    pub(crate) messages: VecDeque<(ConnectionId, Vec<u8>, P::Delivery)>,
    pub(crate) room: usize,
    /// The connection that accepts no messages at the moment.
    pub(crate) blocked: Option<ConnectionId>,
    /// The connection that is closed.
    pub(crate) gone: Option<ConnectionId>,
    /// The maximum message length, in bytes.
    pub(crate) longest: usize,
}

impl<P: Protocol> Collector<P> {
    pub(crate) const fn new() -> Self {
        Self { messages: VecDeque::new(), room: usize::MAX, blocked: None, gone: None, longest: usize::MAX }
    }

    pub(crate) fn bytes(&mut self) -> Vec<Vec<u8>> {
        self.messages.drain(..).map(|(_, bytes, _)| bytes).collect()
    }
}

impl<P: Protocol> MessageSender<P> for Collector<P> {
    fn send(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        if self.gone == Some(id) {
            return Err(SendError::NotConnected);
        }
        if message.len() > self.longest {
            return Err(SendError::NeverFits);
        }
        if self.messages.len() >= self.room || self.blocked == Some(id) {
            return Err(SendError::QuotaExceeded);
        }
        self.messages.push_back((id, message.to_vec(), delivery));
        Ok(None)
    }
}
