//! Counters and measurements of a connection. Counters never decrease, and with 64 bits they do not wrap in practice.
//!
//! See docs/raknet.md#statistics.

use core::time::Duration;

use crate::endpoint::DropReasons;

drop_reasons! {
    /// The reason why received data was dropped.
    ///
    /// Invalid data from the network never makes a call fail; it is counted here.
    pub enum DropReason {
        /// A datagram of two bytes or fewer.
        TooShort,
        /// A malformed offline message.
        BadOffline,
        /// A malformed datagram, acknowledgement or capsule; the rest of the datagram is dropped.
        BadDatagram,
        /// A data or acknowledgement datagram from an address without a connection.
        UnknownSource,
        /// A handshake packet or pong that this peer did not request.
        Unexpected,
        /// Request 2 with a wrong or expired cookie.
        BadCookie,
        /// Request 2 without the cookie that this server requested.
        ///
        /// It is forged, or comes from a client without cookie support, which cannot connect while cookies are
        /// requested ([`CookiePolicy`](super::CookiePolicy)).
        MissingCookie,
        /// Request 2 without a cookie, which has become required since request 1.
        ///
        /// Since request 1, other unvalidated clients have used up their limit or occupy the slot. The server has
        /// answered with a request for a cookie.
        CookieRequested,
        /// A request that is shorter than its response.
        WouldAmplify,
        /// A queued response that a later one replaced.
        AnswersFull,
        /// A datagram that was received before.
        DuplicateDatagram,
        /// A reliable message that did not fit into memory, in a datagram with a reused datagram number.
        ///
        /// Some implementations reuse numbers. The number was acknowledged before, so the message is not
        /// retransmitted.
        LostInDuplicate,
        /// A datagram number outside the receive window.
        OutsideWindow,
        /// A reliable message that was received before.
        DuplicateMessage,
        /// A sequenced message older than one already delivered.
        OutOfSequence,
        /// A datagram for which no memory is free.
        ///
        /// It is not acknowledged, so the remote peer retransmits its reliable messages.
        NoMemory,
        /// A part that contradicts other parts of its split message.
        BadSplit,
        /// A RakNet control message that is invalid in the current state.
        BadControl,
        /// A message with an ID that is reserved for RakNet and has no meaning inside a connection.
        ReservedId,
        /// An outgoing unreliable message that expired in the send queue.
        Expired,
        /// An acknowledgement that covers too many datagrams to look up.
        TooManyRecords,
        /// A ping beyond the rate limit for pongs.
        PongLimit,
        /// A datagram from a banned address.
        Banned,
        /// A half-open connection that was evicted, or refused because its network has too many.
        HalfOpenLimit,
        /// A client refused because its address or network has too many connections.
        AddressLimit,
        /// A forged, damaged or replayed datagram of a secure connection or handshake.
        Unauthentic,
        /// A secure handshake beyond the rate limit of its network or the total rate limit.
        HandshakeLimit,
        /// A connection request with a wrong password.
        WrongPassword,
        /// A connection request without the required identity, or with an invalid one.
        InvalidIdentity,
        /// A connection request without a connect token that is valid for this server and client.
        RefusedToken,
    }
}

/// A number of bytes, in total and recently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Amount {
    /// Bytes since the connection was created.
    pub total: u64,
    /// Bytes in the last full second.
    pub last_second: u32,
}

/// The size of a queue of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Waiting {
    /// The number of capsules; a split message counts once for each part.
    pub messages: u32,
    /// The length of their payloads in bytes.
    pub bytes: u32,
}

/// Counters and measurements of one connection (docs/raknet.md#statistics).
///
/// Without the feature `full` the counters and the pings are 0.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Messages that `send` accepted.
    pub messages_sent: u64,
    /// Messages delivered to the application.
    pub messages_received: u64,
    /// Data datagrams sent; acknowledgements are not counted.
    pub datagrams_sent: u64,
    /// Data datagrams received; duplicates are not counted.
    pub datagrams_received: u64,
    /// Datagrams declared lost, so that their messages were queued for retransmission.
    ///
    /// Some of them may only have been delayed: [`datagrams_missing`](Self::datagrams_missing) excludes those known to
    /// be received.
    pub datagrams_lost: u64,
    /// Spurious losses: datagrams declared lost and acknowledged later.
    ///
    /// They are detected while the messages of a lost datagram await retransmission, and after that for the last
    /// sixteen lost datagrams.
    pub datagrams_late: u64,
    /// Datagrams acknowledged by the remote peer.
    pub datagrams_acknowledged: u64,
    /// Payload bytes of messages that `send` accepted.
    pub bytes_pushed: Amount,
    /// Payload bytes of messages sent for the first time.
    pub bytes_sent: Amount,
    /// Payload bytes of messages retransmitted.
    pub bytes_resent: Amount,
    /// Payload bytes of messages delivered to the application.
    pub bytes_processed: Amount,
    /// Payload bytes of received messages that were dropped as duplicate or outdated.
    pub bytes_ignored: Amount,
    /// Bytes of all datagrams sent, without IP and UDP headers.
    pub actual_bytes_sent: Amount,
    /// Bytes of all datagrams received, without IP and UDP headers.
    pub actual_bytes_received: Amount,
    /// Messages in the send queue that were never sent, by priority from immediate to low.
    pub waiting: [Waiting; 4],
    /// Lost messages that await retransmission.
    pub waiting_resends: Waiting,
    /// The smoothed round-trip time; zero before the first sample.
    ///
    /// It includes the acknowledgement delay of the remote peer.
    pub round_trip: Duration,
    /// The round-trip time of the last connected ping; zero before the first pong.
    pub last_ping: Duration,
    /// The mean of the last five connected pings; zero before the first pong.
    pub average_ping: Duration,
    /// The lowest round-trip time of a connected ping; zero before the first pong.
    pub lowest_ping: Duration,
    /// The remote clock minus the local clock in milliseconds; `None` before the first pong.
    pub clock_difference: Option<i64>,
    /// The congestion window in bytes.
    pub congestion_window: u32,
    /// Bytes sent and neither acknowledged nor declared lost.
    pub in_flight: u32,
    /// The MTU of the connection, including 28 bytes of IP and UDP headers.
    pub mtu: u16,
}

impl ConnectionStats {
    /// Returns the number of datagrams declared lost and not known to have been received.
    ///
    /// The path dropped them, or has not delivered them yet. Unlike a counter, the number decreases when a late
    /// acknowledgement arrives.
    #[must_use]
    pub const fn datagrams_missing(&self) -> u64 {
        self.datagrams_lost.saturating_sub(self.datagrams_late)
    }

    /// Returns the fraction of sent bytes that were retransmissions, 0 to 1, since the connection was created.
    #[must_use]
    pub fn loss(&self) -> f64 {
        share(self.bytes_resent.total, self.bytes_sent.total)
    }

    /// Returns the fraction of sent bytes that were retransmissions, 0 to 1, in the last full second.
    ///
    /// It shows the current quality of the path, for example to the player; [`loss`](Self::loss) reacts too slowly.
    #[must_use]
    pub fn loss_last_second(&self) -> f64 {
        share(self.bytes_resent.last_second.into(), self.bytes_sent.last_second.into())
    }
}

/// Returns `part / (part + rest)`, or 0 if both are 0.
fn share(part: u64, rest: u64) -> f64 {
    let all = part + rest;
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

pub(crate) use counters::{Count, Metrics, WaitingAmounts};

mod counters {
    use super::{Amount, Waiting};
    use crate::endpoint::STATISTICS;
    use crate::time::{Instant, divide};

    const MICROS_PER_SECOND: u64 = 1_000_000;
    /// The length of arrays that are empty if nothing is counted.
    const KEPT: usize = STATISTICS as usize;

    /// An event counter.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Count([u64; KEPT]);

    impl Count {
        #[inline]
        pub(crate) const fn add_one(&mut self) {
            if let Some(count) = self.0.first_mut() {
                *count += 1;
            }
        }

        pub(crate) fn get(self) -> u64 {
            self.0.first().copied().unwrap_or(0)
        }
    }

    /// The current number of messages and bytes in each of `N` queues.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct WaitingAmounts<const N: usize>([[Waiting; N]; KEPT]);

    impl<const N: usize> Default for WaitingAmounts<N> {
        fn default() -> Self {
            Self([[Waiting { messages: 0, bytes: 0 }; N]; KEPT])
        }
    }

    impl<const N: usize> WaitingAmounts<N> {
        /// Counts a message that enters a queue.
        pub(crate) fn count_in(&mut self, queue: usize, bytes: usize) {
            if let Some(amount) = self.amount_mut(queue) {
                amount.messages += 1;
                amount.bytes = amount.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
            }
        }

        /// Counts a message that leaves a queue.
        pub(crate) fn count_out(&mut self, queue: usize, bytes: usize) {
            if let Some(amount) = self.amount_mut(queue) {
                amount.messages = amount.messages.saturating_sub(1);
                amount.bytes = amount.bytes.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
            }
        }

        fn amount_mut(&mut self, queue: usize) -> Option<&mut Waiting> {
            self.0.first_mut()?.get_mut(queue)
        }

        pub(crate) fn amounts(self) -> [Waiting; N] {
            self.0.first().copied().unwrap_or_else(|| [Waiting::default(); N])
        }
    }

    /// A byte counter: in total, in the current second, and in the last full second.
    ///
    /// Four-byte alignment avoids padding before and after it.
    #[derive(Clone, Copy, Debug, Default)]
    #[repr(C, packed(4))]
    struct Counter {
        total: u64,
        running: u32,
        last: u32,
    }

    /// Byte counters of `N` metrics.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Metrics<const N: usize>([PerSecond<N>; KEPT]);

    /// The byte counters, and the number of the current second.
    #[derive(Clone, Copy, Debug)]
    struct PerSecond<const N: usize> {
        counters: [Counter; N],
        second: u32,
    }

    impl<const N: usize> Default for Metrics<N> {
        fn default() -> Self {
            let counters = [Counter { total: 0, running: 0, last: 0 }; N];
            Self([PerSecond { counters, second: 0 }; KEPT])
        }
    }

    impl<const N: usize> Metrics<N> {
        #[inline]
        pub(crate) fn add(&mut self, now: Instant, metric: usize, bytes: usize) {
            if let Some(PerSecond { counters, second }) = self.0.first_mut() {
                add(counters, second, now, metric, bytes);
            }
        }

        /// Returns all counters as of `now`.
        pub(crate) fn amounts(self, now: Instant) -> [Amount; N] {
            let Some(PerSecond { mut counters, mut second }) = self.0.first().copied() else {
                return [Amount::default(); N];
            };
            start_second(&mut counters, &mut second, now);
            counters.map(|counter| Amount { total: counter.total, last_second: counter.last })
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn add(counters: &mut [Counter], second: &mut u32, now: Instant, metric: usize, bytes: usize) {
        start_second(counters, second, now);
        if let Some(counter) = counters.get_mut(metric) {
            counter.total += bytes as u64;
            counter.running = counter.running.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    fn start_second(counters: &mut [Counter], second: &mut u32, now: Instant) {
        let start = u64::from(*second) * MICROS_PER_SECOND;
        // Avoids the division below, which is slow without a hardware instruction.
        if now.as_micros().wrapping_sub(start) < MICROS_PER_SECOND {
            return;
        }
        let new = divide(now.as_micros(), MICROS_PER_SECOND as u32) as u32;
        if new != *second {
            let follows = new == second.wrapping_add(1);
            for counter in counters {
                let running = core::mem::take(&mut counter.running);
                counter.last = if follows { running } else { 0 };
            }
            *second = new;
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn at(millis: u64) -> Instant {
            Instant::from_micros(millis * 1_000)
        }

        const FIRST: usize = 0;

        #[test]
        fn last_second_counts_the_last_full_second() {
            let mut metrics = Metrics::<2>::default();
            let last_second = |metrics: &Metrics<2>, millis| metrics.amounts(at(millis))[FIRST].last_second;
            metrics.add(at(100), FIRST, 10);
            metrics.add(at(900), FIRST, 5);
            assert_eq!(last_second(&metrics, 999), 0);
            assert_eq!(last_second(&metrics, 1_000), 15);
            metrics.add(at(1_500), FIRST, 1);
            assert_eq!(last_second(&metrics, 1_999), 15);
            assert_eq!(last_second(&metrics, 2_000), 1);
            assert_eq!(last_second(&metrics, 3_000), 0);
            let [first, second] = metrics.amounts(at(3_000));
            assert_eq!((first.total, second.total), (16, 0));
        }
    }
}
