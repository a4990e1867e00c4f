//! Those that wait for a change of an inbox.

use std::task::Waker;

/// Tasks to wake. Mostly there is one, who takes no memory besides this.
#[derive(Debug)]
pub(crate) enum Waiters {
    None { next: Ticket },
    One { ticket: Ticket, waker: Waker },
    Many(Box<Crowd>),
}

/// What a waiter is known by. No other one of the same inbox gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

impl Ticket {
    const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

#[derive(Debug)]
pub(crate) struct Crowd {
    next: Ticket,
    wakers: Vec<(Ticket, Waker)>,
}

impl Default for Waiters {
    fn default() -> Self {
        Self::None { next: Ticket::default() }
    }
}

impl Waiters {
    const fn next(&self) -> Ticket {
        match self {
            Self::None { next } => *next,
            Self::One { ticket, .. } => ticket.next(),
            Self::Many(crowd) => crowd.next,
        }
    }

    /// Waits for the next change.
    pub(crate) fn enter(&mut self, waker: &Waker) -> Ticket {
        let (next, waker) = (self.next(), waker.clone());
        *self = match std::mem::take(self) {
            Self::None { .. } => Self::One { ticket: next, waker },
            Self::One { ticket, waker: other } => {
                let wakers = vec![(ticket, other), (next, waker)];
                Self::Many(Box::new(Crowd { next: next.next(), wakers }))
            }
            Self::Many(mut crowd) => {
                crowd.wakers.push((next, waker));
                crowd.next = next.next();
                Self::Many(crowd)
            }
        };
        next
    }

    /// Waits no more. What comes back is to be dropped where no lock is held.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Self {
        match self {
            Self::One { ticket: one, .. } if *one == ticket => self.take(),
            Self::None { .. } | Self::One { .. } => Self::default(),
            Self::Many(crowd) => match crowd.wakers.iter().position(|(one, _)| *one == ticket) {
                Some(_) if crowd.wakers.len() == 1 => self.take(),
                Some(place) => {
                    let (ticket, waker) = crowd.wakers.swap_remove(place);
                    Self::One { ticket, waker }
                }
                None => Self::default(),
            },
        }
    }

    /// All that wait; from now on nobody does.
    pub(crate) const fn take(&mut self) -> Self {
        let next = self.next();
        std::mem::replace(self, Self::None { next })
    }

    pub(crate) fn wake(self) {
        match self {
            Self::None { .. } => {}
            Self::One { waker, .. } => waker.wake(),
            Self::Many(crowd) => crowd.wakers.into_iter().for_each(|(_, waker)| waker.wake()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Bell(AtomicU32);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn all_that_wait_are_woken_once() {
        let bells: [Arc<Bell>; 3] = std::array::from_fn(|_| Arc::default());
        let rung = || bells.each_ref().map(|bell| bell.0.load(Ordering::Relaxed));
        let wakers = bells.each_ref().map(|bell| Waker::from(Arc::clone(bell)));
        let mut waiters = Waiters::default();
        let tickets = wakers.each_ref().map(|waker| waiters.enter(waker));
        assert!(
            matches!(waiters.leave(tickets[0]), Waiters::One { waker, .. } if waker.will_wake(&wakers[0]))
        );
        assert!(matches!(waiters.leave(tickets[0]), Waiters::None { .. }));
        waiters.take().wake();
        assert_eq!(rung(), [0, 1, 1]);
        waiters.take().wake();
        assert_eq!(rung(), [0, 1, 1]);
    }

    #[test]
    fn who_was_woken_has_no_claim_on_the_place_of_another() {
        let bells: [Arc<Bell>; 2] = std::array::from_fn(|_| Arc::default());
        let wakers = bells.each_ref().map(|bell| Waker::from(Arc::clone(bell)));
        let mut waiters = Waiters::default();
        let old = waiters.enter(&wakers[0]);
        waiters.take().wake();
        let new = waiters.enter(&wakers[1]);
        assert!(matches!(waiters.leave(old), Waiters::None { .. }));
        assert!(matches!(waiters.leave(new), Waiters::One { .. }));
        assert!(![old, new].contains(&waiters.enter(&wakers[1])));
    }

    #[test]
    fn a_crowd_that_has_left_takes_no_memory() {
        let waker = Waker::from(Arc::<Bell>::default());
        let mut waiters = Waiters::default();
        let tickets = [waiters.enter(&waker), waiters.enter(&waker)];
        tickets.into_iter().for_each(|ticket| drop(waiters.leave(ticket)));
        assert!(matches!(waiters, Waiters::None { next } if !tickets.contains(&next)));
    }

    #[test]
    fn one_waiter_takes_little() {
        assert_eq!(size_of::<Waiters>(), 3 * size_of::<usize>());
    }
}
