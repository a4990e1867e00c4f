//! The size of a measurement.

use std::time::Duration;

use crate::core_only::Effort;

const CLIENTS: u16 = 1_000;
pub(super) const TICK: Duration = Duration::from_micros(16_667);
/// The size of a message in bytes.
pub(super) const MESSAGE: usize = 100;
/// The size of a RakNet datagram with one message: 4 bytes for the datagram header and 3 for the capsule header.
pub(super) const DATAGRAM: usize = MESSAGE + 7;

/// The number of clients and the duration of a measurement.
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
