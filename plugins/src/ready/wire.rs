//! The wire format of ready events (docs/plugins/ready.md).

/// The identifier of an event: any number on which the peers agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub i32);

/// The status of a peer for an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// The peer is not ready.
    #[default]
    Unset,
    /// The peer is ready.
    Set,
    /// The peer is ready, and so are all peers that it waits for.
    AllSet,
    /// The event is completed, even if some peers are not ready.
    ForceAllSet,
}

/// A message about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The sender reports its status.
    Status(Status),
    /// The sender requests the status of the receiver.
    Query,
}

const SET: u8 = 68;
const UNSET: u8 = 69;
const ALL_SET: u8 = 70;
const QUERY: u8 = 71;
const FORCE_ALL_SET: u8 = 76;

/// The message ids of ready events.
pub const MESSAGE_IDS: [u8; 5] = [SET, UNSET, ALL_SET, QUERY, FORCE_ALL_SET];
/// The length of a message, in bytes.
pub const LENGTH: usize = 5;

impl Message {
    /// Encodes the message about an event.
    #[must_use]
    pub const fn encode(self, event: EventId) -> [u8; LENGTH] {
        let id = match self {
            Self::Status(Status::Set) => SET,
            Self::Status(Status::Unset) => UNSET,
            Self::Status(Status::AllSet) => ALL_SET,
            Self::Status(Status::ForceAllSet) => FORCE_ALL_SET,
            Self::Query => QUERY,
        };
        let [a, b, c, d] = event.0.to_be_bytes();
        [id, a, b, c, d]
    }

    /// Decodes a message; returns `None` if its id is not one of [`MESSAGE_IDS`].
    #[must_use]
    pub const fn decode(bytes: [u8; LENGTH]) -> Option<(Self, EventId)> {
        let [id, a, b, c, d] = bytes;
        let message = match id {
            SET => Self::Status(Status::Set),
            UNSET => Self::Status(Status::Unset),
            ALL_SET => Self::Status(Status::AllSet),
            FORCE_ALL_SET => Self::Status(Status::ForceAllSet),
            QUERY => Self::Query,
            _ => return None,
        };
        Some((message, EventId(i32::from_be_bytes([a, b, c, d]))))
    }
}
