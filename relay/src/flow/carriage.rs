//! What the transport of a client carries.

use super::control::CONTROL_PREFIX;
use super::counters::DropReason;

/// What the transport of a client carries; by default, everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carriage {
    /// The longest datagram to the client in bytes; `None` is no limit.
    pub max_datagram: Option<usize>,
    /// The longest datagram that passes in one piece, in either direction; `None` is no limit. A handshake that names an MTU
    /// names no longer one.
    pub max_unfragmented: Option<usize>,
    /// Whether control messages are datagrams too, which begin with [`CONTROL_PREFIX`].
    pub has_control_datagrams: bool,
}

impl Carriage {
    /// Why a datagram to the client cannot be sent, if so.
    pub(super) fn refuses(&self, datagram: &[u8]) -> Option<DropReason> {
        if self.has_control_datagrams && datagram.starts_with(CONTROL_PREFIX) {
            return Some(DropReason::Reserved);
        }
        let is_too_big = self.max_datagram.is_some_and(|max| datagram.len() > max);
        is_too_big.then_some(DropReason::DatagramTooBig)
    }
}
