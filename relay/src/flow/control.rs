//! Control messages to clients, and the table of resumable flows by their secrets. A client gets the first message of
//! its flow on each connection, and reports of dropped datagrams at most once a second.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::str::FromStr;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use super::counters::{Direction, DropReason};

/// The WebSocket subprotocol with which a client accepts control messages.
pub const FLOW_PROTOCOL: &str = "rakwire.relay.1";

/// The only control message that a client can send: it requests the `flow` message.
pub const FLOW_REQUEST: &str = r#"{"type":"flow"}"#;

/// The prefix of control messages on a transport that carries only datagrams.
pub const CONTROL_PREFIX: &[u8] = b"rakwire:";

/// The secret with which a client resumes its flow: 128 random bits. `Debug` does not show them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Secret([u8; Self::LEN]);

impl Secret {
    const LEN: usize = 16;

    /// Creates a secret from these bytes, which must be unpredictable.
    #[must_use]
    pub const fn new(random: [u8; 16]) -> Self {
        Self(random)
    }
}

/// Formats the secret as 22 characters of base64url without padding.
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl FromStr for Secret {
    type Err = SecretSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; Self::LEN];
        // The buffer is exactly as long as a secret, so longer texts are rejected.
        match URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
            Ok(Self::LEN) => Ok(Self(bytes)),
            Ok(_) | Err(_) => Err(SecretSyntaxError),
        }
    }
}

/// The error for a text that is not a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a secret of a flow has 22 characters of base64url")]
pub struct SecretSyntaxError;

/// Returns the first message to a client, with its maximum datagram length and the secret to resume the flow.
fn flow_message(secret: &Secret, resume_within: Duration, resumed: bool, max_datagram: usize) -> String {
    let within = resume_within.as_millis();
    // None of the values needs escaping.
    format!(
        r#"{{"type":"flow","resume":"{secret}","resume_within_ms":{within},"resumed":{resumed},"max_datagram":{max_datagram}}}"#
    )
}

/// Returns the message that the relay shuts down, with the time until the flow ends.
fn draining_message(left: Duration) -> String {
    format!(r#"{{"type":"draining","left_ms":{}}}"#, left.as_millis())
}

/// Returns the number of drops since the start of the flow, by direction and reason. Reasons without drops are omitted.
fn drops_message(count: impl Fn(DropReason) -> u64) -> String {
    let mut text = r#"{"type":"drops""#.to_owned();
    for (name, direction) in [("to_client", Direction::ToClient), ("to_server", Direction::ToServer)] {
        let reasons = DropReason::ALL.into_iter().filter(|reason| reason.direction() == direction);
        let counts = reasons.map(|reason| (reason.name(), count(reason))).filter(|(_, count)| *count > 0);
        let counts: Vec<String> = counts.map(|(name, count)| format!(r#""{name}":{count}"#)).collect();
        // Writing to a string does not fail.
        let _ = write!(text, r#","{name}":{{{}}}"#, counts.join(","));
    }
    text.push('}');
    text
}

/// The minimum time between two reports of drops.
const INTERVAL: Duration = Duration::from_secs(1);

/// The minimum time between two requested first messages.
const GREETING_INTERVAL: Duration = Duration::from_millis(100);

/// Number of notifications of a drain per connection, because a transport may lose messages.
const DRAINING_TIMES: u32 = 3;

/// The pending notifications of a drain.
#[derive(Debug, Clone, Copy)]
struct Draining {
    /// The time at which the flow ends.
    until: Instant,
    /// The number of notifications that remain to be sent.
    times: u32,
    next: Instant,
    is_due: bool,
}

/// The state of a connection's first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greeting {
    Sent,
    /// The client has requested the message again, shortly after it was sent.
    Asked,
    Due,
}

/// Schedules the messages to a client: the first message of its flow, the notification of a drain, and reports of
/// drops, at most once a second.
#[derive(Debug)]
pub(super) struct Reports {
    secret: Secret,
    /// True if the client resumed the flow on its current connection.
    is_resumed: bool,
    greeting: Greeting,
    /// The earliest time at which another request for the first message is answered. The first request is answered
    /// immediately, because the message may have been lost.
    next_greeting: Instant,
    has_requested: bool,
    drops: [u32; DropReason::ALL.len()],
    /// True if there are drops that have not been reported.
    is_behind: bool,
    /// True if the next report is due, and waits only until the client's connection is writable.
    is_due: bool,
    next_report: Instant,
    draining: Option<Draining>,
}

impl Reports {
    pub(super) const fn new(secret: Secret, now: Instant) -> Self {
        Self {
            secret,
            is_resumed: false,
            greeting: Greeting::Due,
            next_greeting: now,
            has_requested: false,
            drops: [0; DropReason::ALL.len()],
            is_behind: false,
            is_due: false,
            next_report: now,
            draining: None,
        }
    }

    pub(super) const fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(super) fn count(&mut self, reason: DropReason, count: u64) {
        let sum = &mut self.drops[reason as usize];
        *sum = sum.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.is_behind = true;
    }

    /// Schedules all messages again for a new connection of the client.
    pub(super) fn handle_attached(&mut self, now: Instant) {
        (self.is_resumed, self.greeting, self.has_requested) = (true, Greeting::Due, false);
        self.is_behind = self.drops.iter().any(|count| *count > 0);
        self.next_report = now;
        if let Some(Draining { until, .. }) = self.draining {
            self.handle_draining(now, until);
        }
    }

    /// Schedules the notifications of a drain after which the flow ends at `until`.
    pub(super) const fn handle_draining(&mut self, now: Instant, until: Instant) {
        self.draining = Some(Draining { until, times: DRAINING_TIMES, next: now, is_due: true });
    }

    /// Handles a client's request for the first message, which the client has missed or not received yet.
    pub(super) fn handle_flow_request(&mut self, now: Instant) {
        if self.greeting == Greeting::Sent {
            self.greeting = Greeting::Asked;
            self.has_requested = true;
        }
        self.handle_timeout(now);
    }

    /// Returns the next message that is due.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        resume_within: Duration,
        max_datagram: usize,
    ) -> Option<String> {
        self.handle_timeout(now);
        if self.greeting == Greeting::Due {
            self.greeting = Greeting::Sent;
            self.next_greeting = if self.has_requested { now + GREETING_INTERVAL } else { now };
            return Some(flow_message(&self.secret, resume_within, self.is_resumed, max_datagram));
        }
        if let Some(draining) = self.draining.as_mut().filter(|draining| draining.is_due) {
            draining.is_due = false;
            draining.times = draining.times.saturating_sub(1);
            draining.next = now + INTERVAL;
            return Some(draining_message(draining.until.saturating_duration_since(now)));
        }
        if !self.is_due {
            return None;
        }
        (self.is_behind, self.is_due) = (false, false);
        self.next_report = now + INTERVAL;
        Some(drops_message(|reason| self.drops[reason as usize].into()))
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.is_due |= self.is_behind && now >= self.next_report;
        if let Some(draining) = &mut self.draining {
            draining.is_due |= draining.times > 0 && now >= draining.next;
        }
        if self.greeting == Greeting::Asked && now >= self.next_greeting {
            self.greeting = Greeting::Due;
        }
    }

    /// Returns when [`Reports::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let report = (self.is_behind && !self.is_due).then_some(self.next_report);
        let greeting = (self.greeting == Greeting::Asked).then_some(self.next_greeting);
        let waiting = self.draining.filter(|draining| draining.times > 0 && !draining.is_due);
        let draining = waiting.map(|draining| draining.next);
        report.into_iter().chain(greeting).chain(draining).min()
    }
}

/// Number of resumptions that a flow admits in a burst. A client that has lost its connection opens several
/// connections, and retries with growing pauses.
const RETURN_BURST: u32 = 10;

/// The interval after which a flow admits another resumption.
const RETURN_INTERVAL: Duration = Duration::from_secs(1);

/// The flows that can be resumed, by their secrets.
///
/// `H` is a handle to a flow. Each flow has at most one entry.
///
/// ```
/// use rakwire_relay::flow::{ResumeTable, Secret};
///
/// let mut table = ResumeTable::new();
/// let secret = Secret::new([7; 16]);
/// table.insert(secret, "game", "flow 1");
/// assert_eq!(table.find(&secret, "game"), Some(&"flow 1"));
/// assert_eq!(table.find(&secret, "other"), None);
/// assert_eq!(table.remove(&secret), Some("flow 1"));
/// ```
#[derive(Debug)]
pub struct ResumeTable<H> {
    flows: HashMap<Secret, Entry<H>>,
    /// Flows without a client, ordered by the time at which they lost it.
    detached: BTreeMap<u64, Secret>,
    next_number: u64,
}

#[derive(Debug)]
struct Entry<H> {
    target: Box<str>,
    handle: H,
    /// The time at which the flow admits a complete burst of resumptions again.
    returns_full_at: Option<Instant>,
    /// The key of the entry in `detached`, or `None` while the flow has a client.
    detached: Option<u64>,
}

impl<H> Default for ResumeTable<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H> ResumeTable<H> {
    /// Creates an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self { flows: HashMap::new(), detached: BTreeMap::new(), next_number: 0 }
    }

    /// Adds a flow to `target` that has a client.
    pub fn insert(&mut self, secret: Secret, target: &str, handle: H) {
        self.remove(&secret);
        self.flows
            .insert(secret, Entry { target: target.into(), handle, returns_full_at: None, detached: None });
    }

    /// Returns the flow with this secret, if it goes to `target`.
    #[must_use]
    pub fn find(&self, secret: &Secret, target: &str) -> Option<&H> {
        self.flows.get(secret).filter(|entry| *entry.target == *target).map(|entry| &entry.handle)
    }

    /// Returns true if a connection with this secret and target counts as a returning client. A flow admits a burst of
    /// ten, and then one per second.
    ///
    /// Further connections, and connections with an unknown secret, count as new clients.
    pub fn admits_resumption(&mut self, secret: &Secret, target: &str, now: Instant) -> bool {
        let entry = self.flows.get_mut(secret).filter(|entry| *entry.target == *target);
        let Some(entry) = entry else { return false };
        let full_at = entry.returns_full_at.map_or(now, |full_at| full_at.max(now)) + RETURN_INTERVAL;
        let is_admitted = full_at.saturating_duration_since(now) <= RETURN_INTERVAL * RETURN_BURST;
        if is_admitted {
            entry.returns_full_at = Some(full_at);
        }
        is_admitted
    }

    /// Records that the flow has lost its client.
    pub fn set_detached(&mut self, secret: &Secret) {
        self.set_attached(secret);
        if let Some(entry) = self.flows.get_mut(secret) {
            entry.detached = Some(self.next_number);
            self.detached.insert(self.next_number, *secret);
            self.next_number += 1;
        }
    }

    /// Records that the flow has a client again.
    pub fn set_attached(&mut self, secret: &Secret) {
        let number = self.flows.get_mut(secret).and_then(|entry| entry.detached.take());
        number.and_then(|number| self.detached.remove(&number));
    }

    /// Removes a flow that has ended.
    pub fn remove(&mut self, secret: &Secret) -> Option<H> {
        self.set_attached(secret);
        self.flows.remove(secret).map(|entry| entry.handle)
    }

    /// Selects the flow that has waited longest for its client, to be ended in favor of another client.
    ///
    /// Each flow is selected only once. It stays in the table until it is [removed](Self::remove), because its client
    /// may return before it ends.
    pub fn evict(&mut self) -> Option<&H> {
        let (_, secret) = self.detached.pop_first()?;
        let entry = self.flows.get_mut(&secret)?;
        entry.detached = None;
        Some(&entry.handle)
    }

    /// Returns the number of flows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns true if there are no flows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_round_trips_as_text() {
        let secret = Secret::new([0xfb; 16]);
        assert_eq!(secret.to_string(), "-_v7-_v7-_v7-_v7-_v7-w");
        assert_eq!(secret.to_string().parse(), Ok(secret));
        for text in ["", "AA", "-_v7-_v7-_v7-_v7-_v7-", "-_v7-_v7-_v7-_v7-_v7-w==", "+/v7-_v7-_v7-_v7-_v7-w"]
        {
            assert_eq!(text.parse::<Secret>(), Err(SecretSyntaxError), "{text}");
        }
        assert_eq!("A".repeat(23).parse::<Secret>(), Err(SecretSyntaxError));
        assert_eq!("A".repeat(10_000).parse::<Secret>(), Err(SecretSyntaxError));
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn messages_have_the_documented_form() {
        assert_eq!(
            flow_message(&Secret::new([0; 16]), Duration::from_secs(30), false, 1472),
            r#"{"type":"flow","resume":"AAAAAAAAAAAAAAAAAAAAAA","resume_within_ms":30000,"resumed":false,"max_datagram":1472}"#
        );
        let counts =
            [(DropReason::ClientTooOld, 12), (DropReason::ClientQueueFull, 3), (DropReason::RateLimited, 1)];
        let count = |reason| counts.iter().find(|(found, _)| *found == reason).map_or(0, |(_, count)| *count);
        assert_eq!(
            drops_message(count),
            r#"{"type":"drops","to_client":{"queue_full":3,"too_old":12},"to_server":{"rate_limited":1}}"#
        );
        assert_eq!(draining_message(Duration::from_millis(4_999)), r#"{"type":"draining","left_ms":4999}"#);
        assert_eq!(drops_message(|_| 0), r#"{"type":"drops","to_client":{},"to_server":{}}"#);
    }

    #[test]
    fn a_drain_is_announced_three_times_per_connection() {
        let now = Instant::now();
        let at = |millis| now + Duration::from_millis(millis);
        let mut reports = Reports::new(Secret::new([1; 16]), now);
        let poll = |reports: &mut Reports, millis| reports.poll(at(millis), INTERVAL, 1472);
        assert!(poll(&mut reports, 0).is_some_and(|text| text.contains("\"flow\"")));
        reports.handle_draining(at(0), at(5_000));
        assert_eq!(poll(&mut reports, 1).as_deref(), Some(r#"{"type":"draining","left_ms":4999}"#));
        assert_eq!((poll(&mut reports, 1), reports.poll_timeout()), (None, Some(at(1_001))));
        assert_eq!(poll(&mut reports, 1_001).as_deref(), Some(r#"{"type":"draining","left_ms":3999}"#));
        assert_eq!(poll(&mut reports, 6_000).as_deref(), Some(r#"{"type":"draining","left_ms":0}"#));
        assert_eq!((poll(&mut reports, 9_000), reports.poll_timeout()), (None, None));
        reports.handle_attached(at(9_000));
        assert!(poll(&mut reports, 9_000).is_some_and(|text| text.contains("\"flow\"")));
        assert!(poll(&mut reports, 9_000).is_some_and(|text| text.contains("draining")));
    }

    fn table(count: u8) -> ResumeTable<u8> {
        let mut table = ResumeTable::new();
        (0..count).for_each(|number| table.insert(Secret::new([number; 16]), "game", number));
        table
    }

    #[test]
    fn a_flow_is_found_only_by_secret_and_target() {
        let table = table(3);
        assert_eq!(table.find(&Secret::new([1; 16]), "game"), Some(&1));
        assert_eq!(table.find(&Secret::new([1; 16]), "Game"), None);
        assert_eq!(table.find(&Secret::new([4; 16]), "game"), None);
    }

    #[test]
    fn a_flow_admits_ten_resumptions_then_one_per_second() {
        let (mut table, start) = (table(2), Instant::now());
        let mut admitted = |number: u8, target: &str, seconds| {
            let now = start + Duration::from_secs(seconds);
            (0..100).filter(|_| table.admits_resumption(&Secret::new([number; 16]), target, now)).count()
        };
        assert_eq!([0, 0, 1, 4, 60, 0].map(|seconds| admitted(0, "game", seconds)), [10, 0, 1, 3, 10, 0]);
        assert_eq!(admitted(1, "game", 0), 10, "each flow has its own limit");
        assert_eq!((admitted(1, "other", 60), admitted(7, "game", 60)), (0, 0));
    }

    #[test]
    fn the_flow_detached_for_the_longest_time_is_evicted_first() {
        let mut table = table(4);
        let secret = |number: u8| Secret::new([number; 16]);
        [2, 0, 3, 1, 2].iter().for_each(|number| table.set_detached(&secret(*number)));
        table.set_attached(&secret(3));
        assert_eq!(table.remove(&secret(1)), Some(1));
        let evicted = [(); 3].map(|()| table.evict().copied());
        assert_eq!(evicted, [Some(0), Some(2), None]);
        assert_eq!((table.len(), table.detached.len()), (3, 0));
        table.remove(&secret(0));
        table.set_detached(&secret(0));
        assert!(table.detached.is_empty(), "a removed flow cannot become detached");
    }

    #[test]
    fn a_flow_resumed_before_its_eviction_stays_resumable() {
        let mut table = table(1);
        let secret = Secret::new([0; 16]);
        table.set_detached(&secret);
        assert_eq!(table.evict(), Some(&0));
        assert_eq!(table.find(&secret, "game"), Some(&0));
        table.set_attached(&secret);
        table.set_detached(&secret);
        assert_eq!(table.evict(), Some(&0));
        assert_eq!(table.remove(&secret), Some(0));
    }
}
