//! The hook of an endpoint, if it has one.

use std::fmt;
use std::net::SocketAddr;

use rakwire::Instant;
use rakwire::game_protocol::{Hook, Verdict};

/// A hook that is chosen at run time.
pub(super) struct Plugin(Option<Box<dyn Hook + Send>>);

impl Plugin {
    pub(super) const NONE: Self = Self(None);

    pub(super) fn new(hook: impl Hook + Send + 'static) -> Self {
        Self(Some(Box::new(hook)))
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Plugin" } else { "no plugin" })
    }
}

impl Hook for Plugin {
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        self.0.as_mut().map_or(Verdict::Pass, |hook| hook.on_received(now, from, datagram))
    }

    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        self.0.as_mut().map_or(Verdict::Pass, |hook| hook.on_transmit(now, to, datagram))
    }
}
