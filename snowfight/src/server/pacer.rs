//! When a client gets its next snapshot (docs/game.md#pacing).

use super::changes::Gaps;

/// How many ticks a snapshot may take longer than the fastest recent one. On a long path it is the round-trip time, because
/// a lost acknowledgement costs as much.
const QUEUEING_LIMIT: u32 = 8;
/// How many ticks longer still a client may acknowledge nothing, such as a page that draws few frames.
const MAX_SILENCE: u32 = 30;
/// How many ticks after the last snapshot a client gets the next one although an earlier one is missing, which may have
/// been lost. The number doubles while nothing comes back.
const PROBE_TICKS: u32 = 15;
const MAX_PROBE_TICKS: u32 = 60;
/// The longest interval of snapshots in ticks.
const MAX_INTERVAL: u32 = 12;
/// After this many ticks without queueing the interval becomes shorter.
const RECOVERY_TICKS: u32 = 60;
/// The fastest round trip is that of the last one to two times as many ticks.
const MIN_RTT_WINDOW: u32 = 300;

/// Which clients get fewer snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Those that acknowledge snapshots late (docs/game.md#pacing).
    #[default]
    Acknowledged,
    /// None: every client gets all of them, as in the original, unless its transport
    /// [has a backlog](super::Server::handle_congestion).
    Unpaced,
}

/// Decides by a client's acknowledgements how many snapshots it gets.
///
/// As long as they come back in time, that is all of them. When a snapshot is old at the time when it is acknowledged, it
/// was in a queue: of the server, of the path, or of a client that does not keep up. Then nothing more is sent until that
/// queue is empty, and from then on half as many. It is the same if nothing comes back for long. A client that never
/// acknowledges gets everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct SnapshotPacer {
    /// Bit `n` is the snapshot of `n` ticks before the newest one: whether it was sent, and neither it nor a later one
    /// was acknowledged.
    in_flight: u128,
    /// The tick of the last snapshot that was sent.
    newest: Option<u32>,
    /// The tick of the last snapshot that the client has applied.
    acked: Option<u32>,
    min_rtt: MinRtt,
    /// The round-trip time of the newest acknowledgement since the last tick. Others may have waited for a lost message.
    rtt: Option<u32>,
    phase: Phase,
    /// Every how many of the snapshots that its scope has it gets one.
    interval: u32,
    /// The tick of the last change of the interval.
    changed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Sending,
    /// Waiting until everything in flight is acknowledged. The next snapshot as a probe comes after so many ticks.
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

    /// A tick has passed: whether to send its snapshot, of a scope with a snapshot every `period` ticks.
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

    /// The snapshot of this tick was sent.
    pub(super) fn on_sent(&mut self, time: u32) {
        let passed = self.newest.map_or(u32::MAX, |newest| time.wrapping_sub(newest));
        self.in_flight = self.in_flight.checked_shl(passed).unwrap_or(0) | 1;
        self.newest = Some(time);
    }

    /// The client has applied the snapshot of a tick. Whatever was never sent, or was acknowledged, is ignored.
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

    /// How far a snapshot of changes must go back.
    pub(super) fn gaps(&self, now: u32) -> Gaps {
        let Some(newest) = self.newest else { return Gaps::default() };
        let applied = self.acked.unwrap_or(newest);
        Gaps::new(now.wrapping_sub(applied), now.wrapping_sub(newest))
    }

    /// The age of the oldest snapshot in flight, in ticks.
    fn oldest_age(&self, now: u32) -> Option<u32> {
        let newest = self.newest.filter(|_| self.in_flight != 0)?;
        Some(now.wrapping_sub(newest).saturating_add(self.in_flight.ilog2()))
    }

    fn limit(&self) -> u32 {
        let rtt = self.min_rtt.get();
        rtt.saturating_add(rtt.max(QUEUEING_LIMIT))
    }
}

/// The shortest recent round-trip time in ticks, from a snapshot to the arrival of its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    /// Of the current window, and of the one before.
    current: u32,
    before: u32,
    /// When the current window began.
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

    /// A client behind a path: each snapshot takes it so many thousandths of a tick, and it acknowledges at most in every
    /// third tick.
    struct Client {
        pacer: SnapshotPacer,
        /// One way, in ticks.
        path: u32,
        /// The interval of its frames, in ticks.
        frame: u32,
        /// What is on the way to the client, with its arrival.
        coming: VecDeque<(u32, u32)>,
        /// Acknowledgements on their way back.
        returning: VecDeque<(u32, u32)>,
        /// Ticks since the start.
        clock: u64,
        /// When it can take the next snapshot, in thousandths of a tick since the start.
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

        /// Runs so many ticks; every snapshot takes the client so many thousandths of one. Returns how many were sent.
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

    /// The next of a queue of arrivals and ticks.
    fn arrived(queue: &mut VecDeque<(u32, u32)>, now: u32) -> Option<u32> {
        queue.front().filter(|(arrival, _)| now.wrapping_sub(*arrival) < u32::MAX / 2)?;
        queue.pop_front().map(|(_, time)| time)
    }

    const NOTHING: fn(u32) -> bool = |_| false;
    const FAST: u64 = 10;

    #[test]
    fn a_client_that_keeps_up_gets_everything_on_any_path() {
        for path in [0, 1, 3, 6, 15, 30] {
            let mut client = Client::new(path, 0);
            assert_eq!(client.run(3_600, FAST, NOTHING), 3_600, "{path} ticks each way");
            assert!(client.worst_age <= path + 1);
        }
    }

    /// It shows the newest snapshot in each of its few frames, so nothing is in a queue.
    #[test]
    fn a_client_with_few_frames_gets_everything() {
        for (frame, path) in [(4, 1), (12, 1), (20, 1), (30, 1), (12, 6)] {
            let mut client = Client::new(path, 0);
            client.frame = frame;
            assert_eq!(client.run(3_600, FAST, NOTHING), 3_600, "a frame in {frame} ticks");
            assert!(client.worst_age <= path + frame, "{} with {frame}", client.worst_age);
        }
    }

    #[test]
    fn a_client_that_never_acknowledges_gets_everything() {
        let mut pacer = SnapshotPacer::new();
        for now in 0..1_000 {
            assert!(pacer.poll(now, 1));
            pacer.on_sent(now);
        }
    }

    /// Everything that it takes, within a fifth, and nothing stands in a queue for long.
    #[test]
    fn a_slow_client_gets_what_it_takes() {
        for (per_second, path) in [(45, 1), (30, 1), (20, 1), (10, 1), (30, 6), (10, 6)] {
            let mut client = Client::new(path, 0);
            client.run(600, 60_000 / per_second, NOTHING);
            let sent = client.run(3_600, 60_000 / per_second, NOTHING) as u64;
            let takes = per_second * 60;
            assert!((takes * 6 / 10..=takes).contains(&sent), "{sent} of {takes}, {path} ticks each way");
            // What is sent until the queue is noticed takes up to as long again.
            let rtt = 2 * path + 3;
            let most = 2 * (rtt + rtt.max(QUEUEING_LIMIT)) + 60 / per_second as u32;
            assert!(client.worst_age <= most, "{} ticks at {per_second}, {path} each way", client.worst_age);
        }
    }

    #[test]
    fn a_client_that_stands_still_costs_little_and_recovers() {
        let mut client = Client::new(1, 0);
        client.run(600, FAST, NOTHING);
        // It takes nothing for ten seconds.
        client.free_at = (client.clock + 600) * 1_000;
        let sent = client.run(600, FAST, NOTHING);
        assert!((MAX_SILENCE as usize..80).contains(&sent), "{sent}");
        client.run(120, FAST, NOTHING);
        assert_eq!(client.run(600, FAST, NOTHING), 600);
    }

    #[test]
    fn a_slow_client_that_becomes_fast_gets_everything_again() {
        let mut client = Client::new(1, 0);
        client.run(1_200, 6_000, NOTHING);
        client.run(MAX_INTERVAL * RECOVERY_TICKS, FAST, NOTHING);
        assert_eq!(client.run(600, FAST, NOTHING), 600);
    }

    /// A loss is no queue: neither single ones nor the last ones before a pause.
    #[test]
    fn losses_stop_nothing() {
        let mut client = Client::new(3, 0);
        client.run(60, FAST, NOTHING);
        let sent = client.run(3_600, FAST, |time| time.wrapping_mul(2_654_435_761) >> 16 & 0xFF < 51);
        assert!(sent > 3_400, "{sent} with a loss of 20 %");
        client.run(120, FAST, |_| true);
        client.run(300, FAST, NOTHING);
        assert_eq!(client.run(600, FAST, NOTHING), 600);
    }

    /// A path that becomes longer is a queue only until the fastest round trip is forgotten.
    #[test]
    fn a_longer_path_is_no_queue_for_long() {
        let mut client = Client::new(1, 0);
        client.run(600, FAST, NOTHING);
        client.path = 12;
        let sent = client.run(600, FAST, NOTHING);
        assert!(sent > 20, "{sent}");
        client.run(MAX_INTERVAL * RECOVERY_TICKS + 300, FAST, NOTHING);
        assert_eq!(client.run(600, FAST, NOTHING), 600);
    }

    #[test]
    fn ticks_wrap() {
        let mut client = Client::new(2, u32::MAX - 100);
        assert_eq!(client.run(200, FAST, NOTHING), 200);
    }

    #[test]
    fn acknowledgements_of_nothing_are_ignored() {
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
