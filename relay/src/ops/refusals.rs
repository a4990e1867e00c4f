//! Lines about refused clients: one a minute for each reason and network, so that many refusals neither fill the log nor hide.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use tokio::time::sleep;
use tracing::info;

/// How long one line stands for all refusals of its reason and network.
const INTERVAL: Duration = Duration::from_secs(60);

/// Reasons and networks that are told apart; all others count as one network.
const TOLD_APART_MAX: usize = 1_024;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// When each had its last line.
    lines: BTreeMap<(&'static str, IpNet), Instant>,
    /// Refusals without a line since the last report, by reason.
    left_out: BTreeMap<&'static str, u64>,
}

impl RefusalLog {
    /// Notes a refusal, and returns whether it gets a line.
    pub(crate) fn note(&self, now: Instant, reason: &'static str, client: IpAddr) -> bool {
        let mut seen = self.lock();
        let is_over = |at: &Instant| now.saturating_duration_since(*at) >= INTERVAL;
        let mut key = (reason, network(client));
        if !seen.lines.contains_key(&key) && seen.lines.len() >= TOLD_APART_MAX {
            seen.lines.retain(|_, at| !is_over(at));
            if seen.lines.len() >= TOLD_APART_MAX {
                key.1 = IpAddr::from(Ipv4Addr::UNSPECIFIED).into();
            }
        }
        let is_told = seen.lines.get(&key).is_none_or(is_over);
        if is_told {
            seen.lines.insert(key, now);
        } else {
            *seen.left_out.entry(reason).or_default() += 1;
        }
        is_told
    }

    /// The refusals without a line since the last call, by reason.
    fn take_left_out(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.lock().left_out)
    }

    /// Logs every minute how many refusals had no line.
    pub(crate) async fn report(&self) {
        loop {
            sleep(INTERVAL).await;
            for (reason, clients) in self.take_left_out() {
                info!(clients, reason, "more clients refused");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The network of an address: 24 bits of IPv4, 48 of IPv6.
fn network(address: IpAddr) -> IpNet {
    let address = address.to_canonical();
    let bits = if address.is_ipv4() { 24 } else { 48 };
    IpNet::new(address, bits).map_or_else(|_| address.into(), |network| network.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_reason_has_a_line_a_minute_for_each_network() {
        let (log, start) = (RefusalLog::default(), Instant::now());
        assert!(log.note(start, "banned", ip("192.0.2.1")));
        assert!(!log.note(start, "banned", ip("192.0.2.2")));
        assert!(!log.note(start + INTERVAL / 2, "banned", ip("::ffff:192.0.2.3")));
        assert!(log.note(start, "origin", ip("192.0.2.1")), "another reason");
        assert!(log.note(start, "banned", ip("198.51.100.1")), "another network");
        assert!(log.note(start, "banned", ip("2001:db8::1")));
        assert!(!log.note(start, "banned", ip("2001:db8:0:1::1")));
        assert!(log.note(start + INTERVAL, "banned", ip("192.0.2.1")));
        assert_eq!(log.take_left_out(), BTreeMap::from([("banned", 3)]));
        assert!(log.take_left_out().is_empty());
    }

    #[test]
    fn refusals_of_many_networks_have_few_lines() {
        let (log, start) = (RefusalLog::default(), Instant::now());
        let client = |number: u32| IpAddr::from(Ipv4Addr::from(number << 8));
        let lines = (1..10_000).filter(|number| log.note(start, "banned", client(*number))).count();
        assert_eq!(lines, TOLD_APART_MAX + 1);
        assert_eq!(log.take_left_out()["banned"], 9_999 - lines as u64);
        assert!(log.note(start + INTERVAL, "banned", client(1)));
    }
}
