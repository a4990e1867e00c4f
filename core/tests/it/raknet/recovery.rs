//! The order and timing of sent datagrams, and loss detection.

use core::time::Duration;

use rakwire::raknet::{
    Capacity, Channel, Config, CongestionControl, ConnectionId, Delivery, Peer, Priority, Reliability,
};
use rakwire::sim::{Bottleneck, Conditions};
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader, Record};
use rakwire::wire::{MAX_DATAGRAM, Reader, Wire, Writer};
use rakwire::{Instant, U24};

use crate::model::ledger::PRIORITIES;
use crate::support::raknet::{Net, client_config, messages, server_config};

const LATENCY: Duration = Duration::from_millis(25);
const MESSAGE: [u8; 1_400] = [0x86; 1_400];

/// A connected client with an RTT of 50 ms. The test polls its datagrams and responds to them.
struct Sender {
    net: Net,
    id: ConnectionId,
}

/// A data datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    number: U24,
    /// The number of the first reliable message in it.
    message: U24,
}

fn written<'a>(packet: &impl Wire<'a>) -> Vec<u8> {
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    packet.write(&mut writer).expect("the buffer is large enough");
    writer.finish().to_vec()
}

fn large_peer(config: Config) -> Peer<'static> {
    Peer::with_capacity(Capacity { connections: 1, blocks: 65_536, block_size: 512 }, config)
}

impl Sender {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = client_config();
        config.ping_interval = None;
        change(&mut config);
        let conditions = Conditions { latency: LATENCY, ..Conditions::default() };
        let mut net = Net::with(large_peer(config), large_peer(server_config()), conditions, 1);
        let (id, _) = net.connect();
        net.run_for(Duration::from_secs(1));
        Self { net, id }
    }

    fn new_reno() -> Self {
        Self::new(|config| config.congestion_control = CongestionControl::NewReno)
    }

    fn send(&mut self, messages: usize) {
        for _ in 0..messages {
            self.net
                .pair
                .a
                .send(self.net.pair.now, self.id, &MESSAGE, Delivery::RELIABLE)
                .expect("free memory");
        }
    }

    fn pass(&mut self, time: Duration) {
        self.net.pair.now = self.net.pair.now + time;
        self.net.pair.a.handle_timeout(self.net.pair.now);
    }

    /// Polls all datagrams.
    fn take_all(&mut self) -> Vec<Vec<u8>> {
        let mut buffer = [0; MAX_DATAGRAM];
        let mut all = Vec::new();
        while let Some(transmit) = self.net.pair.a.poll_transmit(self.net.pair.now, &mut buffer) {
            all.push(transmit.payload.to_vec());
        }
        all
    }

    /// Polls the data datagrams.
    fn take(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        for bytes in self.take_all() {
            let mut reader = Reader::new(&bytes);
            if let Ok(DatagramHeader::Data { number, .. }) = DatagramHeader::read(&mut reader) {
                let capsule = CapsuleHeader::read(&mut reader).expect("a capsule");
                sent.push(Sent { number, message: capsule.reliable });
            }
        }
        sent
    }

    /// Polls data datagrams for 25 ms, which is long enough to fill the congestion window despite pacing.
    fn take_window(&mut self) -> Vec<Sent> {
        let mut sent = self.take();
        for _ in 0..25 {
            self.pass(Duration::from_millis(1));
            sent.extend(self.take());
        }
        sent
    }

    fn answer(&mut self, header: DatagramHeader, records: &[(U24, U24)]) {
        let mut datagram = written(&header);
        for &(first, last) in records {
            datagram.extend(written(&Record { first, last }));
        }
        self.net.pair.a.handle_datagram(self.net.pair.now, self.net.pair.b_address, &datagram);
    }

    fn acknowledge(&mut self, records: &[(U24, U24)]) {
        let records_count = u16::try_from(records.len()).expect("at most 65,535 records");
        self.answer(DatagramHeader::Ack { arrival_speed: None, records: records_count }, records);
    }

    /// Receives a datagram with this number; returns the first byte of each datagram sent in response.
    fn answers_to(&mut self, number: u32) -> Vec<u8> {
        let mut datagram = written(&DatagramHeader::Data { hints: 0, number: U24::new(number) });
        datagram.extend([0x00, 0x00, 0x08, 0x86]);
        self.net.pair.a.handle_datagram(self.net.pair.now, self.net.pair.b_address, &datagram);
        self.take_all().iter().map(|datagram| datagram[0]).collect()
    }

    fn miss(&mut self, records: &[(U24, U24)]) {
        self.answer(
            DatagramHeader::Nack { records: u16::try_from(records.len()).expect("at most 65,535 records") },
            records,
        );
    }

    fn window(&self) -> u32 {
        self.net.pair.a.connection_stats(self.id).expect("an open connection").congestion_window
    }

    fn late(&self) -> u64 {
        self.net.pair.a.connection_stats(self.id).expect("an open connection").datagrams_late
    }
}

#[test]
fn acknowledgements_are_never_delayed_by_the_congestion_window() {
    let mut sender = Sender::new(|config| config.outgoing_limit = Some(8_000));
    sender.send(100);
    let window = sender.take_window();
    assert!(!window.is_empty());
    assert_eq!(sender.take(), [], "pacing and the outgoing limit must delay messages");
    // The datagrams before number 100 are missing.
    assert_eq!(
        sender.answers_to(100),
        [0xC0, 0xA0],
        "a gap must be reported immediately, with the received number"
    );
    assert_eq!(sender.answers_to(101), [0; 0], "an acknowledgement without a gap must be delayed");
    sender.pass(Duration::from_millis(10));
    let first: Vec<_> = sender.take_all().iter().map(|datagram| datagram[0]).collect();
    assert_eq!(first, [0xC0], "the acknowledgement is due after the delay");
    assert_eq!(sender.answers_to(99), [0xC0], "a datagram reported missing must be acknowledged immediately");
}

#[test]
fn resends_precede_new_messages_and_respect_the_window() {
    for control in [CongestionControl::DelayBased, CongestionControl::NewReno] {
        let mut sender = Sender::new(|config| config.congestion_control = control);
        sender.send(100);
        let window = sender.take_window();
        assert!(window.len() >= 8);
        let (second, fifth, last) = (window[1], window[4], window[window.len() - 1]);
        sender.pass(LATENCY);
        sender.miss(&[(fifth.number, fifth.number), (second.number, second.number)]);
        sender.acknowledge(&[(window[5].number, last.number)]);
        let next = sender.take_window();
        let messages: Vec<_> = next.iter().map(|sent| sent.message).collect();
        assert_eq!(messages[..3], [second.message, fifth.message, last.message.next()], "{control:?}");
        assert!(next[0].number.is_newer_than(last.number), "a resend must have a new datagram number");
    }
}

/// An urgent message that overtook earlier ones on its own channel would only wait for them at the receiver.
#[test]
fn an_urgent_message_overtakes_only_messages_of_other_channels() {
    let mut sender = Sender::new(|_| ());
    let mut send = |channel, priority, reliability| {
        let channel = Channel::new(channel).expect("a channel");
        let delivery = Delivery { reliability, channel, priority };
        sender.net.pair.a.send(sender.net.pair.now, sender.id, &MESSAGE, delivery).expect("free memory");
    };
    send(1, Priority::Low, Reliability::ReliableOrdered);
    send(1, Priority::Low, Reliability::ReliableOrdered);
    send(1, Priority::Immediate, Reliability::ReliableSequenced);
    send(1, Priority::Immediate, Reliability::ReliableOrdered);
    send(2, Priority::High, Reliability::ReliableOrdered);
    let places = sender.take_all().into_iter().filter_map(|bytes| {
        let mut reader = Reader::new(&bytes);
        DatagramHeader::read(&mut reader).ok()?;
        let capsule = CapsuleHeader::read(&mut reader).ok()?;
        Some((capsule.channel, capsule.order.get(), capsule.reliability))
    });
    let (ordered, sequenced) = (Reliability::ReliableOrdered, Reliability::ReliableSequenced);
    let expected = [(2, 0, ordered), (1, 0, ordered), (1, 1, ordered), (1, 2, sequenced), (1, 2, ordered)];
    assert_eq!(places.collect::<Vec<_>>(), expected);
}

/// Under load, the four priorities share the bandwidth at about 35 : 7 : 2.5 : 1.
#[test]
fn priorities_share_the_bandwidth_by_their_weights() {
    let mut sender = Sender::new(|config| config.outgoing_limit = None);
    for round in 0..4_000 {
        for (priority, byte) in PRIORITIES.into_iter().zip(0x90_u8..) {
            if round < 400 || priority == Priority::Immediate {
                let delivery = Delivery::RELIABLE.with_priority(priority);
                let (now, id) = (sender.net.pair.now, sender.id);
                sender.net.pair.a.send(now, id, &[byte; 1_400], delivery).expect("free memory");
            }
        }
    }
    sender.net.run_for(Duration::from_millis(1_500));
    let mut counts = [0_u32; 4];
    for message in messages(&sender.net.server).iter().take(900) {
        counts[usize::from(message[0] - 0x90)] += 1;
    }
    let [immediate, high, medium, low] = counts;
    assert_eq!(immediate + high + medium + low, 900, "{counts:?}");
    let is_about = |part: u32, share: f64| (f64::from(part) / 900.0 / (share / 45.5) - 1.0).abs() < 0.25;
    let shares =
        is_about(immediate, 35.0) && is_about(high, 7.0) && is_about(medium, 2.5) && is_about(low, 1.0);
    assert!(shares, "{counts:?}");
}

#[test]
fn small_messages_share_a_datagram() {
    let mut sender = Sender::new(|_| ());
    for byte in 0x86..0xF0_u8 {
        let (now, id) = (sender.net.pair.now, sender.id);
        sender.net.pair.a.send(now, id, &[byte; 10], Delivery::RELIABLE).expect("free memory");
    }
    let datagrams = sender.take_all();
    let capsule = 6 + 10;
    assert_eq!(
        datagrams.len(),
        (0xF0 - 0x86) * capsule / 1_455 + 1,
        "each datagram must be filled up to 1,455 bytes"
    );
    assert!(datagrams[0].len() > 1_455 - capsule);
}

#[test]
fn a_late_acknowledgement_prevents_the_resend_and_undoes_the_window_reduction() {
    let mut sender = Sender::new_reno();
    sender.send(100);
    let window = sender.take_window();
    let before = sender.window();
    sender.pass(LATENCY);
    let late = window[2];
    sender.miss(&[(late.number, late.number)]);
    assert!(sender.window() < before);
    sender.acknowledge(&[(late.number, late.number)]);
    assert_eq!((sender.window(), sender.late()), (before, 1));
    assert!(
        sender.take_window().iter().all(|sent| sent.message != late.message),
        "the late message must not be resent"
    );
}

#[test]
fn a_late_acknowledgement_undoes_the_window_reduction_even_after_the_resend() {
    let mut sender = Sender::new_reno();
    sender.send(100);
    let window = sender.take_window();
    let before = sender.window();
    sender.pass(LATENCY);
    let late = window[2];
    sender.miss(&[(late.number, late.number)]);
    sender.acknowledge(&[(window[0].number, window[1].number), (window[3].number, window[9].number)]);
    assert_eq!(sender.take_window()[0].message, late.message);
    assert!(sender.window() < before);
    sender.acknowledge(&[(late.number, late.number)]);
    assert!(sender.window() >= before);
    sender.acknowledge(&[(late.number, late.number)]);
    assert_eq!(sender.late(), 1, "a repeated acknowledgement must not count again");
}

/// RFC 9002, section 7.3.2: acknowledgements of datagrams sent before a window reduction do not grow the window.
#[test]
fn the_window_grows_only_by_datagrams_sent_after_the_reduction() {
    let mut sender = Sender::new_reno();
    sender.send(1_000);
    let before = sender.take_window();
    let last = before[before.len() - 1].number;
    sender.pass(LATENCY);
    sender.miss(&[(before[0].number, before[0].number)]);
    let reduced = sender.window();
    sender.acknowledge(&[(before[1].number, last)]);
    assert_eq!(sender.window(), reduced);
    for _ in 0..2 {
        let after = sender.take_window();
        sender.pass(LATENCY);
        sender.acknowledge(&[(after[0].number, after[after.len() - 1].number)]);
    }
    assert!(sender.window() > reduced);
}

/// RFC 9002, section 6.1.2: the threshold is 9/8 of the latest RTT sample, so a sudden increase in latency is not
/// mistaken for a loss.
#[test]
fn the_time_threshold_follows_the_latest_rtt_sample() {
    let mut sender = Sender::new(|config| config.min_resend_timeout = Duration::from_secs(1));
    let lost = |sender: &Sender| {
        sender.net.pair.a.connection_stats(sender.id).expect("an open connection").datagrams_lost
    };
    let before = lost(&sender);
    sender.send(2);
    let sent = sender.take();
    assert_eq!(sent.len(), 2);
    sender.pass(Duration::from_millis(100));
    sender.acknowledge(&[(sent[1].number, sent[1].number)]);
    assert_eq!(sender.take(), []);
    sender.pass(Duration::from_millis(11));
    assert_eq!(lost(&sender), before, "the threshold of 112.5 ms has not passed");
    sender.pass(Duration::from_millis(3));
    assert_eq!(lost(&sender), before + 1);
}

/// After reordering was detected, a negative acknowledgement alone no longer declares a datagram lost.
#[test]
fn reordering_widens_the_reordering_window() {
    let mut sender = Sender::new_reno();
    sender.send(100);
    let window = sender.take_window();
    sender.pass(LATENCY);
    for late in [window[1], window[3]] {
        sender.miss(&[(late.number, late.number)]);
        sender.acknowledge(&[(late.number, late.number)]);
    }
    assert_eq!(sender.late(), 1, "the second datagram must not be declared lost");
}

#[test]
fn negative_and_forged_acknowledgements_do_not_grow_the_window() {
    for control in [CongestionControl::DelayBased, CongestionControl::NewReno] {
        let mut sender = Sender::new(|config| config.congestion_control = control);
        sender.send(1_000);
        let sent = sender.take_window();
        let (before, oldest) = (sender.window(), sent[0].number);
        let next = sent[sent.len() - 1].number.next();
        for _ in 0..1_000 {
            sender.pass(Duration::from_millis(1));
            // The acknowledged ranges lie before and after the datagrams in flight. The missing ones include them.
            sender.acknowledge(&[(U24::new(0), oldest.minus(1)), (next, next.plus(5_000))]);
            sender.miss(&[(U24::new(0), U24::new(0xFF_FFFE)), (oldest, next)]);
            // The resends get new numbers, which later acknowledgements must not cover.
            assert!(sender.window() <= before, "{control:?}");
            let in_flight =
                sender.net.pair.a.connection_stats(sender.id).expect("an open connection").in_flight;
            assert!(in_flight <= before + MAX_DATAGRAM as u32);
        }
    }
}

/// A receiver that acknowledges everything immediately raises the congestion window to at most 8,192 datagrams.
#[test]
fn the_congestion_window_is_bounded() {
    for control in [CongestionControl::DelayBased, CongestionControl::NewReno] {
        let mut sender = Sender::new(|config| config.congestion_control = control);
        let mut largest = 0;
        for _ in 0..400 {
            while sender.net.pair.a.send(sender.net.pair.now, sender.id, &MESSAGE, Delivery::RELIABLE).is_ok()
            {
            }
            sender.pass(Duration::from_millis(1));
            let sent = sender.take();
            for part in sent.chunks(64) {
                sender.acknowledge(&[(part[0].number, part[part.len() - 1].number)]);
            }
            largest = largest.max(sender.window());
        }
        assert!(
            (2_000 * 1_459..=8_192 * 1_459).contains(&largest),
            "{control:?}: a window of {largest} bytes"
        );
    }
}

/// Returns the times at which an unacknowledged datagram is sent, in milliseconds after the first transmission. Path
/// probes are not included.
fn resend_times(change: impl FnOnce(&mut Config)) -> Vec<u64> {
    let mut sender = Sender::new(change);
    sender.send(1);
    let start = sender.net.now();
    let mut times = Vec::new();
    for _ in 0..5_000 {
        times.extend(
            sender.take().iter().map(|_| sender.net.now().saturating_since(start).as_millis() as u64),
        );
        sender.pass(Duration::from_millis(1));
    }
    times.dedup();
    times
}

fn gaps(times: &[u64]) -> Vec<u64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn resend_timeouts_follow_the_configuration() {
    let usual = gaps(&resend_times(|_| {}));
    assert!(usual[0] < 200, "the first resend must be an early probe: {usual:?}");
    assert!(usual[1..].windows(2).all(|pair| pair[1] + 2 >= 2 * pair[0] || pair[1] >= 1_999), "{usual:?}");
    let steady = gaps(&resend_times(|config| config.resend_backoff = 0));
    assert!(steady[1..].windows(2).all(|pair| pair[0].abs_diff(pair[1]) <= 1), "{steady:?}");
    let slow = gaps(&resend_times(|config| config.min_resend_timeout = Duration::from_millis(700)));
    assert!(slow.iter().all(|gap| *gap >= 700), "{slow:?}");
    let fast = gaps(&resend_times(|config| config.max_resend_timeout = Duration::from_millis(60)));
    assert!(fast.iter().all(|gap| *gap <= 61), "{fast:?}");
}

/// The last datagram of a burst is lost, so no later acknowledgement reveals the loss.
#[test]
fn a_lost_tail_is_detected_before_the_timeout() {
    let mut sender = Sender::new(|_| {});
    let start = sender.net.now();
    sender.net.pair.forth().set_conditions(Conditions { loss: 1.0, ..Conditions::default() });
    sender.send(1);
    sender.net.pair.transmit();
    let conditions = Conditions { latency: LATENCY, ..Conditions::default() };
    sender.net.pair.forth().set_conditions(conditions);
    assert!(sender.net.run_until(Duration::from_secs(2), |net| !net.server.is_empty()));
    let took = sender.net.now().saturating_since(start);
    assert!(took < Duration::from_millis(170), "{took:?}");
}

/// Returns the maximum number of bytes sent in a millisecond, and the number of bytes sent in ten seconds.
fn flow(change: impl FnOnce(&mut Config), delivery: Delivery) -> (u64, u64) {
    let mut sender = Sender::new(change);
    let bottleneck = Some(Bottleneck::with_queue_of(20_000_000, 2 * LATENCY));
    sender.net.pair.set_conditions(Conditions { latency: LATENCY, bottleneck, ..Conditions::default() });
    let (start, before) = (sender.net.now(), sender.net.pair.a.stats().bytes_sent);
    let (mut largest, mut since, mut sent) = (0, Instant::ZERO, before);
    sender.net.run_until(Duration::from_secs(10), |net| {
        net.server.clear();
        let now = net.pair.now;
        let waiting = net.pair.a.blocks() - net.pair.a.blocks_available();
        if waiting < 3_000 {
            for _ in 0..300 {
                net.pair.a.send(now, sender.id, &MESSAGE, delivery).expect("free memory");
            }
        }
        let all = net.pair.a.stats().bytes_sent;
        if now.saturating_since(since) >= Duration::from_millis(1) {
            if now.saturating_since(start) > Duration::from_secs(1) {
                largest = largest.max(all - sent);
            }
            (since, sent) = (now, all);
        }
        false
    });
    (largest, sender.net.pair.a.stats().bytes_sent - before)
}

#[test]
fn datagrams_are_paced_over_the_round_trip() {
    let quota = |config: &mut Config| config.outgoing_limit = None;
    let (largest, all) = flow(quota, Delivery::RELIABLE);
    let a_millisecond = all / 10_000;
    assert!(
        largest <= 4 * a_millisecond + 4 * MAX_DATAGRAM as u64,
        "{largest} bytes in one millisecond, {a_millisecond} on average"
    );
}

#[test]
fn the_outgoing_limit_is_respected() {
    for delivery in [Delivery::RELIABLE_ORDERED, Delivery::UNRELIABLE] {
        let (_, sent) = flow(|config| config.outgoing_limit = Some(2_000_000), delivery);
        let limit = 10 * 2_000_000 / 8;
        assert!((limit * 9 / 10..limit * 102 / 100).contains(&sent), "{sent} bytes sent, {delivery:?}");
    }
}

#[test]
fn messages_arrive_intact_while_the_path_changes() {
    let mut sender = Sender::new(|_| {});
    for step in 0..20_u32 {
        let loss = f64::from(step % 3) * 0.1;
        let reordering = f64::from(step % 4) * 0.1;
        let latency = Duration::from_millis(u64::from(step % 5) * 20 + 1);
        let conditions = Conditions { loss, reordering, latency, ..Conditions::default() };
        sender.net.pair.set_conditions(conditions);
        sender.send(20);
        sender.net.run_for(Duration::from_millis(150));
    }
    sender.net.run_for(Duration::from_secs(10));
    assert_eq!(messages(&sender.net.server).len(), 400);
}
