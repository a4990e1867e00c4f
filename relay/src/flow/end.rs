//! Why a flow ends.

use std::time::Duration;

use crate::protocol::ProtocolKind;

/// Why a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowEnd {
    /// The client sent text.
    TextMessage,
    /// The client sent a message above [`FlowLimits::max_datagram`](super::FlowLimits::max_datagram).
    MessageTooBig {
        /// The length of the message in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The client broke the WebSocket protocol.
    ProtocolViolation,
    /// There was no datagram in either direction for this time.
    Idle(Duration),
    /// The client answered no ping, or acknowledged no data, for this time, and did not come back.
    Unresponsive(Duration),
    /// The relay is stopped.
    ShuttingDown,
    /// The operator ended it.
    Kicked,
    /// The operator banned the address of the client.
    Banned,
    /// The UDP socket failed for good.
    UdpFailed,
    /// The network reported that nothing listens at the port of the game server before it had sent anything, and [`Setup::closes_unreachable`]
    /// is set.
    ///
    /// [`Setup::closes_unreachable`]: super::Setup::closes_unreachable
    ServerUnreachable,
    /// The client began the handshake of another protocol than the target's, which is this one.
    WrongProtocol(ProtocolKind),
    /// The client closed its connection.
    ClientClosed,
    /// The connection of the client ended without a close, and the client did not come back.
    ClientVanished,
}
