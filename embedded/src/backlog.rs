//! Decides when time passes for a peer, so that unread datagrams never make a remote look silent.

use core::time::Duration;

use rakwire::Instant;

/// A poll that is this late counts as a pause. Blocking drivers and flash writes cause such delays; a busy executor
/// does not.
const PAUSE: Duration = Duration::from_millis(100);
/// The time, after a pause, for other tasks to move datagrams from the network device to the socket.
///
/// It is counted in time for a device behind SPI, and in polls for the task of the network stack, however slow the
/// processor is.
const GRACE: Duration = Duration::from_millis(10);
const GRACE_POLLS: u8 = 16;

/// Lets time pass for the protocol only once everything that was waiting has been read.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// The datagrams read since time last passed.
    read: usize,
    /// The latest time at which the task wanted to be polled.
    due: Option<Instant>,
    /// The time of the first poll after a pause, and the polls since.
    paused: Option<(Instant, u8)>,
}

impl Backlog {
    /// Returns whether time may pass.
    ///
    /// `received` datagrams were read in this poll, `is_empty` is set if none are left in the socket, and `capacity` is
    /// the number that it holds. After that many datagrams time passes regardless, so that a flood cannot stop it.
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

    /// Records the time at which the task is to be polled at the latest.
    pub(crate) fn expect(&mut self, now: Instant, due: Option<Instant>) {
        self.due = due.map(|due| due.max(now));
    }
}
