//! What sources have paid for answers that are longer than their requests, where no cookie proves the source.

use core::hash::{Hash, Hasher};
use core::net::SocketAddr;

use siphasher::sip::SipHasher13;

use super::features::{SERVER, room};
use crate::storage::AddressKey;

const GROUPS: usize = room(SERVER, 32);

/// Bytes that came without an answer, by groups of addresses: so many groups, by a keyed hash. No group ever gets more
/// bytes than came in the names of its addresses.
#[derive(Debug, Default)]
pub(super) struct AmplificationBudget([u16; GROUPS]);

impl AmplificationBudget {
    fn of(&mut self, secret: &[u8; 16], source: &SocketAddr) -> Option<&mut u16> {
        let mut hasher = SipHasher13::new_with_key(secret);
        AddressKey(*source).hash(&mut hasher);
        self.0.get_mut(usize::try_from(hasher.finish() % GROUPS as u64).unwrap_or(0))
    }

    /// Notes that `request` bytes were answered with `answer` bytes.
    pub(super) fn pay_in(&mut self, secret: &[u8; 16], source: &SocketAddr, request: usize, answer: usize) {
        let surplus = u16::try_from(request.saturating_sub(answer)).unwrap_or(u16::MAX);
        if let Some(budget) = self.of(secret, source) {
            *budget = budget.saturating_add(surplus);
        }
    }

    /// Takes what `answer` bytes cost beyond `request` bytes; false, and nothing is taken, if the source has not paid
    /// for that.
    pub(super) fn take(
        &mut self,
        secret: &[u8; 16],
        source: &SocketAddr,
        request: usize,
        answer: usize,
    ) -> bool {
        let Ok(missing) = u16::try_from(answer.saturating_sub(request)) else { return false };
        let Some(budget) = self.of(secret, source) else { return false };
        let rest = budget.checked_sub(missing);
        *budget = rest.unwrap_or(*budget);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_more_than_was_paid_in() {
        let (secret, mut budget) = ([3; 16], AmplificationBudget::default());
        let source = SocketAddr::from(([10, 0, 0, 1], 9));
        assert!(budget.take(&secret, &source, 35, 35), "a short answer costs nothing");
        assert!(!budget.take(&secret, &source, 34, 35));
        budget.pay_in(&secret, &source, 31, 28);
        budget.pay_in(&secret, &source, 20, 28);
        assert!(!budget.take(&secret, &source, 30, 34), "a fourth byte was not paid");
        assert_eq!((0..9).filter(|_| budget.take(&secret, &source, 34, 35)).count(), 3);
        (0..100).for_each(|_| budget.pay_in(&secret, &source, 1_464, 28));
        assert!(budget.take(&secret, &source, 0, usize::from(u16::MAX)), "it stops growing");
        assert!(!budget.take(&secret, &source, 0, 1));
    }

    #[test]
    fn most_others_have_nothing_of_it() {
        let (secret, mut budget) = ([3; 16], AmplificationBudget::default());
        budget.pay_in(&secret, &SocketAddr::from(([10, 0, 0, 1], 9)), 1_464, 28);
        let others = (0..320).map(|port| SocketAddr::from(([10, 0, 0, 2], port)));
        let lucky = others.filter(|other| budget.take(&secret, other, 34, 35)).count();
        assert!((1..40).contains(&lucky), "{lucky} of 320 share the group");
    }
}
