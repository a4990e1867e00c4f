//! The anti-amplification limit (RFC 9000 section 8.1) where no cookie proves the source of a request.

use core::hash::{Hash, Hasher};
use core::net::SocketAddr;

use siphasher::sip::SipHasher13;

use super::features::{SERVER, room};
use crate::storage::AddressKey;

/// Groups of addresses.
const GROUPS: usize = room(SERVER, 32);

/// Bytes that arrived beyond those that were sent in answer, by groups of addresses: a keyed hash assigns the groups. No
/// group is ever sent more bytes than arrived from its addresses.
#[derive(Debug, Default)]
pub(super) struct AmplificationBudget {
    groups: [u16; GROUPS],
}

impl AmplificationBudget {
    /// The budget of a source.
    fn group(&mut self, secret: &[u8; 16], source: &SocketAddr) -> Option<&mut u16> {
        let mut hasher = SipHasher13::new_with_key(secret);
        AddressKey(*source).hash(&mut hasher);
        let group = hasher.finish() % GROUPS as u64;
        self.groups.get_mut(usize::try_from(group).unwrap_or(0))
    }

    /// Adds what is left of a first request of `request` bytes after an answer of `answer` bytes.
    pub(super) fn add(&mut self, secret: &[u8; 16], source: &SocketAddr, request: usize, answer: usize) {
        let surplus = u16::try_from(request.saturating_sub(answer)).unwrap_or(u16::MAX);
        let Some(budget) = self.group(secret, source) else { return };
        *budget = budget.saturating_add(surplus);
    }

    /// Takes what there is beyond `rest` bytes, up to `most`.
    pub(super) fn take_up_to(
        &mut self,
        secret: &[u8; 16],
        source: &SocketAddr,
        most: usize,
        rest: usize,
    ) -> usize {
        let Some(budget) = self.group(secret, source) else { return 0 };
        let rest = u16::try_from(rest).unwrap_or(u16::MAX);
        let taken = u16::try_from(most).unwrap_or(u16::MAX).min(budget.saturating_sub(rest));
        *budget -= taken;
        taken.into()
    }

    /// Takes what an answer of `answer` bytes needs beyond a request of `request` bytes; false, and nothing is taken, if the
    /// budget does not have it.
    pub(super) fn take(
        &mut self,
        secret: &[u8; 16],
        source: &SocketAddr,
        request: usize,
        answer: usize,
    ) -> bool {
        let Ok(missing) = u16::try_from(answer.saturating_sub(request)) else { return false };
        let Some(budget) = self.group(secret, source) else { return false };
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
        budget.add(&secret, &source, 31, 28);
        budget.add(&secret, &source, 20, 28);
        assert!(!budget.take(&secret, &source, 30, 34), "a fourth byte was not paid");
        assert_eq!((0..9).filter(|_| budget.take(&secret, &source, 34, 35)).count(), 3);
        (0..100).for_each(|_| budget.add(&secret, &source, 1_464, 28));
        assert!(budget.take(&secret, &source, 0, usize::from(u16::MAX)), "it stops growing");
        assert!(!budget.take(&secret, &source, 0, 1));
    }

    #[test]
    fn most_others_have_nothing_of_it() {
        let (secret, mut budget) = ([3; 16], AmplificationBudget::default());
        budget.add(&secret, &SocketAddr::from(([10, 0, 0, 1], 9)), 1_464, 28);
        let others = (0..320).map(|port| SocketAddr::from(([10, 0, 0, 2], port)));
        let lucky = others.filter(|other| budget.take(&secret, other, 34, 35)).count();
        assert!((1..40).contains(&lucky), "{lucky} of 320 share the group");
    }
}
