//! Time and what waits to be read: a peer is silent only if nothing of it waits in the socket.

use core::time::Duration;

use rakwire::Instant;

/// How late the task must be polled to count as paused. A blocking driver or flash write takes that long, a busy executor
/// does not.
const PAUSE: Duration = Duration::from_millis(100);
/// How long other tasks bring datagrams from the network device to the socket after a pause, in time and in polls. A device
/// behind SPI needs the time; the task of the network stack needs polls, however slow the processor is.
const GRACE: Duration = Duration::from_millis(10);
const GRACE_POLLS: u8 = 16;

/// Decides when time passes for the protocol: once everything that waited has been read.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// The datagrams that were read since time passed.
    read: usize,
    /// When the task wanted to be polled at the latest.
    due: Option<Instant>,
    /// When the task was first polled after a pause, and its polls since.
    paused: Option<(Instant, u8)>,
}

impl Backlog {
    /// Whether time may pass. `received` datagrams were read in this poll, `is_empty` is whether nothing more waits in the
    /// socket, and `capacity` is how many it holds: after so many it passes all the same, so that a flood does not stop it.
    pub(crate) fn lets_time_pass(
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

    /// Takes note of when the task is to be polled at the latest.
    pub(crate) fn expect(&mut self, now: Instant, due: Option<Instant>) {
        self.due = due.map(|due| due.max(now));
    }
}
