//! Which queue the messages of a datagram come from.

use crate::raknet::delivery::Priority;

/// Where the messages of a datagram come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SendSource {
    /// Lost messages first, then new ones by priority.
    #[default]
    Usual,
    /// The lost message with the oldest reliable number.
    OldestLost,
    /// Lost parts of the split message of which a part was acknowledged last.
    PartlyAcknowledged,
    /// The message that was lost last.
    NewestLost,
    /// New messages of one priority.
    New(Priority),
    /// A probe of the sizes that the path carries, which is made when it leaves.
    PathProbe,
}

impl SendSource {
    /// The sources that are tried in turn while the receiver seems to be blocked.
    pub(crate) const PROBED: [Self; 7] = [
        Self::New(Priority::Immediate),
        Self::OldestLost,
        Self::New(Priority::High),
        Self::PartlyAcknowledged,
        Self::New(Priority::Medium),
        Self::NewestLost,
        Self::New(Priority::Low),
    ];
}
