//! How many pongs strangers get: a pong may be thirteen times as long as its ping, and the ping's source may be forged.

use core::hash::Hasher;
use core::net::IpAddr;

use siphasher::sip::SipHasher13;

use super::bans::AddressPattern;
use super::config::Config;
use super::extent::{SERVER, room};
use crate::time::Instant;

const NETWORKS: usize = room(SERVER, 32);

/// Tokens that fill up with time, at most a second's worth.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// Thousandths of a pong.
    taken: u32,
    at: u32,
}

impl Bucket {
    /// Takes a token; false when none is left.
    fn take(&mut self, rate: u16, now: u32) -> bool {
        let refilled = now.wrapping_sub(self.at).min(1_000) * u32::from(rate);
        self.at = now;
        self.taken = self.taken.saturating_sub(refilled);
        let possible = self.taken + 1_000 <= u32::from(rate) * 1_000;
        if possible {
            self.taken += 1_000;
        }
        possible
    }
}

/// A bucket for all and one for each of a fixed number of groups of networks, by a keyed hash.
#[derive(Debug, Default)]
pub(super) struct PongLimit {
    all: Bucket,
    networks: [Bucket; NETWORKS],
}

impl PongLimit {
    /// Whether `to` may have another pong.
    pub(super) fn admits(&mut self, config: &Config, now: Instant, to: IpAddr) -> bool {
        let mut hasher = SipHasher13::new_with_key(&config.secret);
        hasher.write_u128(AddressPattern::network_of(to).first());
        let place = usize::try_from(hasher.finish() % NETWORKS as u64).unwrap_or(0);
        let millis = u32::try_from(now.as_millis() & u64::from(u32::MAX)).unwrap_or(0);
        let Some(network) = self.networks.get_mut(place) else { return false };
        network.take(config.pongs_per_network, millis) && self.all.take(config.pongs_per_second, millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_gets_its_share_and_all_together_no_more_than_theirs() {
        let mut config = Config::new([3; 32]);
        config.pongs_per_network = 5;
        config.pongs_per_second = 12;
        let mut limit = PongLimit::default();
        let mut count = |now, network: u8| {
            let to = IpAddr::from([10, network, 0, 1]);
            (0..100).filter(|_| limit.admits(&config, Instant::from_micros(now), to)).count()
        };
        assert_eq!(count(1_000_000, 1), 5);
        assert_eq!(count(1_000_000, 1), 0);
        let others: usize = (2..50).map(|network| count(1_000_000, network)).sum();
        assert_eq!(others, 7);
        assert_eq!(count(1_200_000, 1), 1);
        assert_eq!(count(900_000_000, 1), 5);
    }

    #[test]
    fn a_rate_of_zero_answers_nobody() {
        let mut config = Config::new([3; 32]);
        config.pongs_per_second = 0;
        assert!(!PongLimit::default().admits(&config, Instant::ZERO, IpAddr::from([127, 0, 0, 1])));
    }
}
