//! How logs of microcontrollers print what the endpoint tells (feature `defmt`).

/// What defmt can print, if it is built in.
#[cfg(feature = "defmt")]
pub(crate) trait Format: defmt::Format {}
#[cfg(feature = "defmt")]
impl<T: defmt::Format> Format for T {}

/// What defmt could print, if it were built in.
#[cfg(not(feature = "defmt"))]
pub(crate) trait Format {}
#[cfg(not(feature = "defmt"))]
impl<T> Format for T {}

#[cfg(feature = "defmt")]
mod with_defmt {
    use defmt::{Formatter, write};

    use crate::endpoint::{ConnectionId, ConnectionInfo, Event, Message, Protocol};
    use crate::raknet::{AddressPattern, Guid, NetworkId};
    use crate::{Instant, U24};

    impl defmt::Format for ConnectionId {
        fn format(&self, f: Formatter<'_>) {
            write!(f, "{=u16}.{=u32}", self.slot, self.generation);
        }
    }

    impl defmt::Format for Guid {
        fn format(&self, f: Formatter<'_>) {
            write!(f, "{=u64:016x}", self.0);
        }
    }

    impl defmt::Format for NetworkId {
        fn format(&self, f: Formatter<'_>) {
            write!(f, "{=u64:016x}", self.0);
        }
    }

    impl defmt::Format for U24 {
        fn format(&self, f: Formatter<'_>) {
            write!(f, "{=u32}", self.get());
        }
    }

    impl defmt::Format for Instant {
        fn format(&self, f: Formatter<'_>) {
            write!(f, "{=u64:us}", self.as_micros());
        }
    }

    impl defmt::Format for AddressPattern {
        fn format(&self, f: Formatter<'_>) {
            write!(f, "{}", defmt::Display2Format(self));
        }
    }

    /// Its length; the bytes are those of the application.
    impl<P: Protocol> defmt::Format for Message<'_, P> {
        fn format(&self, f: Formatter<'_>) {
            write!(f, "{=usize} bytes", self.len());
        }
    }

    // Derived implementations would require `P: Format`.
    impl<P: Protocol> defmt::Format for ConnectionInfo<P> {
        fn format(&self, f: Formatter<'_>) {
            let Self { remote, identity, side, state } = self;
            write!(f, "{} ({}), {}, {}", remote, identity, side, state);
        }
    }

    impl<P: Protocol> defmt::Format for Event<'_, P> {
        fn format(&self, f: Formatter<'_>) {
            match self {
                Self::Connected { id, remote, identity, side } => {
                    write!(f, "Connected({}, {}, {}, {})", id, remote, identity, side);
                }
                Self::ConnectFailed { id, remote, reason } => {
                    write!(f, "ConnectFailed({}, {}, {})", id, remote, reason);
                }
                Self::Disconnected { id, remote, reason } => {
                    write!(f, "Disconnected({}, {}, {})", id, remote, reason);
                }
                Self::Message { id, delivery, message } => {
                    write!(f, "Message({}, {}, {})", id, delivery, message);
                }
                Self::Receipt { id, receipt, outcome } => {
                    write!(f, "Receipt({}, {}, {})", id, receipt, outcome);
                }
                Self::Progress { id, progress } => write!(f, "Progress({}, {})", id, progress),
                Self::Pong { from, identity, latency, data } => {
                    write!(f, "Pong({}, {}, {}, {})", from, identity, latency, data);
                }
                Self::OutOfBand { from, identity, data } => {
                    write!(f, "OutOfBand({}, {}, {})", from, identity, data);
                }
                Self::Advertisement { from, identity, data } => {
                    write!(f, "Advertisement({}, {}, {})", from, identity, data);
                }
            }
        }
    }
}
