//! The wakers of tasks that wait for a change of an inbox.

use std::task::Waker;

/// Registered wakers. There is usually one, which needs no allocation.
#[derive(Debug)]
pub(crate) enum Wakers {
    None { next: WakerId },
    One { id: WakerId, waker: Waker },
    Several(Box<Several>),
}

/// The id of a registered waker, unique within its inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WakerId(u32);

impl WakerId {
    const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

#[derive(Debug)]
pub(crate) struct Several {
    next: WakerId,
    wakers: Vec<(WakerId, Waker)>,
}

impl Default for Wakers {
    fn default() -> Self {
        Self::None { next: WakerId::default() }
    }
}

impl Wakers {
    const fn next(&self) -> WakerId {
        match self {
            Self::None { next } => *next,
            Self::One { id, .. } => id.next(),
            Self::Several(several) => several.next,
        }
    }

    /// Registers the waker of a task.
    pub(crate) fn register(&mut self, waker: &Waker) -> WakerId {
        let (next, waker) = (self.next(), waker.clone());
        *self = match std::mem::take(self) {
            Self::None { .. } => Self::One { id: next, waker },
            Self::One { id, waker: other } => {
                let wakers = vec![(id, other), (next, waker)];
                Self::Several(Box::new(Several { next: next.next(), wakers }))
            }
            Self::Several(mut several) => {
                several.wakers.push((next, waker));
                several.next = next.next();
                Self::Several(several)
            }
        };
        next
    }

    /// Removes a waker. The caller must drop the result after it has released all locks.
    pub(crate) fn remove(&mut self, id: WakerId) -> Self {
        match self {
            Self::One { id: one, .. } if *one == id => self.take(),
            Self::None { .. } | Self::One { .. } => Self::default(),
            Self::Several(several) => match several.wakers.iter().position(|(one, _)| *one == id) {
                Some(_) if several.wakers.len() == 1 => self.take(),
                Some(place) => {
                    let (id, waker) = several.wakers.swap_remove(place);
                    Self::One { id, waker }
                }
                None => Self::default(),
            },
        }
    }

    /// Takes all wakers.
    pub(crate) const fn take(&mut self) -> Self {
        let next = self.next();
        std::mem::replace(self, Self::None { next })
    }

    pub(crate) fn wake(self) {
        match self {
            Self::None { .. } => {}
            Self::One { waker, .. } => waker.wake(),
            Self::Several(several) => several.wakers.into_iter().for_each(|(_, waker)| waker.wake()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;

    /// How often a task was woken.
    #[derive(Default)]
    struct Wakes(AtomicU32);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn all_waiting_tasks_are_woken_once() {
        let tasks: [Arc<Wakes>; 3] = std::array::from_fn(|_| Arc::default());
        let woken = || tasks.each_ref().map(|task| task.0.load(Ordering::Relaxed));
        let of_tasks = tasks.each_ref().map(|task| Waker::from(Arc::clone(task)));
        let mut wakers = Wakers::default();
        let ids = of_tasks.each_ref().map(|waker| wakers.register(waker));
        assert!(matches!(wakers.remove(ids[0]), Wakers::One { waker, .. } if waker.will_wake(&of_tasks[0])));
        assert!(matches!(wakers.remove(ids[0]), Wakers::None { .. }));
        wakers.take().wake();
        assert_eq!(woken(), [0, 1, 1]);
        wakers.take().wake();
        assert_eq!(woken(), [0, 1, 1]);
    }

    #[test]
    fn a_stale_id_does_not_remove_another_waker() {
        let tasks: [Arc<Wakes>; 2] = std::array::from_fn(|_| Arc::default());
        let of_tasks = tasks.each_ref().map(|task| Waker::from(Arc::clone(task)));
        let mut wakers = Wakers::default();
        let old = wakers.register(&of_tasks[0]);
        wakers.take().wake();
        let new = wakers.register(&of_tasks[1]);
        assert!(matches!(wakers.remove(old), Wakers::None { .. }));
        assert!(matches!(wakers.remove(new), Wakers::One { .. }));
        assert!(![old, new].contains(&wakers.register(&of_tasks[1])));
    }

    #[test]
    fn removed_wakers_use_no_memory() {
        let waker = Waker::from(Arc::<Wakes>::default());
        let mut wakers = Wakers::default();
        let ids = [wakers.register(&waker), wakers.register(&waker)];
        ids.into_iter().for_each(|id| drop(wakers.remove(id)));
        assert!(matches!(wakers, Wakers::None { next } if !ids.contains(&next)));
    }

    #[test]
    fn wakers_are_small() {
        assert_eq!(size_of::<Wakers>(), 3 * size_of::<usize>());
    }
}
