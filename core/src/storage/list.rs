//! A list in which any member can be taken out at once, threaded through the first blocks of messages.

use super::{Block, BlockLink, Pool};

/// Oldest and newest member; the links between stand in the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    oldest: BlockLink,
    newest: BlockLink,
}

impl List {
    pub(crate) const fn is_empty(&self) -> bool {
        self.oldest.is_none()
    }

    pub(crate) const fn oldest(&self) -> BlockLink {
        self.oldest
    }

    pub(crate) const fn newest(&self) -> BlockLink {
        self.newest
    }

    /// All members; work grows with how many they are.
    pub(crate) fn members<'p, H: Copy + Default>(
        &self,
        pool: &'p Pool<'_, H>,
    ) -> impl Iterator<Item = (Block, &'p H)> + use<'p, H> {
        let members = core::iter::successors(self.oldest, |member| pool.node(*member).newer);
        members.map(|member| (member, pool.header(member)))
    }

    /// The member after this one.
    pub(crate) fn newer<H: Copy + Default>(pool: &Pool<'_, H>, member: Block) -> BlockLink {
        pool.node(member).newer
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

    /// Adds a member before the first one that it comes before, or at the end if that is not among the oldest `most`.
    pub(crate) fn insert<H: Copy + Default>(
        &mut self,
        pool: &mut Pool<'_, H>,
        member: Block,
        most: usize,
        comes_before: impl Fn(&H, &H) -> bool,
    ) {
        let is_before = |pool: &Pool<'_, H>, other| comes_before(pool.header(member), pool.header(other));
        let after_all = self.newest.is_none_or(|newest| !is_before(pool, newest));
        let mut at = self.oldest.filter(|_| !after_all);
        for _ in 0..most {
            let Some(newer) = at else { break };
            if is_before(pool, newer) {
                self.put_before(pool, member, newer);
                return;
            }
            at = pool.node(newer).newer;
        }
        self.push(pool, member);
    }

    fn put_before<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, member: Block, newer: Block) {
        let older = pool.node_mut(newer).older.replace(member);
        match older {
            None => self.oldest = Some(member),
            Some(older) => pool.node_mut(older).newer = Some(member),
        }
        let node = pool.node_mut(member);
        node.older = older;
        node.newer = Some(newer);
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

#[cfg(test)]
mod tests {
    use super::super::pool::tests::with_pool;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn members_stand_in_order_as_far_as_the_search_goes() {
        with_pool(|pool| {
            let mut list = List::default();
            for key in [5_u32, 3, 9, 1, 4, 7, 8] {
                let member = pool.store(b"x", &key).expect("room");
                list.insert(pool, member, 3, |left, right| left < right);
            }
            let mut keys = Vec::new();
            while let Some(oldest) = list.oldest() {
                keys.push(*pool.header(oldest));
                list.remove(pool, oldest);
            }
            assert_eq!(keys, [1, 3, 4, 5, 9, 7, 8]);
            assert!(list.is_empty());
        });
    }
}
