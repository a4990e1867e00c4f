//! Decides when protocol time advances, so that a remote does not appear silent while its datagrams are unread.

use core::time::Duration;

use rakwire::Instant;

/// The minimum delay between two polls that counts as a pause. Blocking drivers and flash writes cause such delays; a
/// busy executor does not.
const PAUSE: Duration = Duration::from_millis(100);
/// The time after a pause in which other tasks can move datagrams from the network device to the socket.
///
/// The grace period has a minimum duration, for a device behind SPI, and a minimum number of polls. The polls let the
/// task of the network stack run, however slow the processor is.
const GRACE: Duration = Duration::from_millis(10);
const GRACE_POLLS: u8 = 16;

/// Lets protocol time advance only once all waiting datagrams have been read.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// The number of datagrams read since time last advanced.
    read: usize,
    /// The latest time at which the task must be polled.
    due: Option<Instant>,
    /// The time of the first poll after a pause, and the number of polls since.
    paused: Option<(Instant, u8)>,
}

impl Backlog {
    /// Returns whether protocol time may advance.
    ///
    /// `received` is the number of datagrams read in this poll. `is_empty` is true if the socket contains no more
    /// datagrams. `capacity` is the number of datagrams that the socket can hold. After that many datagrams time
    /// advances in any case, so that a flood cannot stop it.
    pub(crate) fn may_advance(
        &mut self,
        now: Instant,
        received: usize,
        is_empty: bool,
        capacity: usize,
    ) -> bool {
        self.read = self.read.saturating_add(received);
        if self.paused.is_none() && self.due.is_some_and(|due| now >= due + PAUSE) {
            self.paused = Some((now, 0));
        }
        if let Some((since, polls)) = &mut self.paused {
            *polls = polls.saturating_add(1);
            if *polls < GRACE_POLLS || now < *since + GRACE {
                return false;
            }
        }
        if !is_empty && self.read < capacity {
            return false;
        }
        (self.read, self.paused) = (0, None);
        true
    }

    /// Records the latest time at which the task must be polled again.
    pub(crate) fn expect(&mut self, now: Instant, due: Option<Instant>) {
        self.due = due.map(|due| due.max(now));
    }
}
