//! Weighted fair queueing of the priorities (docs/raknet.md#priorities).
//!
//! Each message gets a virtual time when it is queued, and the earliest one is sent first. The more important a priority,
//! the smaller the steps between the virtual times of its messages.

use crate::raknet::delivery::Priority;
use crate::raknet::features::PRIORITIES;

/// The priorities that have a queue of their own. Without the feature `priorities` all messages stand in one.
#[cfg(feature = "priorities")]
pub(super) const CLASSES: [Priority; Priority::COUNT] = Priority::ALL;
#[cfg(not(feature = "priorities"))]
pub(super) const CLASSES: [Priority; 1] = [Priority::Medium];

/// The priority among [`CLASSES`] that stands for this one.
pub(super) const fn class(priority: Priority) -> Priority {
    if PRIORITIES { priority } else { Priority::Medium }
}

/// Where a priority stands in [`CLASSES`].
pub(super) const fn place(priority: Priority) -> usize {
    if PRIORITIES { priority.index() } else { 0 }
}

/// The virtual time of the first message of each priority in an empty queue.
const FIRST: [u32; Priority::COUNT] = [0, 3, 10, 27];
/// The step from one message of a priority to the next: under load the shares are about 35 : 7 : 2.5 : 1.
const STEP: [u32; Priority::COUNT] = [1, 5, 14, 35];

/// The virtual times of the next message of each priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualClock {
    next: [u32; if PRIORITIES { Priority::COUNT } else { 0 }],
}

impl Default for VirtualClock {
    fn default() -> Self {
        #[cfg(feature = "priorities")]
        let next = FIRST;
        #[cfg(not(feature = "priorities"))]
        let next = [];
        Self { next }
    }
}

impl VirtualClock {
    /// The virtual time of a message that is queued now; `head` is the message that would be sent next.
    pub(super) fn assign(&mut self, priority: Priority, head: Option<(Priority, u32)>) -> u32 {
        let first = FIRST.get(priority.index()).copied().unwrap_or(0);
        let step = STEP.get(priority.index()).copied().unwrap_or(0);
        let Some(next) = self.next.get_mut(priority.index()) else {
            return 0;
        };
        let mut time = *next;
        match head {
            None => time = first,
            Some((head, head_time)) => {
                let p = u32::try_from(head.index()).unwrap_or(0);
                let start = head_time.wrapping_sub(p << p).wrapping_add(p);
                if is_earlier(time, start) {
                    time = start.wrapping_add(first);
                }
            }
        }
        *next = time.wrapping_add(step);
        time
    }
}

/// Virtual times grow for ever and wrap; those in the queue are never far apart.
pub(super) const fn is_earlier(left: u32, right: u32) -> bool {
    left != right && right.wrapping_sub(left) <= u32::MAX / 2
}
