//! The log: text or JSON on stderr, with a maximum rate of lines, and client addresses in plain or hashed form.
//!
//! Refused clients have at most one line per minute for each reason and network, and a limited number of lines per day.
//! Dropped datagrams have at most one line per minute. Refusals therefore appear in the log without filling it.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use ipnet::IpNet;
use siphasher::sip::SipHasher24;
use thiserror::Error;
use tokio::time::sleep;
use tracing::{Event, Level, Metadata, Subscriber, info, warn};
use tracing_subscriber::filter::FilterExt;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Context, Filter, Layer, SubscriberExt};
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogConfig, LogFormat, parse_levels};
use crate::time::Bucket;

/// The target of lines about suppressed lines. They are themselves neither suppressed nor counted.
const LIMITS: &str = "rakwire_relay::log_limit";

/// The interval at which suppressed and lost lines are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Numbers of suppressed lines, in the order of [`Class`].
static SUPPRESSED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Number of lines that could not be written, for example because the disk is full.
static LOST: AtomicU64 = AtomicU64::new(0);

/// True if the last line was written.
static IS_WRITABLE: AtomicBool = AtomicBool::new(true);

/// The reason why the log cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The level is malformed.
    #[error("'{0}' is not a log level: write it as info, or info,hyper=debug")]
    Level(String),
    /// The process already has a log.
    #[error("this process already has a log")]
    Started,
}

/// Starts the log of this process on stderr.
///
/// # Errors
///
/// If the level is malformed, or this process already has a log.
pub fn start_logging(config: &LogConfig) -> Result<(), LogError> {
    let levels = parse_levels(&config.level).ok_or_else(|| LogError::Level(config.level.clone()))?;
    let per_second = NonZeroU32::new(config.lines_per_second).unwrap_or(NonZeroU32::MIN);
    let filter = levels.and(LineLimit::new(per_second));
    // An internal error would cause a panic, and its message would go to the same failing output.
    let lines = fmt::layer().with_writer(Output(io::stderr)).log_internal_errors(false);
    let started = match config.format {
        LogFormat::Text => {
            let lines = lines.with_ansi(io::stderr().is_terminal());
            registry().with(lines.with_filter(filter)).try_init()
        }
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false).with_span_list(false);
            registry().with(lines.with_filter(filter)).try_init()
        }
    };
    started.map_err(|_| LogError::Started)
}

/// The output of lines. Failed writes are counted.
struct Output<W>(fn() -> W);

impl<'a, W: Write> MakeWriter<'a> for Output<W> {
    type Writer = Line<W>;

    fn make_writer(&'a self) -> Line<W> {
        Line { to: (self.0)(), is_counted: true }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Line<W> {
        Line { to: (self.0)(), is_counted: metadata.target() != LIMITS }
    }
}

/// A line being written.
struct Line<W> {
    to: W,
    is_counted: bool,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Writes a line, which arrives here in one call.
    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        let written = self.to.write_all(line);
        if written.is_err() && self.is_counted {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        IS_WRITABLE.store(written.is_ok(), Ordering::Relaxed);
        written
    }
}

/// Classes of lines with separate limits, so that many lines of one class do not hide the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Errors and warnings.
    Problem,
    Other,
}

impl Class {
    fn of(level: Level) -> Self {
        if level <= Level::WARN { Self::Problem } else { Self::Other }
    }
}

/// Limits the lines of each class.
struct LineLimit([DefaultDirectRateLimiter; 2]);

impl LineLimit {
    fn new(lines_per_second: NonZeroU32) -> Self {
        Self([(), ()].map(|()| RateLimiter::direct(Quota::per_second(lines_per_second))))
    }

    fn admits(&self, metadata: &Metadata<'_>) -> bool {
        if metadata.target() == LIMITS {
            return true;
        }
        let class = Class::of(*metadata.level()) as usize;
        let admitted = self.0[class].check().is_ok();
        if !admitted {
            SUPPRESSED[class].fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }
}

impl<S: Subscriber> Filter<S> for LineLimit {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.admits(event.metadata())
    }
}

/// Returns the number of lines that this process has suppressed.
pub(super) fn suppressed() -> u64 {
    SUPPRESSED.iter().map(|count| count.load(Ordering::Relaxed)).sum()
}

/// Returns the number of lines of this process that could not be written.
pub(super) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Periodically logs the number of suppressed lines, and the number of lost lines once writing works again.
pub(crate) async fn report_missing() {
    let mut reported = (suppressed(), lost());
    loop {
        sleep(REPORT_INTERVAL).await;
        let (suppressed, lost) = (suppressed(), lost());
        if suppressed > reported.0 {
            let lines = suppressed - reported.0;
            warn!(target: LIMITS, lines, "log lines beyond log.lines_per_second were omitted");
            reported.0 = suppressed;
        }
        if lost > reported.1 {
            let lines = lost - reported.1;
            warn!(target: LIMITS, lines, "log lines could not be written: check the disk or pipe behind stderr");
            if IS_WRITABLE.load(Ordering::Relaxed) {
                reported.1 = lost;
            }
        }
    }
}

/// The form of client addresses in the log.
#[derive(Clone)]
pub(crate) enum AddressLog {
    Plain,
    Hashed([u8; 16]),
    /// Addresses are omitted, because the system provided no random key.
    Hidden,
}

impl AddressLog {
    /// Creates the format. With `hashed`, an address is logged as a number that stays the same until the relay stops,
    /// so that the lines of one client can be found. The address cannot be recovered by trying all addresses without
    /// the key, which is never shown.
    pub(crate) fn new(hashed: bool) -> Self {
        if !hashed {
            return Self::Plain;
        }
        let mut key = [0; 16];
        if getrandom::fill(&mut key).is_ok() { Self::Hashed(key) } else { Self::Hidden }
    }

    /// Formats a network for the log.
    pub(crate) fn show_network(&self, network: IpNet) -> String {
        match self {
            Self::Plain => network.to_string(),
            // The hash of a network could be recovered by trying all networks.
            Self::Hashed(_) | Self::Hidden => "hidden".to_owned(),
        }
    }

    /// Formats an address for the log.
    pub(crate) const fn show(&self, address: SocketAddr) -> Shown<'_> {
        Shown { address, log: self }
    }
}

impl std::fmt::Debug for AddressLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            // The key is omitted.
            Self::Hashed(_) => "Hashed",
            Self::Hidden => "Hidden",
        })
    }
}

/// An address formatted for the log.
pub(crate) struct Shown<'l> {
    address: SocketAddr,
    log: &'l AddressLog,
}

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = match self.log {
            AddressLog::Plain => return write!(f, "{}", self.address),
            AddressLog::Hashed(key) => key,
            AddressLog::Hidden => return f.write_str("hidden"),
        };
        let mut hasher = SipHasher24::new_with_key(key);
        match self.address.ip().to_canonical() {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        write!(f, "hash:{:016x}", hasher.finish())
    }
}

/// The interval in which one line represents all refusals with the same reason and network.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);

/// The burst of refusal lines over all reasons and networks.
const BURST: u32 = 100;
const EACH: Duration = Duration::from_secs(20);

/// The interval at which each reason gets a reserved line, which other reasons cannot use up.
const RESERVED: Duration = Duration::from_secs(30 * 60);

/// The number of stored lines that triggers the removal of expired ones.
const KEPT: usize = 256;

/// The maximum number of reasons in the line about other refusals.
const NAMED_MAX: usize = 5;

/// Limits lines about refused clients: at most one per minute for each reason and network, and a limited number per
/// day. Many refusals therefore appear in the log without filling it.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// The time of the last line for each reason and network.
    lines: BTreeMap<(&'static str, IpNet), Instant>,
    /// The time of the last reserved line for each reason.
    reserved: BTreeMap<&'static str, Instant>,
    /// The limit of lines that all reasons share.
    lines_of_all: Bucket,
    /// The number of refusals without a line since the last report, by reason.
    left_out: BTreeMap<&'static str, u64>,
}

impl RefusalLog {
    /// Records a refusal. Returns true if it is to be logged.
    pub(crate) fn note(&self, now: Instant, reason: &'static str, client: IpAddr) -> bool {
        let mut seen = self.lock();
        let since = |at: &Instant| now.saturating_duration_since(*at);
        let key = (reason, network(client));
        let has_line = seen.lines.get(&key).is_none_or(|at| since(at) >= REFUSAL_INTERVAL)
            && seen.takes_line(now, reason);
        if has_line {
            if seen.lines.len() >= KEPT {
                seen.lines.retain(|_, at| since(at) < REFUSAL_INTERVAL);
            }
            seen.lines.insert(key, now);
        } else {
            *seen.left_out.entry(reason).or_default() += 1;
        }
        has_line
    }

    /// Records the refusal of a client with a possibly forged address. Returns true if it is to be logged. It uses only
    /// the reserved lines of the reason, never those that all reasons share.
    pub(crate) fn note_unproven(&self, now: Instant, reason: &'static str) -> bool {
        let mut seen = self.lock();
        let has_line = seen.takes_reserved(now, reason);
        if !has_line {
            *seen.left_out.entry(reason).or_default() += 1;
        }
        has_line
    }

    /// Returns the number of refusals without a line, by reason, and resets it.
    fn take_left_out(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.lock().left_out)
    }

    /// Logs the number of refusals without a line every minute.
    pub(crate) async fn report(&self) {
        loop {
            sleep(REFUSAL_INTERVAL).await;
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
    /// Takes a line from the limits for this reason. Returns false if no line is left.
    fn takes_line(&mut self, now: Instant, reason: &'static str) -> bool {
        self.takes_reserved(now, reason) || self.lines_of_all.take(now, EACH, EACH * BURST)
    }

    /// Takes the reserved line of this reason. Returns false if it was used recently.
    fn takes_reserved(&mut self, now: Instant, reason: &'static str) -> bool {
        let last = self.reserved.get(reason);
        let is_free = last.is_none_or(|at| now.saturating_duration_since(*at) >= RESERVED);
        if is_free {
            self.reserved.insert(reason, now);
        }
        is_free
    }
}

/// Formats the numbers of refusals by reason, the most frequent reason first.
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

/// Returns the network of an address: an IPv4 /24, or an IPv6 /48.
fn network(address: IpAddr) -> IpNet {
    let address = address.to_canonical();
    let bits = if address.is_ipv4() { 24 } else { 48 };
    IpNet::new(address, bits).map_or_else(|_| address.into(), |network| network.trunc())
}

/// The interval at which the number of drops is examined.
pub(crate) const TOTAL_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// The minimum interval between two lines.
const TOTAL_LINE_INTERVAL: Duration = Duration::from_secs(60);

/// Limits lines about datagrams dropped by the total rate to one per minute.
#[derive(Debug, Default)]
pub(crate) struct TotalLog {
    reported: u64,
    last: Option<Instant>,
}

impl TotalLog {
    /// Returns the number of drops to report now, given the number of drops since the start.
    pub(crate) fn poll(&mut self, now: Instant, dropped: u64) -> Option<u64> {
        let is_due = self.last.is_none_or(|last| now.saturating_duration_since(last) >= TOTAL_LINE_INTERVAL);
        let more = dropped.saturating_sub(self.reported);
        if more == 0 || !is_due {
            return None;
        }
        (self.reported, self.last) = (dropped, Some(now));
        Some(more)
    }
}

#[cfg(test)]
pub(crate) mod written {
    use std::sync::Arc;

    use tracing::subscriber::DefaultGuard;

    use super::*;

    #[derive(Clone, Default)]
    pub(super) struct Written(Arc<Mutex<Vec<u8>>>);

    impl Written {
        pub(super) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Captures the log lines of the current thread while it exists.
    pub(crate) struct Lines {
        written: Written,
        _log: DefaultGuard,
    }

    impl Lines {
        pub(crate) fn take() -> Self {
            let written = Written::default();
            let writer = written.clone();
            let lines = fmt::layer().with_ansi(false).with_writer(move || writer.clone());
            Self { written, _log: tracing::subscriber::set_default(registry().with(lines)) }
        }

        pub(crate) fn text(&self) -> String {
            self.written.text()
        }

        /// Returns the lines that contain this text, at least one.
        pub(crate) fn with(&self, text: &str) -> Vec<String> {
            let all = self.written.text();
            let found: Vec<String> =
                all.lines().filter(|line| line.contains(text)).map(str::to_owned).collect();
            assert!(!found.is_empty(), "{text}: {all}");
            found
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::error;
    use tracing_subscriber::filter::Targets;

    use super::written::Written;
    use super::*;

    /// A disk that may be full.
    struct Disk;

    static IS_FULL: AtomicBool = AtomicBool::new(true);
    static ON_DISK: Mutex<String> = Mutex::new(String::new());

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if IS_FULL.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            ON_DISK.lock().unwrap().push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unwritable_lines_are_counted_and_reported_later() {
        let lines = fmt::layer().with_ansi(false).with_writer(Output(|| Disk)).log_internal_errors(false);
        let _log = tracing::subscriber::set_default(registry().with(lines));
        let before = lost();
        let for_a_while = async || {
            tokio::select! {
                () = report_missing() => {}
                () = sleep(4 * REPORT_INTERVAL) => {}
            }
        };
        let _reports = tokio::join!(for_a_while(), async {
            (0..3).for_each(|number| tracing::info!(number, "lost"));
            sleep(2 * REPORT_INTERVAL + REPORT_INTERVAL / 2).await;
            assert_eq!(lost() - before, 3, "reports that are lost are not counted");
            IS_FULL.store(false, Ordering::Relaxed);
        });
        let text = ON_DISK.lock().unwrap().clone();
        let reports: Vec<&str> = text.lines().filter(|line| line.contains("could not be written")).collect();
        assert!(reports.len() == 1 && reports[0].ends_with("lines=3"), "{text}");
    }

    #[test]
    fn a_flood_of_lines_is_limited_without_hiding_problems() {
        let written = Written::default();
        let writer = written.clone();
        let limit = LineLimit::new(NonZeroU32::new(10).unwrap());
        let lines = fmt::layer().with_ansi(false).with_writer(move || writer.clone());
        let log = registry().with(lines.with_filter(Targets::new().with_default(Level::INFO).and(limit)));
        let before = suppressed();
        tracing::subscriber::with_default(log, || {
            for number in 0..10_000 {
                info!(number, "again");
                tracing::debug!("not even counted");
            }
            error!("broken");
            warn!(target: LIMITS, "lines were omitted");
        });
        let text = written.text();
        let (kept, left_out) = (text.matches("again").count() as u64, suppressed() - before);
        assert_eq!(kept + left_out, 10_000);
        assert!((10..5_000).contains(&kept), "{kept}");
        assert!(text.contains("broken") && text.contains("lines were omitted"), "{text}");
    }

    fn shown(log: &AddressLog, address: &str) -> String {
        log.show(address.parse().unwrap()).to_string()
    }

    #[test]
    fn a_hash_identifies_a_client_without_its_address() {
        let log = AddressLog::new(true);
        let first = shown(&log, "192.0.2.1:5000");
        assert!(first.starts_with("hash:") && !first.contains("192"), "{first}");
        assert_eq!(shown(&log, "192.0.2.1:6000"), first, "another connection of the same client");
        assert_eq!(shown(&log, "[::ffff:192.0.2.1]:6000"), first);
        assert_ne!(shown(&log, "192.0.2.2:5000"), first);
        assert_ne!(shown(&AddressLog::new(true), "192.0.2.1:5000"), first, "another key");
        assert_eq!(format!("{log:?}"), "Hashed", "the key is not printed");
    }

    #[test]
    fn addresses_are_logged_by_default() {
        let log = AddressLog::new(false);
        assert_eq!(shown(&log, "[2001:db8::1]:7"), "[2001:db8::1]:7");
    }

    mod refusals {
        use std::net::Ipv4Addr;

        use super::super::*;

        fn ip(text: &str) -> IpAddr {
            text.parse().unwrap()
        }

        #[test]
        fn each_network_and_reason_has_a_line_a_minute() {
            let (log, start) = (RefusalLog::default(), Instant::now());
            assert!(log.note(start, "banned", ip("192.0.2.1")));
            assert!(!log.note(start, "banned", ip("192.0.2.2")));
            assert!(!log.note(start + REFUSAL_INTERVAL / 2, "banned", ip("::ffff:192.0.2.3")));
            assert!(log.note(start, "origin", ip("192.0.2.1")), "another reason");
            assert!(log.note(start, "banned", ip("198.51.100.1")), "another network");
            assert!(log.note(start, "banned", ip("2001:db8::1")));
            assert!(!log.note(start, "banned", ip("2001:db8:0:1::1")));
            assert!(log.note(start + REFUSAL_INTERVAL, "banned", ip("192.0.2.1")));
            assert_eq!(log.take_left_out(), BTreeMap::from([("banned", 3)]));
            assert!(log.take_left_out().is_empty());
        }

        /// Returns a client in its own network.
        fn client(number: u32) -> IpAddr {
            Ipv4Addr::from(number << 8).into()
        }

        #[test]
        fn refusals_of_many_networks_leave_lines_to_other_reasons() {
            let (log, start) = (RefusalLog::default(), Instant::now());
            let lines = |at, numbers: std::ops::Range<u32>| {
                numbers.filter(|number| log.note(at, "banned", client(*number))).count()
            };
            assert_eq!(lines(start, 1..10_000), 101);
            assert_eq!(log.take_left_out()["banned"], 9_999 - 101);
            assert!(log.note(start, "origin", client(1)), "the flood leaves a line for another reason");
            assert!(!log.note(start, "origin", client(2)));
            assert_eq!(lines(start + REFUSAL_INTERVAL, 1..10_000), 3);
            assert!(log.note(start + RESERVED, "origin", client(1)));
        }

        #[test]
        fn refusals_of_forged_addresses_use_no_shared_lines() {
            let (log, start) = (RefusalLog::default(), Instant::now());
            let forged = |at| (0..10_000).filter(|_| log.note_unproven(at, "late")).count();
            assert_eq!(
                (forged(start), forged(start + REFUSAL_INTERVAL), forged(start + RESERVED)),
                (1, 0, 1)
            );
            assert_eq!(log.take_left_out()["late"], 29_998);
            let proven = (1..=BURST).filter(|number| log.note(start, "late", client(*number))).count();
            assert_eq!(proven, BURST as usize);
        }

        /// The integration test of a day's log derives its number of bytes from this limit.
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
        fn the_summary_names_the_most_frequent_reasons() {
            let left_out = BTreeMap::from([("banned", 3), ("origin", 120)]);
            assert_eq!(summary(&left_out), "120 x origin; 3 x banned");
            let many: BTreeMap<&'static str, u64> =
                (1..=12).map(|number| (&*format!("reason {number:02}").leak(), number)).collect();
            let text = summary(&many);
            assert!(text.starts_with("12 x reason 12; 11 x reason 11; "), "{text}");
            assert!(text.ends_with("8 x reason 08; 28 for 7 other reasons"), "{text}");
        }

        #[test]
        fn drops_are_logged_immediately_and_then_once_a_minute() {
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
}
