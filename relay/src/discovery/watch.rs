//! Looking into the store again and again, and staying announced in it.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use tracing::{info, warn};

use super::announcement::{Announcement, PREFIX};
use super::error::DiscoveryError;
use super::store::{Announced, Store};
use crate::target::TargetName;

/// How often a server announces itself within the time that an announcement holds: one may be lost.
const ANNOUNCEMENTS: u32 = 3;

/// Whether the store has answered the last time, so that only changes are logged.
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

/// How many lines one look into the store may log. A store that many may write to changes as often as they like.
const LINES_MAX: usize = 20;

/// What the store had the last time, so that only changes are logged.
#[derive(Debug, Default)]
struct Last {
    /// The servers, with the time until which they were announced then, if the store says so.
    servers: BTreeMap<TargetName, Option<Instant>>,
    unusable: BTreeMap<TargetName, String>,
}

/// What one look into the store has shown to be different from the one before.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Servers that are announced now.
    pub(crate) arrived: usize,
    /// Servers that are announced no more, or in a way that cannot be used.
    pub(crate) departed: usize,
    /// Announcements that cannot be used now, or for another reason than before.
    pub(crate) unusable: usize,
}

impl Last {
    /// Logs and returns what has changed, by a look that began and ended at these times.
    fn note(&mut self, [begun, ended]: [Instant; 2], found: &Announced) -> Changes {
        // The earliest time: the lifetimes were read since the look began.
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
            info!(key = format!("{PREFIX}{name}"), reason, "a server is announced no more");
        }
        let changes = Changes { arrived: arrived.len(), departed: departed.len(), unusable: unusable.len() };
        let more = [changes.unusable, changes.arrived, changes.departed];
        let more: usize = more.iter().map(|count| count.saturating_sub(LINES_MAX)).sum();
        if more > 0 {
            info!(announcements = more, "more announcements came, went or cannot be used");
        }
        *self = Self { servers, unusable: found.unusable.clone() };
        changes
    }
}

/// Why a server that was announced until then is not among those that are found.
fn why_departed(found: &Announced, name: &TargetName, now: Instant, until: Option<Instant>) -> &'static str {
    match until {
        _ if found.unusable.contains_key(name) => "its announcement cannot be used any more",
        _ if found.is_full() => "the store has more servers than are read",
        Some(until) if now < until => "its announcement was taken back",
        Some(_) => "its announcement was not repeated, and expired",
        None => "its announcement was taken back, or expired",
    }
}

/// Looks into a store again and again.
#[derive(Debug)]
pub(crate) struct Watcher {
    store: Store,
    tick: Interval,
    health: Health,
    last: Last,
}

impl Watcher {
    /// Looks at once and then every `period`.
    pub(crate) fn new(store: Store, period: Duration) -> Self {
        let mut tick = interval(period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { store, tick, health: Health::default(), last: Last::default() }
    }

    /// The servers that are announced, when it has looked the next time, and what has changed; none if the store has not answered,
    /// which is logged.
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
    /// Keeps a server announced until `stop`, and takes the announcement back then. An announcement holds for `lifetime`
    /// and is repeated three times as often, so that relays forget a server that ends without a word.
    ///
    /// # Errors
    /// If the store refuses the first announcement. A store that is away later is tried again.
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
    fn an_announcement_counts_as_unusable_when_it_becomes_so_and_when_the_reason_is_another_one() {
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
    fn an_announcement_that_cannot_be_used_has_a_line_with_its_key_and_the_reason() {
        let lines = Lines::take();
        Last::default().note([Instant::now(); 2], &found(&["a"], &[("b", "no text")]));
        let line = lines.with("an announcement cannot be used").remove(0);
        assert!(line.contains("key=\"rakwire:server:b\" reason=no text"), "{line}");
    }

    #[test]
    fn servers_that_come_and_go_are_counted() {
        let mut last = Last::default();
        let mut counts = |servers: &[&str], unusable: &[(&str, &str)]| {
            let Changes { arrived, departed, .. } = last.note([Instant::now(); 2], &found(servers, unusable));
            (arrived, departed)
        };
        assert_eq!(counts(&["a", "b"], &[]), (2, 0));
        assert_eq!(counts(&["a", "b"], &[]), (0, 0), "it is announced again and again");
        assert_eq!(counts(&["b", "c", "d"], &[]), (2, 1));
        assert_eq!(
            counts(&["c"], &[("d", "no text")]),
            (0, 2),
            "an announcement that cannot be used is none"
        );
        let many: Vec<String> = (0..100).map(|number| format!("server-{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(counts(&many, &[]), (100, 1), "also those beyond the lines of a look");
    }

    #[test]
    fn a_server_that_goes_has_a_line_with_its_key_and_the_reason() {
        let start = Instant::now();
        let gone = |before: &Announced, seconds: u64, after: &Announced| {
            let mut last = Last::default();
            last.note([start; 2], before);
            let lines = Lines::take();
            last.note([start + Duration::from_secs(seconds); 2], after);
            let line = lines.with("a server is announced no more").remove(0);
            assert!(line.contains("key=\"rakwire:server:a\""), "{line}");
            line
        };
        let mut announced = found(&["a"], &[]);
        let none = found(&[], &[]);
        let unknown = gone(&announced, 2, &none);
        assert!(unknown.contains("was taken back, or expired"), "{unknown}");
        announced.left.insert("a".parse().unwrap(), Duration::from_secs(10));
        for (seconds, after, reason) in [
            (2, &none, "its announcement was taken back"),
            (10, &none, "its announcement was not repeated, and expired"),
            (2, &found(&[], &[("a", "no text")]), "its announcement cannot be used any more"),
        ] {
            let line = gone(&announced, seconds, after);
            assert!(line.contains(&format!("reason=\"{reason}\"")), "{line}");
        }
        // The store counts the lifetime from some moment of a look that takes a second.
        let at = |seconds: f32| start + Duration::from_secs_f32(seconds);
        let (mut last, lines) = (Last::default(), Lines::take());
        last.note([at(0.0), at(1.0)], &announced);
        last.note([at(10.0), at(10.5)], &none);
        lines.with("its announcement was not repeated, and expired");
        drop(lines);
        let many: Vec<String> = (0..1_000).map(|number| format!("server-{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let line = gone(&announced, 2, &found(&many, &[]));
        assert!(line.contains("the store has more servers than are read"), "{line}");
    }
}
