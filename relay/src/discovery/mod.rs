//! Discovery of game servers that announce themselves in Redis or Valkey, so that many relays can find them. Relays
//! poll the store, and servers renew their announcements.
//!
//! An announcement is a key `rakwire:server:NAME` with a JSON object as its value, and a time to live. The announcement
//! of a server that stops without withdrawing it therefore expires soon.
//!
//! ```text
//! SET rakwire:server:arena-3 '{"address":"10.0.0.7:19132","kind":"raknet"}' EX 15
//! ```

mod announcement;
mod connect;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use tracing::{info, warn};

pub use announcement::{Announcement, AnnouncementError};
use announcement::{LONGEST, PREFIX, name_of};
pub use connect::DiscoveryError;
use connect::{ANSWER_MAX, Connection, StoreAddress, said};

use crate::addresses::TargetName;

/// The number of keys that the store examines per response (`COUNT` of `SCAN`).
const SCAN_COUNT: usize = 500;
/// The number of values per request. Each takes up to 1,025 bytes of the response, which has a limited total size.
const VALUES_MAX: usize = 200;
const _: () =
    assert!(VALUES_MAX * (LONGEST + 32) < ANSWER_MAX, "all values of a request fit into one response");
/// The maximum number of announced servers per relay. Further announcements are not read.
const SERVERS_MAX: usize = 1_000;
/// The assumed lifetime of a key without expiry.
const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The maximum number of responses in one search. It bounds the search of a store full of other keys.
const SCANS_MAX: usize = 10_000;

/// A store in which game servers announce themselves. The connection is opened on demand, and reopened after a loss.
#[derive(Debug)]
pub struct Store {
    address: StoreAddress,
    connection: Option<Connection>,
}

impl Store {
    /// Creates a store for a URL such as `redis://127.0.0.1/`, or `rediss://user:password@host:6379/1` for database 1
    /// over TLS.
    ///
    /// `ca` is a PEM file with the certificate authority of the store; without it, the system's trust store applies.
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// If the URL or the file is unusable.
    pub fn new(url: &str, ca: Option<&Path>) -> Result<Self, DiscoveryError> {
        Ok(Self { address: StoreAddress::new(url, ca)?, connection: None })
    }

    /// Returns the announced servers, and the unusable announcements.
    ///
    /// # Errors
    /// An error if the store does not respond, or sends too much data.
    pub async fn servers(&mut self) -> Result<Announced, DiscoveryError> {
        let mut connection = self.connect().await?;
        let found = search(&mut connection).await;
        self.keep(connection, found)
    }

    /// Announces a server for `lifetime`, at least one second. The announcement must be renewed before it expires.
    ///
    /// # Errors
    /// If the store does not respond, or refuses the announcement.
    pub async fn announce(
        &mut self,
        server: &Announcement,
        lifetime: Duration,
    ) -> Result<(), DiscoveryError> {
        let mut connection = self.connect().await?;
        let mut command = redis::cmd("SET");
        command.arg(server.key()).arg(server.value()).arg("EX").arg(lifetime.as_secs().max(1));
        let result = connection.query(&command).await;
        self.keep(connection, result)
    }

    /// Withdraws the announcement of a server.
    ///
    /// # Errors
    /// If the store does not respond, or refuses the command.
    pub async fn withdraw(&mut self, server: &Announcement) -> Result<(), DiscoveryError> {
        let mut connection = self.connect().await?;
        let mut command = redis::cmd("DEL");
        command.arg(server.key());
        let result = connection.query(&command).await;
        self.keep(connection, result)
    }

    async fn connect(&mut self) -> Result<Connection, DiscoveryError> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.address.connect().await,
        }
    }

    /// Keeps the connection for the next call, unless the command failed.
    fn keep<T>(
        &mut self,
        connection: Connection,
        result: Result<T, DiscoveryError>,
    ) -> Result<T, DiscoveryError> {
        self.connection = result.is_ok().then_some(connection);
        result
    }
}

/// The contents of a store at one time.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Announced {
    /// The servers by name, 1,000 at most.
    pub servers: BTreeMap<TargetName, Announcement>,
    /// The names of unusable announcements, with the reason, 1,000 at most.
    pub unusable: BTreeMap<TargetName, String>,
    /// The remaining lifetimes of announcements, as far as the store provides them.
    left: BTreeMap<TargetName, Duration>,
}

impl Announced {
    /// Returns true if there may be more servers than were read.
    fn is_full(&self) -> bool {
        self.servers.len() >= SERVERS_MAX
    }
}

async fn search(connection: &mut Connection) -> Result<Announced, DiscoveryError> {
    let mut found = Announced::default();
    let mut cursor = 0_u64;
    for _ in 0..SCANS_MAX {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{PREFIX}*")).arg("COUNT").arg(SCAN_COUNT);
        let (next, keys): (u64, Vec<Vec<u8>>) = connection.query(&scan).await?;
        for keys in keys.chunks(VALUES_MAX) {
            read(connection, keys, &mut found).await?;
        }
        cursor = next;
        if cursor == 0 || found.is_full() {
            break;
        }
    }
    Ok(found)
}

async fn read(
    connection: &mut Connection,
    keys: &[Vec<u8>],
    found: &mut Announced,
) -> Result<(), DiscoveryError> {
    let named: Vec<(&[u8], TargetName)> =
        keys.iter().filter_map(|key| Some((key.as_slice(), name_of(key)?))).collect();
    if named.is_empty() {
        return Ok(());
    }
    // A writer of the store can write any value. Only as many bytes of a value are read as are necessary to detect that
    // it is too long. A key of another type invalidates only its own announcement.
    let mut pipe = redis::pipe();
    for (key, _) in &named {
        pipe.cmd("GETRANGE").arg(*key).arg(0).arg(LONGEST);
    }
    let values = connection.query_each::<Vec<u8>>(pipe.ignore_errors()).await?;
    let mut pipe = redis::pipe();
    for (key, _) in &named {
        pipe.cmd("PTTL").arg(*key);
    }
    let left = connection.query_each::<i64>(pipe.ignore_errors()).await?;
    for (((_, name), value), left) in named.into_iter().zip(values).zip(left) {
        let server = value.map_err(|error| said(&error)).and_then(|value| usable(&name, &value));
        match server {
            Ok(Some(server)) if !found.is_full() => {
                found.left.extend(left.ok().and_then(lifetime).map(|left| (name.clone(), left)));
                found.servers.insert(name, server);
            }
            Ok(_) => {}
            Err(reason) if found.unusable.len() < SERVERS_MAX => drop(found.unusable.insert(name, reason)),
            Err(_) => {}
        }
    }
    Ok(())
}

/// Parses the lifetime of a key in milliseconds; negative values mean that it does not expire or no longer exists.
fn lifetime(answer: i64) -> Option<Duration> {
    match answer {
        -1 => Some(UNLIMITED),
        answer => u64::try_from(answer).ok().map(Duration::from_millis),
    }
}

/// Parses the announcement in a value, or returns the reason why it is unusable. The value is empty if the key expired
/// after it was listed.
fn usable(name: &TargetName, value: &[u8]) -> Result<Option<Announcement>, String> {
    let text = str::from_utf8(value).map_err(|_| "it is not UTF-8 text".to_owned())?;
    if text.is_empty() {
        return Ok(None);
    }
    Announcement::parse(name.clone(), text).map(Some).map_err(|error| error.to_string())
}

/// The number of announcements per lifetime: more than one, because an announcement may be lost.
const ANNOUNCEMENTS: u32 = 3;

/// Tracks whether the store responds, so that only changes are logged.
#[derive(Debug, Default)]
struct Health {
    is_lost: bool,
}

impl Health {
    fn note(&mut self, result: Result<(), &DiscoveryError>) {
        match result {
            Ok(()) if self.is_lost => info!("the store of servers answers again"),
            Err(error) if !self.is_lost => warn!("{error}"),
            Ok(()) | Err(_) => {}
        }
        self.is_lost = result.is_err();
    }
}

/// The maximum number of log lines per read of the store, which may change frequently.
const LINES_MAX: usize = 20;

/// The previous contents of the store, so that only changes are logged.
#[derive(Debug, Default)]
struct Last {
    /// The servers, with the expiry of their announcements if known.
    servers: BTreeMap<TargetName, Option<Instant>>,
    unusable: BTreeMap<TargetName, String>,
}

/// The differences between two reads of the store.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Servers that are newly announced.
    pub(crate) arrived: usize,
    /// Servers that are no longer announced in a usable form.
    pub(crate) departed: usize,
    /// Announcements that have become unusable, or are unusable for a different reason than before.
    pub(crate) unusable: usize,
}

impl Last {
    /// Logs and returns the changes found by a read with this start and end.
    fn note(&mut self, [begun, ended]: [Instant; 2], found: &Announced) -> Changes {
        // The earliest possible expiry: the lifetimes were read after the read began.
        let until = |name| found.left.get(name).and_then(|left| begun.checked_add(*left));
        let servers: BTreeMap<TargetName, Option<Instant>> =
            found.servers.keys().map(|name| (name.clone(), until(name))).collect();
        let is_new = |(name, reason): &(&TargetName, &String)| self.unusable.get(*name) != Some(*reason);
        let unusable: Vec<_> = found.unusable.iter().filter(is_new).collect();
        for (name, reason) in unusable.iter().take(LINES_MAX) {
            warn!(key = format!("{PREFIX}{name}"), %reason, "an announcement cannot be used");
        }
        let arrived: Vec<_> = servers.keys().filter(|name| !self.servers.contains_key(*name)).collect();
        for name in arrived.iter().take(LINES_MAX) {
            let address = found.servers.get(*name).map_or("", |server| server.address.as_str());
            info!(key = format!("{PREFIX}{name}"), address, "a server is announced");
        }
        let departed: Vec<_> = self.servers.iter().filter(|(name, _)| !servers.contains_key(*name)).collect();
        for (name, until) in departed.iter().take(LINES_MAX) {
            let reason = why_departed(found, name, ended, **until);
            info!(key = format!("{PREFIX}{name}"), reason, "a server is no longer announced");
        }
        let changes = Changes { arrived: arrived.len(), departed: departed.len(), unusable: unusable.len() };
        let more = [changes.unusable, changes.arrived, changes.departed];
        let more: usize = more.iter().map(|count| count.saturating_sub(LINES_MAX)).sum();
        if more > 0 {
            info!(
                announcements = more,
                "more servers were announced, withdrawn or unusable; only the first are logged"
            );
        }
        *self = Self { servers, unusable: found.unusable.clone() };
        changes
    }
}

/// Returns the reason why a server that was announced before is missing.
fn why_departed(found: &Announced, name: &TargetName, now: Instant, until: Option<Instant>) -> &'static str {
    match until {
        _ if found.unusable.contains_key(name) => "its announcement has become unusable",
        _ if found.is_full() => "the store has more servers than the relay reads",
        Some(until) if now < until => "its announcement was withdrawn",
        Some(_) => "its announcement was not repeated, and expired",
        None => "its announcement was withdrawn, or expired",
    }
}

/// Reads a store periodically, and logs changes.
#[derive(Debug)]
pub(crate) struct Watcher {
    store: Store,
    tick: Interval,
    health: Health,
    last: Last,
}

impl Watcher {
    /// Creates a watcher that reads the store immediately, and then every `period`.
    pub(crate) fn new(store: Store, period: Duration) -> Self {
        let mut tick = interval(period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { store, tick, health: Health::default(), last: Last::default() }
    }

    /// Waits for the next read, and returns the announced servers and the changes. Returns `None` if the store did not
    /// respond, which is logged.
    pub(crate) async fn next(&mut self) -> Option<(BTreeMap<TargetName, Announcement>, Changes)> {
        self.tick.tick().await;
        let begun = Instant::now();
        let found = self.store.servers().await;
        self.health.note(found.as_ref().map(drop));
        let found = found.ok()?;
        let changes = self.last.note([begun, Instant::now()], &found);
        Some((found.servers, changes))
    }
}

impl Store {
    /// Keeps a server announced until `stop` completes, and then withdraws the announcement.
    ///
    /// An announcement is valid for `lifetime` and renewed three times within it. Relays therefore drop a server that
    /// stops without withdrawing its announcement.
    ///
    /// # Errors
    /// If the store refuses the first announcement. Later failures are retried.
    pub async fn keep_announced(
        &mut self,
        server: &Announcement,
        lifetime: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<(), DiscoveryError> {
        self.announce(server, lifetime).await?;
        tokio::select! {
            () = stop => self.withdraw(server).await,
            never = self.repeat(server, lifetime) => never,
        }
    }

    async fn repeat(&mut self, server: &Announcement, lifetime: Duration) -> Result<(), DiscoveryError> {
        let mut health = Health::default();
        let mut tick = interval((lifetime / ANNOUNCEMENTS).max(Duration::from_millis(1)));
        loop {
            tick.tick().await;
            let announced = self.announce(server, lifetime).await;
            health.note(announced.as_ref().map(drop));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::ops::Lines;

    fn found(servers: &[&str], unusable: &[(&str, &str)]) -> Announced {
        let name = |text: &str| text.parse::<TargetName>().unwrap();
        let text = r#"{"address":"192.0.2.1:19132","kind":"raknet"}"#;
        let servers = servers.iter().map(|it| (name(it), Announcement::parse(name(it), text).unwrap()));
        let unusable = unusable.iter().map(|(it, reason)| (name(it), (*reason).to_owned()));
        Announced { servers: servers.collect(), unusable: unusable.collect(), ..Announced::default() }
    }

    #[test]
    fn an_announcement_counts_as_unusable_once_per_reason() {
        let mut last = Last::default();
        assert_eq!(
            last.note([Instant::now(); 2], &found(&["a"], &[("b", "no text"), ("c", "too long")])).unusable,
            2
        );
        assert_eq!(
            last.note([Instant::now(); 2], &found(&["a"], &[("b", "no text"), ("c", "no address")])).unusable,
            1
        );
        assert_eq!(last.note([Instant::now(); 2], &found(&["a", "b"], &[])).unusable, 0);
        assert_eq!(last.servers.len(), 2);
        assert_eq!(last.note([Instant::now(); 2], &found(&[], &[("b", "no text")])).unusable, 1);
    }

    #[test]
    fn unusable_announcements_are_logged_with_key_and_reason() {
        let lines = Lines::take();
        Last::default().note([Instant::now(); 2], &found(&["a"], &[("b", "no text")]));
        let line = lines.with("an announcement cannot be used").remove(0);
        assert!(line.contains("key=\"rakwire:server:b\" reason=no text"), "{line}");
    }

    #[test]
    fn arriving_and_departing_servers_are_counted() {
        let mut last = Last::default();
        let mut counts = |servers: &[&str], unusable: &[(&str, &str)]| {
            let Changes { arrived, departed, .. } = last.note([Instant::now(); 2], &found(servers, unusable));
            (arrived, departed)
        };
        assert_eq!(counts(&["a", "b"], &[]), (2, 0));
        assert_eq!(counts(&["a", "b"], &[]), (0, 0), "a repeated announcement is not counted");
        assert_eq!(counts(&["b", "c", "d"], &[]), (2, 1));
        assert_eq!(
            counts(&["c"], &[("d", "no text")]),
            (0, 2),
            "an announcement that becomes unusable counts as a departure"
        );
        let many: Vec<String> = (0..100).map(|number| format!("server-{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(counts(&many, &[]), (100, 1), "servers beyond the logged ones are counted too");
    }

    #[test]
    fn a_departed_server_is_logged_with_key_and_reason() {
        let start = Instant::now();
        let gone = |before: &Announced, seconds: u64, after: &Announced| {
            let mut last = Last::default();
            last.note([start; 2], before);
            let lines = Lines::take();
            last.note([start + Duration::from_secs(seconds); 2], after);
            let line = lines.with("a server is no longer announced").remove(0);
            assert!(line.contains("key=\"rakwire:server:a\""), "{line}");
            line
        };
        let mut announced = found(&["a"], &[]);
        let none = found(&[], &[]);
        let unknown = gone(&announced, 2, &none);
        assert!(unknown.contains("was withdrawn, or expired"), "{unknown}");
        announced.left.insert("a".parse().unwrap(), Duration::from_secs(10));
        for (seconds, after, reason) in [
            (2, &none, "its announcement was withdrawn"),
            (10, &none, "its announcement was not repeated, and expired"),
            (2, &found(&[], &[("a", "no text")]), "its announcement has become unusable"),
        ] {
            let line = gone(&announced, seconds, after);
            assert!(line.contains(&format!("reason=\"{reason}\"")), "{line}");
        }
        // The lifetime was measured at an unknown moment of the read, which takes a second.
        let at = |seconds: f32| start + Duration::from_secs_f32(seconds);
        let (mut last, lines) = (Last::default(), Lines::take());
        last.note([at(0.0), at(1.0)], &announced);
        last.note([at(10.0), at(10.5)], &none);
        lines.with("its announcement was not repeated, and expired");
        drop(lines);
        let many: Vec<String> = (0..1_000).map(|number| format!("server-{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let line = gone(&announced, 2, &found(&many, &[]));
        assert!(line.contains("the store has more servers than the relay reads"), "{line}");
    }

    /// Reads a command as Redis clients send it.
    async fn command(stream: &mut TcpStream) -> Option<Vec<Vec<u8>>> {
        async fn number(stream: &mut TcpStream) -> Option<usize> {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                line.push(stream.read_u8().await.ok()?);
            }
            str::from_utf8(&line[1..line.len() - 2]).ok()?.parse().ok()
        }
        let mut words = Vec::new();
        for _ in 0..number(stream).await? {
            let mut word = vec![0; number(stream).await? + 2];
            stream.read_exact(&mut word).await.ok()?;
            word.truncate(word.len() - 2);
            words.push(word);
        }
        Some(words)
    }

    fn bulk(text: &[u8]) -> Vec<u8> {
        [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
    }

    /// Runs a store with these keys. Keys without a value have another type.
    async fn store(entries: Vec<(&'static [u8], Option<&'static [u8]>)>) -> Store {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            while let Some(words) = command(&mut stream).await {
                let answer = match words[0].as_slice() {
                    b"SCAN" => {
                        let keys = entries.iter().flat_map(|(key, _)| bulk(key)).collect::<Vec<u8>>();
                        let head = format!("*2\r\n$1\r\n0\r\n*{}\r\n", entries.len());
                        [head.as_bytes(), &keys].concat()
                    }
                    b"GETRANGE" => {
                        let end: usize = str::from_utf8(&words[3]).unwrap().parse().unwrap();
                        match entries.iter().find(|(key, _)| *key == words[1]).and_then(|(_, value)| *value) {
                            Some(value) => bulk(value.get(..=end).unwrap_or(value)),
                            None => b"-WRONGTYPE not a string\r\n".to_vec(),
                        }
                    }
                    b"PTTL" if words[1].ends_with(b"arena") => b":9000\r\n".to_vec(),
                    b"PTTL" => b":-1\r\n".to_vec(),
                    _ => b"+OK\r\n".to_vec(),
                };
                stream.write_all(&answer).await.unwrap();
            }
        });
        Store::new(&url, None).unwrap()
    }

    #[tokio::test]
    async fn unusable_announcements_do_not_hide_others() {
        let good: &[u8] = br#"{"address":"10.0.0.7:19132","kind":"raknet"}"#;
        let mut store = store(vec![
            (b"rakwire:server:\xff", Some(good)),
            (b"rakwire:server:binary", Some(b"\xff\xfe")),
            (b"rakwire:server:list", None),
            (b"rakwire:server:long", Some(&[b' '; 5_000])),
            (b"rakwire:server:gone", Some(b"")),
            (b"rakwire:server:arena", Some(good)),
        ])
        .await;
        let found = store.servers().await.unwrap();
        assert_eq!(found.servers.keys().map(TargetName::as_str).collect::<Vec<_>>(), ["arena"]);
        let arena: TargetName = "arena".parse().unwrap();
        assert_eq!(found.left.get(&arena), Some(&Duration::from_secs(9)));
        let unusable: Vec<&str> = found.unusable.keys().map(TargetName::as_str).collect();
        assert_eq!(unusable, ["binary", "list", "long"]);
        assert!(found.unusable.values().all(|reason| !reason.is_empty()), "{found:?}");
    }

    /// Runs a store that answers every command with `answer`, repeated endlessly if `is_endless`.
    async fn hostile(answer: &'static [u8], is_endless: bool) -> Store {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                while let Some(words) = command(&mut stream).await {
                    if words[0] == b"SCAN" {
                        while stream.write_all(answer).await.is_ok() && is_endless {}
                    } else if stream.write_all(b"+OK\r\n").await.is_err() {
                        break;
                    }
                }
            }
        });
        Store::new(&url, None).unwrap()
    }

    /// A response of any form is read only up to the limit.
    #[tokio::test]
    async fn a_store_that_sends_too_much_is_disconnected() {
        static ZEROS: [u8; 65_536] = [b'0'; 65_536];
        static NESTED: [u8; 60_000] = {
            let mut nested = [b'*'; 60_000];
            let mut at = 0;
            while at < nested.len() {
                (nested[at + 1], nested[at + 2], nested[at + 3]) = (b'9', b'\r', b'\n');
                at += 4;
            }
            nested
        };
        let mut key = hostile(b"*2\r\n$1\r\n0\r\n*1\r\n$500000000\r\n", false).await;
        for mut store in [
            hostile(&ZEROS, true).await,
            hostile(b"*2\r\n$1\r\n0\r\n*99999999\r\n$3\r\nkey\r\n", true).await,
            hostile(b":1\r\n", true).await,
        ] {
            for _ in 0..2 {
                let error = store.servers().await.unwrap_err();
                let is_left = matches!(error, DiscoveryError::TooLong | DiscoveryError::Store(_));
                assert!(is_left && error.to_string().len() < 1_000, "{error}");
            }
        }
        let error = hostile(&NESTED, true).await.servers().await.unwrap_err();
        assert!(error.to_string().len() < 1_000, "{error}");
        tokio::time::pause();
        let error = key.servers().await.unwrap_err();
        assert!(
            matches!(error, DiscoveryError::Store(_)),
            "the store announces more data than it sends: {error}"
        );
    }

    #[tokio::test]
    async fn long_keys_are_ignored_unless_they_exceed_the_response_limit() {
        let long: &[u8] = Box::leak([PREFIX.as_bytes(), &[b'a'; ANSWER_MAX]].concat().into_boxed_slice());
        let error = store(vec![(long, Some(b""))]).await.servers().await.unwrap_err();
        assert!(matches!(error, DiscoveryError::TooLong), "{error}");
        let good: &[u8] = br#"{"address":"10.0.0.7:19132","kind":"raknet"}"#;
        let mut store = store(vec![
            (&long[..100_000], Some(b"")),
            (&long[..300_000], Some(b"")),
            (b"rakwire:server:arena", Some(good)),
        ])
        .await;
        assert_eq!(
            store.servers().await.unwrap().servers.len(),
            1,
            "long keys that fit into a response are ignored"
        );
    }

    #[test]
    fn errors_of_a_store_become_one_short_line() {
        let long = std::io::Error::other(format!("one\nother\x1b[31m{}", "x".repeat(10_000)));
        let line = said(&long);
        assert!(line.starts_with("one\\nother\\u{1b}[31mxx") && line.len() < 300, "{line}");
    }

    #[test]
    fn store_urls_select_the_transport_or_are_refused() {
        let is_url = |url| matches!(Store::new(url, None), Err(DiscoveryError::Url));
        assert!(is_url("rediss://10.0.0.2/#insecure") && is_url("http://10.0.0.2/") && is_url("10.0.0.2"));
        for url in
            ["redis://10.0.0.2/1", "valkey://:secret@10.0.0.2", "rediss://store.example.org", "valkeys://a"]
        {
            assert!(Store::new(url, None).is_ok(), "{url}");
        }
        let ca = Some(Path::new("/nowhere/ca.pem"));
        assert!(matches!(Store::new("redis://10.0.0.2/1", ca), Err(DiscoveryError::NoTls)));
        let error = Store::new("rediss://10.0.0.2/1", ca).unwrap_err();
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
    }
}
