//! Why a datagram is not acknowledged.

/// Why a capsule could not be taken: its datagram is not acknowledged, so the other peer sends it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ReceiveError {
    NoMemory,
    OutsideWindow,
    /// The message can never fit into the memory of one connection.
    MessageTooLarge,
}
