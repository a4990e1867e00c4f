//! Applies every operation to flows and to the resume table, and checks their guarantees.
//!
//! Queues are bounded. Every datagram arrives once and in order, or is counted as dropped. No datagram is forwarded
//! after its maximum age. A resumable flow ends when its time is over, and not earlier.

use std::mem;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbitrary::{Arbitrary, Unstructured};

use super::Broken;
use crate::flow::{
    DropReason, Flow, FlowLimits, FromClient, FromServer, ProxyHeader, Rate, ResumeTable, Secret, Sending,
    Setup, TargetCounters, ToClient, TransportLimits, Unreachable,
};

const FLOWS: usize = 3;
const TARGET: &str = "game";
const MAX_OPERATIONS: usize = 200;
/// The header of each datagram: its number and its sending time in milliseconds.
const HEAD: usize = 12;
/// The length of a PROXY protocol header over IPv4.
const PROXY_HEADER: usize = 28;
const MAX_DATAGRAM: usize = 600;

/// An operation on one of the flows.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Operation {
    FromClient {
        flow: u8,
        length: u16,
        count: u8,
    },
    FromServer {
        flow: u8,
        length: u16,
        count: u8,
    },
    ClientInput {
        flow: u8,
        kind: u8,
    },
    ServerInput {
        flow: u8,
        kind: u8,
    },
    ToServer {
        flow: u8,
        batches: u8,
        max_count: u8,
        result: u8,
    },
    ToClient {
        flow: u8,
        frames: u8,
    },
    /// A client returns with the secret of a flow, and with the right target or another one.
    ComeBack {
        flow: u8,
        is_elsewhere: bool,
    },
    /// Limits the length of the datagrams that a client's path carries.
    Carry {
        flow: u8,
        max_datagram: u16,
    },
    Evict,
    Wait {
        millis: u16,
    },
    /// Sets the clock back. Time then passes as usual.
    JumpBack {
        millis: u16,
    },
    JumpAhead {
        seconds: u8,
        hours: u8,
    },
    Shutdown {
        die: u8,
    },
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub delivered: usize,
    pub dropped: u64,
    pub resumed: u64,
    pub ended: usize,
}

/// One direction of a flow.
#[derive(Debug, Default)]
struct Direction {
    accepted: u32,
    /// The number of the last delivered datagram plus one.
    next: u32,
    delivered: u32,
}

struct Client {
    flow: Flow,
    counters: Arc<TargetCounters>,
    secret: Option<Secret>,
    up: Direction,
    down: Direction,
    /// The earliest time at which a detached flow may end.
    kept_until: Option<Instant>,
    must_greet: bool,
    /// True if the client has requested the first message again, and has no answer.
    has_requested: bool,
    last_answer: Option<Instant>,
    last_report: Option<Instant>,
}

struct World {
    now: Instant,
    start: Instant,
    limits: FlowLimits,
    clients: [Option<Client>; FLOWS],
    table: ResumeTable<usize>,
    /// True if the clock has never been set back.
    is_steady: bool,
    outcome: Outcome,
}

/// Runs the operations encoded in `bytes`.
///
/// # Errors
/// The violated guarantee.
pub fn run(bytes: &[u8]) -> Result<Outcome, Broken> {
    let mut bytes = Unstructured::new(bytes);
    let Ok(mut world) = World::new(&mut bytes) else { return Ok(Outcome::default()) };
    for _ in 0..MAX_OPERATIONS {
        let Ok(operation) = Operation::arbitrary(&mut bytes) else { break };
        if bytes.is_empty() {
            break;
        }
        world
            .perform(operation)
            .and_then(|()| world.check())
            .map_err(|broken| format!("{operation:?}: {broken}"))?;
    }
    world.finish()
}

impl Direction {
    fn compose(&mut self, length: usize, millis: u64) -> Vec<u8> {
        let number = self.accepted;
        self.accepted += 1;
        let fill = (HEAD..length).map(|index| (index as u32 ^ number) as u8);
        number.to_be_bytes().into_iter().chain(millis.to_be_bytes()).chain(fill).collect()
    }

    /// Checks a delivered datagram, and returns the time at which it was sent.
    fn deliver(&mut self, datagram: &[u8]) -> Result<u64, Broken> {
        let head = datagram
            .split_first_chunk::<4>()
            .and_then(|(number, rest)| Some((number, rest.first_chunk::<8>()?)));
        let (number, millis) = head.ok_or("a datagram is shorter than its header")?;
        let number = u32::from_be_bytes(*number);
        let is_whole =
            datagram[HEAD..].iter().zip(HEAD..).all(|(byte, index)| *byte == (index as u32 ^ number) as u8);
        if number < self.next || number >= self.accepted || !is_whole {
            return Err(format!(
                "datagram {number} arrived changed, twice or out of order: {} is next, {} were accepted",
                self.next, self.accepted
            ));
        }
        self.next = number + 1;
        self.delivered += 1;
        Ok(u64::from_be_bytes(*millis))
    }

    /// Compares input and output when no datagrams are queued.
    fn settle(&self, dropped: u64) -> Result<(), Broken> {
        if u64::from(self.accepted) == u64::from(self.delivered) + dropped {
            return Ok(());
        }
        Err(format!(
            "{} datagrams were accepted, {} delivered and {dropped} dropped",
            self.accepted, self.delivered
        ))
    }
}

impl World {
    #[allow(
        clippy::field_reassign_with_default,
        reason = "outside its crate, the struct takes no initializer"
    )]
    fn new(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let number = |number: usize| NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN);
        let mut limits = FlowLimits::default();
        limits.max_datagram = MAX_DATAGRAM;
        limits.queue = number(usize::from(u8::arbitrary(bytes)? % 40));
        limits.queue_bytes = number(usize::from(u16::arbitrary(bytes)?));
        limits.queue_age = Duration::from_millis(u16::arbitrary(bytes)?.into());
        limits.resume_within = Duration::from_millis(u64::from(u16::arbitrary(bytes)?) % 20_000);
        let rate = u8::arbitrary(bytes)?;
        limits.rate = (rate < 64)
            .then(|| Rate { datagrams: number(rate.into()), bytes: number(100 * usize::from(rate)) });
        let start = Instant::now();
        let mut world = Self {
            now: start,
            start,
            limits,
            clients: Default::default(),
            table: ResumeTable::new(),
            is_steady: true,
            outcome: Outcome::default(),
        };
        let kinds = u8::arbitrary(bytes)?;
        for index in 0..FLOWS {
            world.connect(index, kinds >> (2 * index));
        }
        Ok(world)
    }

    /// Opens a flow at `index`.
    fn connect(&mut self, index: usize, kind: u8) {
        let secret = (kind & 1 == 1).then(|| Secret::new([index as u8; 16]));
        let header = ProxyHeader { client: ([192, 0, 2, 7], 7).into(), server: ([192, 0, 2, 1], 1).into() };
        let proxy_header = (kind & 2 == 2).then_some(header);
        let counters = Arc::new(TargetCounters::default());
        let setup = Setup { secret, proxy_header, inspect: None, ..Setup::default() };
        let flow = Flow::new(self.limits, Arc::clone(&counters), setup, self.now);
        if let Some(secret) = secret {
            self.table.insert(secret, TARGET, index);
        }
        self.clients[index] = Some(Client {
            flow,
            counters,
            secret,
            up: Direction::default(),
            down: Direction::default(),
            kept_until: None,
            must_greet: secret.is_some(),
            has_requested: false,
            last_answer: None,
            last_report: None,
        });
    }

    fn millis(&self) -> u64 {
        self.now.saturating_duration_since(self.start).as_millis() as u64
    }

    fn perform(&mut self, operation: Operation) -> Result<(), Broken> {
        let (now, millis) = (self.now, self.millis());
        match operation {
            Operation::FromClient { flow, length, count } => {
                self.with(flow, |client| client.send_up(now, millis, length.into(), count));
            }
            Operation::FromServer { flow, length, count } => {
                self.with(flow, |client| client.send_down(now, millis, length.into(), count));
            }
            Operation::ClientInput { flow, kind } => self.with(flow, |client| client.input_up(now, kind)),
            Operation::ServerInput { flow, kind } => self.with(flow, |client| client.input_down(now, kind)),
            Operation::ToServer { flow, batches, max_count, result } => {
                let age = self.max_age();
                let client = self.clients[usize::from(flow) % FLOWS].as_mut();
                client.map_or(Ok(()), |client| {
                    client.take_up(now, millis, age, (batches, max_count, result))
                })?;
            }
            Operation::ToClient { flow, frames } => {
                let age = self.max_age();
                let client = self.clients[usize::from(flow) % FLOWS].as_mut();
                client.map_or(Ok(()), |client| client.take_down(now, millis, age, frames))?;
            }
            Operation::ComeBack { flow, is_elsewhere } => self.come_back(flow, is_elsewhere)?,
            Operation::Carry { flow, max_datagram } => self.with(flow, |client| {
                let max_datagram = Some(usize::from(max_datagram) % 2_048);
                client.flow.set_transport_limits(TransportLimits {
                    max_datagram,
                    max_unfragmented: max_datagram,
                    has_control_datagrams: false,
                });
            }),
            Operation::Evict => self.evict()?,
            Operation::Wait { millis } => self.wait(Duration::from_millis(u64::from(millis) % 5_000))?,
            Operation::JumpBack { millis } => self.jump_back(Duration::from_millis(millis.into())),
            Operation::JumpAhead { seconds, hours } => {
                let hours = u64::from(hours.saturating_sub(250));
                self.jump_ahead(Duration::from_secs(3_600 * hours + u64::from(seconds) % 20));
            }
            Operation::Shutdown { die } if die > 0 => {}
            Operation::Shutdown { .. } => {
                let now = self.now;
                self.clients.iter_mut().flatten().for_each(|client| client.flow.handle_shutdown(now));
            }
        }
        self.notice()
    }

    fn jump_back(&mut self, time: Duration) {
        self.is_steady = false;
        self.clients.iter_mut().flatten().for_each(|client| {
            (client.last_report, client.last_answer) = (None, None);
        });
        self.now = self.now.checked_sub(time).unwrap_or(self.now).max(self.start);
    }

    /// Sets the clock forward. All timeouts that were due before are handled at the new time.
    fn jump_ahead(&mut self, time: Duration) {
        self.is_steady = false;
        self.now += time;
        let now = self.now;
        self.clients.iter_mut().flatten().for_each(|client| client.flow.handle_timeout(now));
    }

    fn with(&mut self, flow: u8, act: impl FnOnce(&mut Client)) {
        self.clients[usize::from(flow) % FLOWS].as_mut().map(act);
    }

    /// Returns the maximum age of a delivered datagram in milliseconds, which is unlimited after a clock jump.
    fn max_age(&self) -> u64 {
        if self.is_steady { self.limits.queue_age.as_millis() as u64 + 1 } else { u64::MAX }
    }

    fn come_back(&mut self, flow: u8, is_elsewhere: bool) -> Result<(), Broken> {
        let index = usize::from(flow) % FLOWS;
        let secret = Secret::new([index as u8; 16]);
        let found = self.table.find(&secret, if is_elsewhere { "other" } else { TARGET }).copied();
        let is_there = self.clients[index].as_ref().is_some_and(|client| client.secret.is_some());
        if found.is_some() != (is_there && !is_elsewhere) || found.is_some_and(|found| found != index) {
            return Err(format!("the secret of flow {index} finds {found:?}"));
        }
        let Some(client) = found.and_then(|index| self.clients[index].as_mut()) else { return Ok(()) };
        self.table.set_attached(&secret);
        client.flow.handle_attached(self.now);
        client.kept_until = None;
        client.must_greet = true;
        self.outcome.resumed += 1;
        if client.flow.is_attached() {
            Ok(())
        } else {
            Err("a flow with a known secret cannot be resumed".into())
        }
    }

    fn evict(&mut self) -> Result<(), Broken> {
        let Some(index) = self.table.evict().copied() else { return Ok(()) };
        let client = self.clients[index].as_mut().ok_or("an ended flow was evicted")?;
        if client.flow.is_attached() {
            return Err("an attached flow was evicted".into());
        }
        client.kept_until = None;
        client.flow.handle_evicted(self.now);
        if client.flow.end().is_some() { Ok(()) } else { Err("an evicted flow has not ended".into()) }
    }

    /// Advances the clock step by step, and handles each timeout when it is due.
    fn wait(&mut self, time: Duration) -> Result<(), Broken> {
        let end = self.now + time;
        for _ in 0..10_000 {
            let due = self.clients.iter().flatten().map(|client| client.flow.poll_timeout()).min();
            let Some(due) = due.filter(|due| *due <= end) else {
                self.now = end;
                return Ok(());
            };
            self.now = self.now.max(due);
            let now = self.now;
            for client in self.clients.iter_mut().flatten().filter(|client| client.flow.poll_timeout() <= now)
            {
                client.flow.handle_timeout(now);
                if client.flow.end().is_none() && client.flow.poll_timeout() <= now {
                    return Err("a handled timeout is still due".into());
                }
            }
            self.notice()?;
        }
        Err("timeouts do not stop being due".into())
    }

    /// Acts like a driver after a change of a flow: records lost connections, and removes ended flows.
    fn notice(&mut self) -> Result<(), Broken> {
        let (now, is_steady) = (self.now, self.is_steady);
        for place in &mut self.clients {
            let Some(client) = place else { continue };
            if client.flow.lost().is_some() && client.kept_until.is_none() && client.flow.end().is_none() {
                client.kept_until = Some(now + self.limits.resume_within);
                client.secret.inspect(|secret| self.table.set_detached(secret));
            }
            let Some(end) = client.flow.end() else { continue };
            let is_early = client.kept_until.is_some_and(|until| now < until);
            let may_be_early = matches!(
                end,
                crate::flow::FlowEnd::Idle(_)
                    | crate::flow::FlowEnd::ShuttingDown
                    | crate::flow::FlowEnd::UdpFailed
            );
            if is_steady && is_early && !may_be_early {
                return Err(format!("a flow ended before its time: {end:?}"));
            }
            client.secret.and_then(|secret| self.table.remove(&secret));
            self.outcome.ended += 1;
            self.outcome.delivered += (client.up.delivered + client.down.delivered) as usize;
            self.outcome.dropped += client.dropped(true) + client.dropped(false);
            *place = None;
        }
        Ok(())
    }

    /// Checks the invariants.
    fn check(&self) -> Result<(), Broken> {
        // A queue holds one datagram of any length, whatever its bound.
        let bound = self.limits.queue_bytes.get().max(2_048);
        for client in self.clients.iter().flatten() {
            if client.flow.bytes_queued() > 2 * bound {
                return Err(format!(
                    "{} bytes are queued, more than twice the bound",
                    client.flow.bytes_queued()
                ));
            }
            if client.flow.client_queue_capacity() > self.limits.queue.get() {
                return Err("the free capacity exceeds the queue limit".into());
            }
        }
        let resumable = self.clients.iter().flatten().filter(|client| client.secret.is_some()).count();
        if self.table.len() == resumable {
            Ok(())
        } else {
            Err(format!("the table has {} flows", self.table.len()))
        }
    }

    /// Empties all queues, and compares input and output.
    fn finish(mut self) -> Result<Outcome, Broken> {
        let (now, millis) = (self.now, self.millis());
        for client in self.clients.iter_mut().flatten() {
            client.flow.handle_attached(now);
            client.must_greet = client.secret.is_some();
            client.take_up(now, millis, u64::MAX, (u8::MAX, u8::MAX, 9))?;
            client.take_down(now, millis, u64::MAX, u8::MAX)?;
            client.up.settle(client.dropped(true))?;
            client.down.settle(client.dropped(false))?;
            if client.flow.bytes_queued() > 0 {
                return Err("bytes are queued without a datagram".into());
            }
            self.outcome.delivered += (client.up.delivered + client.down.delivered) as usize;
            self.outcome.dropped += client.dropped(true) + client.dropped(false);
        }
        for client in self.clients.into_iter().flatten() {
            let Client { flow, counters, .. } = client;
            drop(flow);
            let snapshot = counters.snapshot();
            if (snapshot.clients, snapshot.detached, snapshot.flows) != (0, 0, 1) {
                return Err(format!("an ended flow is counted as open: {snapshot:?}"));
            }
        }
        Ok(self.outcome)
    }
}

impl Client {
    fn input_up(&mut self, now: Instant, kind: u8) {
        let input = match kind {
            0 => FromClient::Text,
            1 => FromClient::Oversized { len: 1 << 20 },
            2 => FromClient::Violation,
            3 => FromClient::Closed,
            4..=90 => FromClient::Vanished,
            91..=150 => FromClient::Datagram(Vec::new().into()),
            151..=170 => return self.lose_up(now, kind - 150),
            171..=190 => return self.request_flow(now),
            _ => FromClient::Control,
        };
        self.flow.handle_client(now, input);
    }

    fn input_down(&mut self, now: Instant, kind: u8) {
        let input = match kind {
            0 => FromServer::Failed,
            // Some datagrams are too long for the relay, which drops them.
            1..=128 => {
                self.down.accepted += 1;
                FromServer::Oversized
            }
            _ => FromServer::Unreachable(Unreachable::ClosedPort),
        };
        self.flow.handle_server(now, input);
    }

    /// The transport drops datagrams because its buffer is full.
    fn lose_up(&mut self, now: Instant, count: u8) {
        if self.flow.end().is_none() && self.flow.is_attached() {
            self.up.accepted += u32::from(count);
            self.flow.handle_client(now, FromClient::Dropped { count: count.into() });
        }
    }

    /// The client has missed the first control message, and requests it.
    fn request_flow(&mut self, now: Instant) {
        if self.flow.end().is_none() && self.flow.is_attached() {
            self.has_requested = self.secret.is_some();
            self.flow.handle_client(now, FromClient::FlowRequest);
        }
    }

    fn send_up(&mut self, now: Instant, millis: u64, length: usize, count: u8) {
        for _ in 0..count % 64 {
            if self.flow.end().is_some() || !self.flow.is_attached() {
                return;
            }
            let datagram = self.up.compose((length % (MAX_DATAGRAM + 1)).max(HEAD), millis);
            self.flow.handle_client(now, FromClient::Datagram(datagram.into()));
        }
    }

    fn send_down(&mut self, now: Instant, millis: u64, length: usize, count: u8) {
        for _ in 0..count % 64 {
            let datagram = self.down.compose((length % 2_048).max(HEAD), millis);
            self.flow.handle_server(now, FromServer::Datagram(&datagram));
        }
    }

    fn take_up(&mut self, now: Instant, millis: u64, max_age: u64, how: (u8, u8, u8)) -> Result<(), Broken> {
        let (batches, max_count, result) = how;
        let mut buffer = Vec::new();
        for _ in 0..batches {
            let max_count = usize::from(max_count);
            let Some(batch) = self.flow.poll_to_server(now, max_count, &mut buffer) else { return Ok(()) };
            let datagrams: Vec<&[u8]> = batch.contents.chunks(batch.segment).collect();
            if datagrams.len() != batch.count || batch.count > max_count.max(1) {
                return Err(format!("a batch of {} has {} datagrams", batch.count, datagrams.len()));
            }
            let sending = match result {
                0 => Sending::Refused,
                1 => Sending::Failed,
                _ => Sending::Sent,
            };
            if sending == Sending::Sent {
                for datagram in datagrams {
                    let skip = if datagram.starts_with(b"\r\n\r\n") { PROXY_HEADER } else { 0 };
                    let since = self.up.deliver(&datagram[skip..])?;
                    check_age(since, millis, max_age)?;
                }
            } else {
                self.up.next += batch.count as u32;
            }
            let count = batch.count;
            self.flow.handle_sent(count, sending);
        }
        Ok(())
    }

    fn take_down(&mut self, now: Instant, millis: u64, max_age: u64, frames: u8) -> Result<(), Broken> {
        for _ in 0..frames {
            match self.flow.poll_to_client(now) {
                None => return Ok(()),
                Some(ToClient::Control(text)) => self.take_control(now, &text)?,
                Some(ToClient::Ping) => {}
                Some(ToClient::Datagram(_)) if self.must_greet => {
                    return Err("a datagram preceded the flow message".into());
                }
                Some(ToClient::Datagram(datagram)) => {
                    let since = self.down.deliver(&datagram)?;
                    check_age(since, millis, max_age)?;
                }
            }
        }
        Ok(())
    }

    fn take_control(&mut self, now: Instant, text: &str) -> Result<(), Broken> {
        if self.secret.is_none() {
            return Err(format!("a client without control messages got one: {text}"));
        }
        if text.starts_with(r#"{"type":"flow""#) {
            self.last_report = None;
            let (is_first, is_requested) =
                (mem::take(&mut self.must_greet), mem::take(&mut self.has_requested));
            let last = mem::replace(&mut self.last_answer, (!is_first).then_some(now));
            let may_again = last.is_none_or(|last| now >= last + Duration::from_millis(100));
            return if is_first || is_requested && may_again {
                Ok(())
            } else {
                Err("a second flow message without a request".into())
            };
        }
        if self.must_greet || self.last_report.is_some_and(|last| now < last + Duration::from_secs(1)) {
            return Err(format!("a report came too early: {text}"));
        }
        self.last_report = Some(now);
        Ok(())
    }

    /// Returns the number of dropped datagrams in one direction.
    fn dropped(&self, is_up: bool) -> u64 {
        let reasons: &[DropReason] = if is_up {
            &[
                DropReason::ServerQueueFull,
                DropReason::ServerTooOld,
                DropReason::TooBigBehindHeader,
                DropReason::SendRefused,
                DropReason::RateLimited,
            ]
        } else {
            &[DropReason::ClientQueueFull, DropReason::ClientTooOld, DropReason::DatagramTooBig]
        };
        let snapshot = self.counters.snapshot();
        reasons.iter().map(|reason| snapshot.drops(*reason)).sum()
    }
}

fn check_age(since: u64, now: u64, max_age: u64) -> Result<(), Broken> {
    let age = now.saturating_sub(since);
    if age <= max_age {
        Ok(())
    } else {
        Err(format!("a datagram was delivered after {age} ms, more than {max_age} ms"))
    }
}
