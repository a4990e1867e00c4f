//! Decides when a client gets its next snapshot (docs/game.md#pacing).

use super::changes::Gaps;

/// The minimum number of ticks by which a snapshot's round trip must exceed the shortest recent one to count as
/// queued. On long paths the limit is the shortest round-trip time itself, because a lost acknowledgement delays the
/// next one by as much.
const QUEUEING_LIMIT: u32 = 8;
/// An acknowledgement that is overdue by more than this number of ticks counts as a queue. A page that draws few frames
/// rarely sends acknowledgements.
const MAX_SILENCE: u32 = 30;
/// The number of ticks after which a probe snapshot is sent while earlier snapshots are unacknowledged.
///
/// The earlier snapshots may be lost. The number doubles until a snapshot is acknowledged.
const PROBE_TICKS: u32 = 15;
const MAX_PROBE_TICKS: u32 = 60;
/// The maximum interval between snapshots, in ticks.
const MAX_INTERVAL: u32 = 12;
/// The number of ticks without queueing after which the interval is shortened by one snapshot period.
const RECOVERY_TICKS: u32 = 60;
/// The length of the window for the shortest round-trip time, in ticks. The current and the previous window are used,
/// so a minimum is kept for one to two windows.
const MIN_RTT_WINDOW: u32 = 300;

/// The rule for sending fewer snapshots to slow clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Clients that acknowledge snapshots late get fewer (docs/game.md#pacing).
    #[default]
    Acknowledged,
    /// Every client gets all snapshots, as in the original game.
    ///
    /// Clients with a [transport backlog](super::Server::handle_congestion) are the exception.
    Unpaced,
}

/// Limits the rate of snapshots to a client by its acknowledgements.
///
/// The client gets every snapshot while acknowledgements arrive in time. A late acknowledgement means that the
/// snapshot was queued: in the server, on the path, or in the client. The pacer then waits until everything in flight
/// is acknowledged, and continues at half the rate. A long time without acknowledgements has the same effect. A
/// client that has never acknowledged a snapshot gets all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct SnapshotPacer {
    /// The snapshots in flight: bit `n` represents the snapshot `n` ticks before the newest one sent.
    ///
    /// A bit is set if that snapshot was sent, and neither it nor a later one has been acknowledged.
    in_flight: u128,
    /// The tick of the last sent snapshot.
    newest: Option<u32>,
    /// The tick of the last acknowledged snapshot.
    acked: Option<u32>,
    min_rtt: MinRtt,
    /// The round-trip time of the newest acknowledgement since the last tick.
    rtt: Option<u32>,
    phase: Phase,
    /// The interval between snapshots, in snapshot periods of the client's scope.
    interval: u32,
    /// The tick in which the interval last changed.
    changed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Sending,
    /// Waits until everything in flight is acknowledged, and sends a probe after `probe` ticks without one.
    Draining {
        probe: u32,
    },
}

impl SnapshotPacer {
    pub(super) const fn new() -> Self {
        Self {
            in_flight: 0,
            newest: None,
            acked: None,
            min_rtt: MinRtt::new(),
            rtt: None,
            phase: Phase::Sending,
            interval: 1,
            changed: 0,
        }
    }

    /// Advances by a tick; returns true if the snapshot of this tick is to be sent. The scope has a snapshot every
    /// `period` ticks.
    pub(super) fn poll(&mut self, now: u32, period: u32) -> bool {
        let (Some(newest), Some(_)) = (self.newest, self.acked) else { return true };
        let since = now.wrapping_sub(newest);
        self.update(now, period);
        match &mut self.phase {
            Phase::Sending => since >= self.interval * period,
            Phase::Draining { probe } if since >= *probe => {
                *probe = (2 * *probe).min(MAX_PROBE_TICKS);
                true
            }
            Phase::Draining { .. } => false,
        }
    }

    fn update(&mut self, now: u32, period: u32) {
        let is_queued = self.rtt.take().is_some_and(|rtt| rtt > self.limit());
        let is_silent = |age: u32| age > self.limit().saturating_add(MAX_SILENCE);
        match self.phase {
            Phase::Sending if is_queued || self.oldest_age(now).is_some_and(is_silent) => {
                self.phase = Phase::Draining { probe: PROBE_TICKS };
                self.set_interval(now, (2 * self.interval).min(MAX_INTERVAL / period));
            }
            Phase::Draining { .. } if self.in_flight == 0 => {
                self.phase = Phase::Sending;
                self.changed = now;
            }
            Phase::Sending if self.interval > 1 && now.wrapping_sub(self.changed) >= RECOVERY_TICKS => {
                self.set_interval(now, self.interval - 1);
            }
            Phase::Sending | Phase::Draining { .. } => {}
        }
    }

    const fn set_interval(&mut self, now: u32, interval: u32) {
        (self.interval, self.changed) = (interval, now);
    }

    /// Records that the snapshot of this tick was sent.
    pub(super) fn on_sent(&mut self, time: u32) {
        let passed = self.newest.map_or(u32::MAX, |newest| time.wrapping_sub(newest));
        self.in_flight = self.in_flight.checked_shl(passed).unwrap_or(0) | 1;
        self.newest = Some(time);
    }

    /// Handles the acknowledgement of a snapshot. An acknowledgement for a snapshot that is not in flight is ignored.
    pub(super) fn on_ack(&mut self, now: u32, time: u32) {
        let Some(behind) = self.newest.map(|newest| newest.wrapping_sub(time)) else { return };
        let bit = 1_u128.checked_shl(behind).unwrap_or(0);
        if self.in_flight & bit == 0 {
            return;
        }
        self.in_flight &= bit - 1;
        self.acked = Some(time);
        let rtt = now.wrapping_sub(time);
        self.min_rtt.record(now, rtt);
        self.rtt = Some(rtt);
    }

    /// Returns the numbers of ticks that a snapshot of changes must cover.
    pub(super) fn gaps(&self, now: u32) -> Gaps {
        let Some(newest) = self.newest else { return Gaps::default() };
        let applied = self.acked.unwrap_or(newest);
        Gaps::new(now.wrapping_sub(applied), now.wrapping_sub(newest))
    }

    /// Returns the age of the oldest snapshot in flight, in ticks.
    fn oldest_age(&self, now: u32) -> Option<u32> {
        let newest = self.newest.filter(|_| self.in_flight != 0)?;
        Some(now.wrapping_sub(newest).saturating_add(self.in_flight.ilog2()))
    }

    fn limit(&self) -> u32 {
        let rtt = self.min_rtt.get();
        rtt.saturating_add(rtt.max(QUEUEING_LIMIT))
    }
}

/// The shortest recent round-trip time in ticks, from sending a snapshot to receiving its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    /// The minima of the current and of the previous window.
    current: u32,
    before: u32,
    /// The tick in which the current window began.
    began: u32,
}

impl MinRtt {
    const fn new() -> Self {
        Self { current: u32::MAX, before: u32::MAX, began: 0 }
    }

    fn record(&mut self, now: u32, rtt: u32) {
        if now.wrapping_sub(self.began) >= MIN_RTT_WINDOW {
            (self.before, self.current, self.began) = (self.current, u32::MAX, now);
        }
        self.current = self.current.min(rtt);
    }

    fn get(&self) -> u32 {
        self.current.min(self.before)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::vec::Vec;

    use super::*;

    /// A simulated client behind a path. Each snapshot keeps it busy for some thousandths of a tick. It sends at most
    /// one acknowledgement in three ticks.
    struct Client {
        pacer: SnapshotPacer,
        /// The one-way latency, in ticks.
        path: u32,
        /// The interval between its frames, in ticks.
        frame: u32,
        /// Snapshots in flight to the client: arrival tick and snapshot tick.
        coming: VecDeque<(u32, u32)>,
        /// Acknowledgements in flight to the server.
        returning: VecDeque<(u32, u32)>,
        /// The number of ticks since the start.
        clock: u64,
        /// The time at which the client can process the next snapshot, in thousandths of a tick since the start.
        free_at: u64,
        shown: u32,
        now: u32,
        sent: Vec<u32>,
        worst_age: u32,
    }

    impl Client {
        fn new(path: u32, start: u32) -> Self {
            Self {
                pacer: SnapshotPacer::new(),
                path,
                frame: 1,
                coming: VecDeque::new(),
                returning: VecDeque::new(),
                clock: 0,
                free_at: 0,
                shown: start,
                now: start,
                sent: Vec::new(),
                worst_age: 0,
            }
        }

        /// Runs `ticks` ticks, and returns the number of snapshots sent. Each snapshot keeps the client busy for
        /// `cost` thousandths of a tick.
        fn run(&mut self, ticks: u32, cost: u64, mut lose: impl FnMut(u32) -> bool) -> usize {
            let before = self.sent.len();
            self.worst_age = 0;
            for _ in 0..ticks {
                self.now = self.now.wrapping_add(1);
                self.clock += 1;
                if self.pacer.poll(self.now, 1) {
                    self.pacer.on_sent(self.now);
                    self.sent.push(self.now);
                    if !lose(self.now) {
                        self.coming.push_back((self.now.wrapping_add(self.path), self.now));
                    }
                }
                if self.clock.is_multiple_of(self.frame.into()) {
                    self.show(cost);
                }
                if self.clock.is_multiple_of(self.frame.max(3).into()) {
                    self.returning.push_back((self.now.wrapping_add(self.path), self.shown));
                }
                while let Some(time) = arrived(&mut self.returning, self.now) {
                    self.pacer.on_ack(self.now, time);
                }
                self.worst_age = self.worst_age.max(self.now.wrapping_sub(self.shown));
            }
            self.sent.len() - before
        }

        fn show(&mut self, cost: u64) {
            let end = (self.clock + 1) * 1_000;
            self.free_at = self.free_at.max(end - 1_000);
            while self.free_at < end {
                let Some(time) = arrived(&mut self.coming, self.now) else { return };
                self.free_at += cost;
                self.shown = time;
            }
        }
    }

    /// Removes and returns the tick of the first entry if its arrival time has been reached.
    fn arrived(queue: &mut VecDeque<(u32, u32)>, now: u32) -> Option<u32> {
        queue.front().filter(|(arrival, _)| now.wrapping_sub(*arrival) < u32::MAX / 2)?;
        queue.pop_front().map(|(_, time)| time)
    }

    const NOTHING: fn(u32) -> bool = |_| false;
    const FAST: u64 = 10;

    #[test]
    fn client_that_keeps_up_gets_every_snapshot_on_any_path() {
        for path in [0, 1, 3, 6, 15, 30] {
            let mut client = Client::new(path, 0);
            assert_eq!(client.run(3_600, FAST, NOTHING), 3_600, "{path} ticks each way");
            assert!(client.worst_age <= path + 1);
        }
    }

    /// A client that shows only the newest snapshot in each frame builds up no queue, even at a low frame rate.
    #[test]
    fn client_with_a_low_frame_rate_gets_every_snapshot() {
        for (frame, path) in [(4, 1), (12, 1), (20, 1), (30, 1), (12, 6)] {
            let mut client = Client::new(path, 0);
            client.frame = frame;
            assert_eq!(client.run(3_600, FAST, NOTHING), 3_600, "one frame in {frame} ticks");
            assert!(client.worst_age <= path + frame, "{} with {frame}", client.worst_age);
        }
    }

    #[test]
    fn client_that_never_acknowledges_gets_every_snapshot() {
        let mut pacer = SnapshotPacer::new();
        for now in 0..1_000 {
            assert!(pacer.poll(now, 1));
            pacer.on_sent(now);
        }
    }

    /// The client gets 60 % to 100 % of what it can process, and no snapshot waits in a queue for long.
    #[test]
    fn slow_client_gets_no_more_than_it_can_process() {
        for (per_second, path) in [(45, 1), (30, 1), (20, 1), (10, 1), (30, 6), (10, 6)] {
            let mut client = Client::new(path, 0);
            client.run(600, 60_000 / per_second, NOTHING);
            let sent = client.run(3_600, 60_000 / per_second, NOTHING) as u64;
            let takes = per_second * 60;
            assert!((takes * 6 / 10..=takes).contains(&sent), "{sent} of {takes}, {path} ticks each way");
            // Before the pacer notices the queue, the snapshots in flight can double the round-trip time.
            let rtt = 2 * path + 3;
            let most = 2 * (rtt + rtt.max(QUEUEING_LIMIT)) + 60 / per_second as u32;
            assert!(client.worst_age <= most, "{} ticks at {per_second}, {path} each way", client.worst_age);
        }
    }

    #[test]
    fn stalled_client_gets_few_snapshots_and_recovers() {
        let mut client = Client::new(1, 0);
        client.run(600, FAST, NOTHING);
        // The client processes nothing for ten seconds.
        client.free_at = (client.clock + 600) * 1_000;
        let sent = client.run(600, FAST, NOTHING);
        assert!((MAX_SILENCE as usize..80).contains(&sent), "{sent}");
        client.run(120, FAST, NOTHING);
        assert_eq!(client.run(600, FAST, NOTHING), 600);
    }

    #[test]
    fn slow_client_that_recovers_gets_every_snapshot_again() {
        let mut client = Client::new(1, 0);
        client.run(1_200, 6_000, NOTHING);
        client.run(MAX_INTERVAL * RECOVERY_TICKS, FAST, NOTHING);
        assert_eq!(client.run(600, FAST, NOTHING), 600);
    }

    /// Lost snapshots do not count as queueing, whether a single one or the last ones before a pause.
    #[test]
    fn lost_snapshots_do_not_reduce_the_snapshot_rate() {
        let mut client = Client::new(3, 0);
        client.run(60, FAST, NOTHING);
        let sent = client.run(3_600, FAST, |time| time.wrapping_mul(2_654_435_761) >> 16 & 0xFF < 51);
        assert!(sent > 3_400, "{sent} with a loss of 20 %");
        client.run(120, FAST, |_| true);
        client.run(300, FAST, NOTHING);
        assert_eq!(client.run(600, FAST, NOTHING), 600);
    }

    /// A longer path counts as queueing only until the shorter round-trip time leaves the window.
    #[test]
    fn longer_path_counts_as_queueing_only_for_a_while() {
        let mut client = Client::new(1, 0);
        client.run(600, FAST, NOTHING);
        client.path = 12;
        let sent = client.run(600, FAST, NOTHING);
        assert!(sent > 20, "{sent}");
        client.run(MAX_INTERVAL * RECOVERY_TICKS + 300, FAST, NOTHING);
        assert_eq!(client.run(600, FAST, NOTHING), 600);
    }

    #[test]
    fn tick_numbers_wrap_around() {
        let mut client = Client::new(2, u32::MAX - 100);
        assert_eq!(client.run(200, FAST, NOTHING), 200);
    }

    #[test]
    fn unknown_acknowledgements_are_ignored() {
        let mut pacer = SnapshotPacer::new();
        pacer.on_ack(5, 5);
        for now in 10..20 {
            pacer.on_sent(now);
            for nonsense in [0, 9, now + 1, now + 200, u32::MAX] {
                pacer.on_ack(now, nonsense);
            }
        }
        assert_eq!((pacer.acked, pacer.in_flight), (None, 0x3FF));
        pacer.on_ack(21, 17);
        pacer.on_ack(25, 12);
        assert_eq!((pacer.acked, pacer.in_flight, pacer.min_rtt.get()), (Some(17), 0b11, 4));
    }
}
