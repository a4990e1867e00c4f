//! The flows whose server has not accepted the client yet, in the order in which they began.

use std::collections::VecDeque;

use super::table::FlowId;

/// See the module. Flows that were accepted or ended leave it later, when somebody looks at them.
#[derive(Debug, Default)]
pub(super) struct HalfOpen(VecDeque<FlowId>);

impl HalfOpen {
    pub(super) fn push(&mut self, id: FlowId) {
        self.0.push_back(id);
    }

    /// Takes out the oldest one that still is half open.
    pub(super) fn pop(&mut self, mut is_half_open: impl FnMut(FlowId) -> bool) -> Option<FlowId> {
        while let Some(id) = self.0.pop_front() {
            if is_half_open(id) {
                return Some(id);
            }
        }
        None
    }

    /// Forgets those that are not half open any more.
    pub(super) fn retain(&mut self, mut is_half_open: impl FnMut(FlowId) -> bool) {
        self.0.retain(|id| is_half_open(*id));
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Instant;

    use super::super::table::FlowTable;
    use super::*;

    #[test]
    fn the_oldest_comes_first_and_those_that_were_accepted_do_not_come() {
        let mut table = FlowTable::default();
        let mut half_open = HalfOpen::default();
        let ids = [1, 2, 3].map(|port| {
            let client: SocketAddr = ([192, 0, 2, 1], port).into();
            let id = table.insert(client, Instant::now(), ()).unwrap();
            half_open.push(id);
            id
        });
        assert_eq!(half_open.pop(|id| id != ids[0]), Some(ids[1]));
        half_open.retain(|_| false);
        assert_eq!(half_open.pop(|_| true), None);
    }
}
