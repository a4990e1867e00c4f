//! How much is measured.

use std::time::Duration;

use crate::core_only::Effort;

const CLIENTS: u16 = 1_000;
pub(super) const TICK: Duration = Duration::from_micros(16_667);
/// Bytes of a message.
pub(super) const MESSAGE: usize = 100;
/// A message of RakNet in a datagram of its own: 4 bytes of the datagram's header, and 3 of the capsule's.
pub(super) const DATAGRAM: usize = MESSAGE + 7;

/// How many clients there are, and how long they are watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) clients: u16,
    pub(super) seconds: f64,
}

impl Size {
    pub(super) const fn of(effort: Effort) -> Self {
        match effort {
            Effort::Quick => Self { clients: CLIENTS / 20, seconds: 0.3 },
            Effort::Full => Self { clients: CLIENTS, seconds: 3.0 },
        }
    }
}
