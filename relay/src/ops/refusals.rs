//! Lines about what clients are refused, so that much of it neither fills the log nor hides: of refused clients at most one a minute for
//! each reason and network, and few of all in a day; of datagrams that were dropped one a minute.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use tokio::time::sleep;
use tracing::info;

use crate::time::Bucket;

/// How long one line stands for all refusals of its reason and network.
const INTERVAL: Duration = Duration::from_secs(60);

/// How many lines all reasons and networks have at once, and how often one more in the long run.
const BURST: u32 = 100;
const EACH: Duration = Duration::from_secs(20);

/// How often a reason has a line that others cannot use up.
const RESERVED: Duration = Duration::from_secs(30 * 60);

/// How many lines are remembered before those that are over are forgotten.
const KEPT: usize = 256;

/// How many reasons the line about other refusals names.
const NAMED_MAX: usize = 5;

/// Lines about refused clients: at most one a minute for each reason and network, and few of all in a day, so that many refusals neither
/// fill the log nor hide.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// When each had its last line.
    lines: BTreeMap<(&'static str, IpNet), Instant>,
    /// When each reason had its last line that counts for it alone.
    reserved: BTreeMap<&'static str, Instant>,
    /// The lines of all reasons together.
    lines_of_all: Bucket,
    /// Refusals without a line since the last report, by reason.
    left_out: BTreeMap<&'static str, u64>,
}

impl RefusalLog {
    /// Notes a refusal, and returns whether it gets a line.
    pub(crate) fn note(&self, now: Instant, reason: &'static str, client: IpAddr) -> bool {
        let mut seen = self.lock();
        let since = |at: &Instant| now.saturating_duration_since(*at);
        let key = (reason, network(client));
        let has_line =
            seen.lines.get(&key).is_none_or(|at| since(at) >= INTERVAL) && seen.takes_line(now, reason);
        if has_line {
            if seen.lines.len() >= KEPT {
                seen.lines.retain(|_, at| since(at) < INTERVAL);
            }
            seen.lines.insert(key, now);
        } else {
            *seen.left_out.entry(reason).or_default() += 1;
        }
        has_line
    }

    /// Notes a refusal of a client whose address may be forged, and returns whether it gets a line: one that the reason has for itself, and
    /// none of those of all reasons.
    pub(crate) fn note_unproven(&self, now: Instant, reason: &'static str) -> bool {
        let mut seen = self.lock();
        let has_line = seen.takes_reserved(now, reason);
        if !has_line {
            *seen.left_out.entry(reason).or_default() += 1;
        }
        has_line
    }

    /// The refusals without a line since the last call, by reason.
    fn take_left_out(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.lock().left_out)
    }

    /// Logs every minute how many refusals had no line.
    pub(crate) async fn report(&self) {
        loop {
            sleep(INTERVAL).await;
            let left_out = self.take_left_out();
            let clients: u64 = left_out.values().sum();
            if clients > 0 {
                info!(clients, reasons = summary(&left_out), "more clients refused");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Whether the lines of a day leave one for this reason, which it then has.
    fn takes_line(&mut self, now: Instant, reason: &'static str) -> bool {
        self.takes_reserved(now, reason) || self.lines_of_all.take(now, EACH, EACH * BURST)
    }

    /// Whether this reason has had no line for itself lately, which it then has.
    fn takes_reserved(&mut self, now: Instant, reason: &'static str) -> bool {
        let last = self.reserved.get(reason);
        let is_free = last.is_none_or(|at| now.saturating_duration_since(*at) >= RESERVED);
        if is_free {
            self.reserved.insert(reason, now);
        }
        is_free
    }
}

/// How many refusals each reason had, those with most of them first.
fn summary(left_out: &BTreeMap<&'static str, u64>) -> String {
    let mut reasons: Vec<_> = left_out.iter().map(|(reason, clients)| (*clients, *reason)).collect();
    reasons.sort_unstable_by(|one, other| other.cmp(one));
    let named = reasons.iter().take(NAMED_MAX).map(|(clients, reason)| format!("{clients} x {reason}"));
    let mut text = named.collect::<Vec<_>>().join("; ");
    if let Some(others) = reasons.get(NAMED_MAX..).filter(|others| !others.is_empty()) {
        let clients: u64 = others.iter().map(|(clients, _)| clients).sum();
        text.push_str(&format!("; {clients} for {} other reasons", others.len()));
    }
    text
}

/// The network of an address: 24 bits of IPv4, 48 of IPv6.
fn network(address: IpAddr) -> IpNet {
    let address = address.to_canonical();
    let bits = if address.is_ipv4() { 24 } else { 48 };
    IpNet::new(address, bits).map_or_else(|_| address.into(), |network| network.trunc())
}

/// How often the counts are looked at.
pub(crate) const TOTAL_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// The least time between two lines.
const LINES: Duration = Duration::from_secs(60);

/// A line about datagrams that were dropped as all clients together had more than they may: at most once a minute.
#[derive(Debug, Default)]
pub(crate) struct TotalLog {
    told: u64,
    last: Option<Instant>,
}

impl TotalLog {
    /// The datagrams that a line is due about, of so many that were dropped since the start.
    pub(crate) fn poll(&mut self, now: Instant, dropped: u64) -> Option<u64> {
        let is_due = self.last.is_none_or(|last| now.saturating_duration_since(last) >= LINES);
        let more = dropped.saturating_sub(self.told);
        if more == 0 || !is_due {
            return None;
        }
        (self.told, self.last) = (dropped, Some(now));
        Some(more)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

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

    /// A client in a network of its own.
    fn client(number: u32) -> IpAddr {
        Ipv4Addr::from(number << 8).into()
    }

    #[test]
    fn refusals_of_many_networks_have_few_lines_and_leave_one_to_other_reasons() {
        let (log, start) = (RefusalLog::default(), Instant::now());
        let lines = |at, numbers: std::ops::Range<u32>| {
            numbers.filter(|number| log.note(at, "banned", client(*number))).count()
        };
        assert_eq!(lines(start, 1..10_000), 101);
        assert_eq!(log.take_left_out()["banned"], 9_999 - 101);
        assert!(log.note(start, "origin", client(1)), "the flood leaves a line to another reason");
        assert!(!log.note(start, "origin", client(2)));
        assert_eq!(lines(start + INTERVAL, 1..10_000), 3);
        assert!(log.note(start + RESERVED, "origin", client(1)));
    }

    #[test]
    fn a_flood_of_forged_addresses_takes_no_lines_of_proven_ones() {
        let (log, start) = (RefusalLog::default(), Instant::now());
        let forged = |at| (0..10_000).filter(|_| log.note_unproven(at, "late")).count();
        assert_eq!((forged(start), forged(start + INTERVAL), forged(start + RESERVED)), (1, 0, 1));
        assert_eq!(log.take_left_out()["late"], 29_998);
        let proven = (1..=BURST).filter(|number| log.note(start, "late", client(*number))).count();
        assert_eq!(proven, BURST as usize);
    }

    /// The integration test of the log of a day computes its bytes from this number.
    #[test]
    fn a_day_of_floods_for_all_reasons_has_at_most_7_000_lines() {
        const REASONS: usize = 50;
        let reasons: Vec<&'static str> =
            (0..REASONS).map(|number| &*format!("reason {number}").leak()).collect();
        let (log, start) = (RefusalLog::default(), Instant::now());
        let mut lines = 0;
        for second in 0..24 * 60 * 60_u32 {
            let at = start + Duration::from_secs(second.into());
            for number in 10 * second..10 * second + 10 {
                lines += usize::from(log.note(at, reasons[number as usize % REASONS], client(number)));
            }
            assert!(log.lock().lines.len() <= KEPT);
        }
        assert!((6_000..=7_000).contains(&lines), "{lines}");
    }

    #[test]
    fn the_line_about_more_refusals_names_the_reasons_with_most_of_them() {
        let left_out = BTreeMap::from([("banned", 3), ("origin", 120)]);
        assert_eq!(summary(&left_out), "120 x origin; 3 x banned");
        let many: BTreeMap<&'static str, u64> =
            (1..=12).map(|number| (&*format!("reason {number:02}").leak(), number)).collect();
        let text = summary(&many);
        assert!(text.starts_with("12 x reason 12; 11 x reason 11; "), "{text}");
        assert!(text.ends_with("8 x reason 08; 28 for 7 other reasons"), "{text}");
    }

    #[test]
    fn the_first_drop_has_a_line_and_later_ones_one_a_minute() {
        let (mut log, now) = (TotalLog::default(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(log.poll(at(0), 0), None);
        assert_eq!(log.poll(at(1), 3), Some(3));
        assert_eq!(log.poll(at(2), 10), None);
        assert_eq!(log.poll(at(60), 12), None);
        assert_eq!(log.poll(at(61), 12), Some(9));
        assert_eq!(log.poll(at(200), 12), None, "nothing more was dropped");
    }
}
