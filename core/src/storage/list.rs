//! A list in which any member can be taken out at once, threaded through the first blocks of messages.

use super::{Block, Link, Pool};

/// Oldest and newest member; the links between stand in the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    oldest: Link,
    newest: Link,
}

impl List {
    pub(crate) const fn is_empty(&self) -> bool {
        self.oldest.is_none()
    }

    pub(crate) const fn oldest(&self) -> Link {
        self.oldest
    }

    pub(crate) fn push<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, member: Block) {
        let before = self.newest.replace(member);
        match before {
            None => self.oldest = Some(member),
            Some(before) => pool.node_mut(before).newer = Some(member),
        }
        let node = pool.node_mut(member);
        node.older = before;
        node.newer = None;
    }

    pub(crate) fn remove<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, member: Block) {
        let node = pool.node_mut(member);
        let (older, newer) = (node.older.take(), node.newer.take());
        match older {
            None => self.oldest = newer,
            Some(older) => pool.node_mut(older).newer = newer,
        }
        match newer {
            None => self.newest = older,
            Some(newer) => pool.node_mut(newer).older = older,
        }
    }
}
