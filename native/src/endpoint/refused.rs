//! Clients that a server has refused by what they showed.

use std::collections::VecDeque;

/// The length of the queue.
const MAX_QUEUED: usize = 64;

/// Clients that a server has refused, and the application has not asked for. A full queue drops the oldest one.
#[derive(Debug)]
pub(crate) struct RefusedClients<C> {
    waiting: VecDeque<C>,
    count: u64,
}

impl<C> Default for RefusedClients<C> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), count: 0 }
    }
}

impl<C> RefusedClients<C> {
    pub(crate) fn push(&mut self, client: C) {
        self.count = self.count.saturating_add(1);
        if self.waiting.len() >= MAX_QUEUED {
            self.waiting.pop_front();
        }
        self.waiting.push_back(client);
    }

    pub(crate) fn pop(&mut self) -> Option<C> {
        self.waiting.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_refused_clients_are_kept() {
        let mut refused = RefusedClients::default();
        for client in 0..100 {
            refused.push(client);
        }
        let kept: Vec<u32> = refused.waiting.iter().copied().collect();
        assert_eq!((kept, refused.count()), ((36..100).collect(), 100));
    }
}
