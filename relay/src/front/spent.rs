//! What clients whose flows ended have used of their budgets of handshakes: a new flow gives nobody a new budget.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Instant;

use crate::protocol::Budget;

/// How many clients are remembered. Whoever brings more of them within the time in which a budget is full again has been
/// admitted that often.
const CLIENTS_MAX: usize = 8_192;

/// See the module. A client is an address with its port, as for flows.
#[derive(Debug, Default)]
pub(super) struct SpentBudgets {
    by_client: HashMap<SocketAddr, Budget>,
    /// The clients, the one that is forgotten first at the front.
    order: VecDeque<SocketAddr>,
}

impl SpentBudgets {
    /// The flow of a client ended. If there are too many clients, another one is forgotten.
    pub(super) fn remember(&mut self, client: SocketAddr, budget: Budget) {
        if self.by_client.insert(client, budget).is_some() {
            return;
        }
        self.order.push_back(client);
        if self.order.len() > CLIENTS_MAX
            && let Some(forgotten) = self.order.pop_front()
        {
            self.by_client.remove(&forgotten);
        }
    }

    /// What a client has left, if it is remembered.
    pub(super) fn of(&self, client: SocketAddr) -> Option<Budget> {
        self.by_client.get(&client).copied()
    }

    /// Forgets the clients whose budgets are full again.
    pub(super) fn forget_full(&mut self, now: Instant) {
        let by_client = &mut self.by_client;
        by_client.retain(|_, budget| !budget.is_full(now));
        self.order.retain(|client| by_client.contains_key(client));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::Handshake;

    fn client(number: usize) -> SocketAddr {
        let number = u32::try_from(number).unwrap();
        (number.to_be_bytes(), 5).into()
    }

    /// A budget of which nothing is left.
    fn empty(now: Instant) -> Budget {
        let mut budget = Budget::new(&Handshake::default(), now);
        while budget.take(now, 1) {}
        budget
    }

    #[test]
    fn a_budget_is_remembered_until_it_is_full_again() {
        let start = Instant::now();
        let full = start + Handshake::default().refill;
        let mut spent = SpentBudgets::default();
        spent.remember(client(1), empty(start));
        assert!(spent.of(client(2)).is_none());
        spent.forget_full(full - Duration::from_millis(1));
        assert!(!spent.of(client(1)).unwrap().take(start, 1));
        spent.forget_full(full);
        assert!(spent.of(client(1)).is_none() && spent.order.is_empty());
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_clients() {
        let start = Instant::now();
        let mut spent = SpentBudgets::default();
        for number in 0..2 * CLIENTS_MAX {
            spent.remember(client(number), empty(start));
            spent.remember(client(number), empty(start));
        }
        assert_eq!((spent.by_client.len(), spent.order.len()), (CLIENTS_MAX, CLIENTS_MAX));
        assert!(spent.of(client(CLIENTS_MAX - 1)).is_none() && spent.of(client(CLIENTS_MAX)).is_some());
    }
}
