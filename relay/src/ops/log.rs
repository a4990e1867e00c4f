//! The log: text or JSON on standard error, so many lines in a second at most, with addresses of clients as they are, or hashed.

use std::hash::Hasher;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use ipnet::IpNet;
use siphasher::sip::SipHasher24;
use thiserror::Error;
use tokio::time::sleep;
use tracing::{Event, Level, Metadata, Subscriber, warn};
use tracing_subscriber::filter::FilterExt;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Context, Filter, Layer, SubscriberExt};
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogConfig, LogFormat, parse_levels};

/// The target of the lines about lines that are missing, which are neither left out nor counted among them.
const LIMITS: &str = "rakwire_relay::log_limit";

/// How often missing lines are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Lines that were left out, in the order of [`Class`].
static SUPPRESSED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Lines that could not be written, as on a full disk.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Whether the last line was written.
static IS_WRITABLE: AtomicBool = AtomicBool::new(true);

/// The log cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The level cannot be read.
    #[error("'{0}' is not a log level: write it as info, or info,hyper=debug")]
    Level(String),
    /// Something else in this process has started one.
    #[error("this process has a log already")]
    Started,
}

/// Starts the log of this process, on standard error.
///
/// # Errors
///
/// If the level cannot be read, or this process has a log already.
pub fn start_logging(config: &LogConfig) -> Result<(), LogError> {
    let levels = parse_levels(&config.level).ok_or_else(|| LogError::Level(config.level.clone()))?;
    let per_second = NonZeroU32::new(config.lines_per_second).unwrap_or(NonZeroU32::MIN);
    let filter = levels.and(LineLimit::new(per_second));
    // A line that cannot be written would be told on the same output, by a panic.
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

/// What lines are written to. Those that it does not take are counted.
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

/// A line on its way.
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

    /// Writes a line, which arrives here as a whole.
    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        let written = self.to.write_all(line);
        if written.is_err() && self.is_counted {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        IS_WRITABLE.store(written.is_ok(), Ordering::Relaxed);
        written
    }
}

/// Classes of lines, so that many of one kind do not hide the other.
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

/// How many lines this process has left out.
pub(super) fn suppressed() -> u64 {
    SUPPRESSED.iter().map(|count| count.load(Ordering::Relaxed)).sum()
}

/// How many lines of this process could not be written.
pub(super) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Logs how many lines were left out, and how many could not be written once lines can be.
pub(crate) async fn report_missing() {
    let mut reported = (suppressed(), lost());
    loop {
        sleep(REPORT_INTERVAL).await;
        let (suppressed, lost) = (suppressed(), lost());
        if suppressed > reported.0 {
            let lines = suppressed - reported.0;
            warn!(target: LIMITS, lines, "lines of the log were left out");
            reported.0 = suppressed;
        }
        if lost > reported.1 {
            let lines = lost - reported.1;
            warn!(target: LIMITS, lines, "lines of the log could not be written");
            if IS_WRITABLE.load(Ordering::Relaxed) {
                reported.1 = lost;
            }
        }
    }
}

/// How the addresses of clients are logged.
#[derive(Clone)]
pub(crate) enum AddressLog {
    Plain,
    Hashed([u8; 16]),
    /// Not at all: the system gave no key.
    Hidden,
}

impl AddressLog {
    /// With `hashed`, an address is logged as a number that is the same until the relay ends, so that the lines of one
    /// client can be found. Without the key, which nobody gets to see, it cannot be found by trying all addresses.
    pub(crate) fn new(hashed: bool) -> Self {
        if !hashed {
            return Self::Plain;
        }
        let mut key = [0; 16];
        if getrandom::fill(&mut key).is_ok() { Self::Hashed(key) } else { Self::Hidden }
    }

    /// A network for a line of the log.
    pub(crate) fn show_network(&self, network: IpNet) -> String {
        match self {
            Self::Plain => network.to_string(),
            // The hash of a network could be found by trying all of them.
            Self::Hashed(_) | Self::Hidden => "hidden".to_owned(),
        }
    }

    /// The address for a line of the log.
    pub(crate) const fn show(&self, address: SocketAddr) -> Shown<'_> {
        Shown { address, log: self }
    }
}

impl std::fmt::Debug for AddressLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            // Without the key.
            Self::Hashed(_) => "Hashed",
            Self::Hidden => "Hidden",
        })
    }
}

/// An address in a log.
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

#[cfg(test)]
pub(crate) mod written {
    use std::sync::{Arc, Mutex};

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

    /// Takes what this thread logs while it is kept.
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

        /// Those with this text, of which there is at least one.
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
    use std::sync::Mutex;

    use tracing::{error, info};
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
    async fn lines_that_cannot_be_written_are_counted_and_reported_once_there_is_room() {
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
    fn a_flood_of_lines_is_cut_and_problems_are_still_told() {
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
            warn!(target: LIMITS, "left out");
        });
        let text = written.text();
        let (kept, left_out) = (text.matches("again").count() as u64, suppressed() - before);
        assert_eq!(kept + left_out, 10_000);
        assert!((10..5_000).contains(&kept), "{kept}");
        assert!(text.contains("broken") && text.contains("left out"), "{text}");
    }

    fn shown(log: &AddressLog, address: &str) -> String {
        log.show(address.parse().unwrap()).to_string()
    }

    #[test]
    fn a_hash_names_the_client_and_not_its_address() {
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
    fn without_the_switch_addresses_are_logged() {
        let log = AddressLog::new(false);
        assert_eq!(shown(&log, "[2001:db8::1]:7"), "[2001:db8::1]:7");
    }
}
