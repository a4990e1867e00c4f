//! A message on its way to the application.

/// A message that arrived. `D` is how the protocol says that a message travels.
///
/// ```
/// use rakwire_native::{Delivery, Incoming, game_protocol};
///
/// let message = Incoming { bytes: vec![0x86, 1], delivery: Delivery::RELIABLE };
/// assert!(message.delivery.reliability.is_reliable());
///
/// let message = game_protocol::Incoming { bytes: vec![1], delivery: game_protocol::Reliability::Unreliable };
/// assert!(!message.delivery.is_reliable());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming<D> {
    /// The bytes, in RakNet from the id of the message on.
    pub bytes: Vec<u8>,
    /// How it travelled. RakNet's priority is not on the wire and reads as the default.
    pub delivery: D,
}
