//! Counters, which never decrease and at 64 bits never wrap in practice.
//!
//! The statistics of a connection come first, followed by the counters of bytes in the last second and in total
//! (docs/raknet.md#statistics).

use core::time::Duration;

use crate::endpoint::DropReasons;

drop_reasons! {
    /// The reason why received data was dropped.
    ///
    /// Data from the network never causes an error of a call; it is counted here.
    pub enum DropReason {
        /// Two bytes or fewer.
        TooShort,
        /// A malformed offline message.
        BadOffline,
        /// A malformed datagram, acknowledgement or capsule, from there to the end of the datagram.
        BadDatagram,
        /// A datagram of a connection from an address that has none.
        UnknownSource,
        /// An offline message that was not requested.
        Unexpected,
        /// Request 2 with a wrong or expired cookie.
        BadCookie,
        /// Request 2 without the requested cookie.
        ///
        /// It is forged, or from a client that does not support cookies, which is never admitted while they are
        /// requested ([`CookiePolicy`](super::CookiePolicy)).
        MissingCookie,
        /// Request 2 of a client that was not asked for a cookie before, but is now.
        ///
        /// Others have taken the slots without one in the meantime, or connections with possibly forged addresses
        /// block it.
        CookieRequested,
        /// A request that is too short for its answer.
        WouldAmplify,
        /// An answer that a later one replaced in its queue.
        AnswersFull,
        /// A datagram that arrived before.
        DuplicateDatagram,
        /// A reliable message for which there is no memory, in a datagram with the number of an earlier one.
        ///
        /// Some peers reuse numbers. The number is already acknowledged, so the peer does not retransmit the message.
        LostInDuplicate,
        /// A datagram too far ahead of or behind the others.
        OutsideWindow,
        /// A reliable message that arrived before.
        DuplicateMessage,
        /// A sequenced message older than one delivered.
        OutOfSequence,
        /// A datagram for which there is no memory: it is not acknowledged, so the peer retransmits it.
        NoMemory,
        /// A part that contradicts the other parts of its message.
        BadSplit,
        /// A control message of RakNet that is invalid in this state.
        BadControl,
        /// A message of a connection with an id that is reserved for RakNet and has no meaning inside a connection.
        ReservedId,
        /// An unreliable message of this side that waited too long.
        Expired,
        /// An acknowledgement that would cause too many datagrams to be looked up.
        TooManyRecords,
        /// A ping beyond the rate limit of pongs.
        PongLimit,
        /// A message from a banned address.
        Banned,
        /// A half-open connection that had to make room, or for which its network had no room.
        HalfOpenLimit,
        /// A client from an address or network that has reached its limit of connections.
        AddressLimit,
        /// A part of a secure handshake or a sealed datagram that was forged, damaged or replayed.
        Unauthentic,
        /// A secure handshake beyond the rate limit of its network or in total.
        HandshakeLimit,
        /// A connection request with a wrong password.
        WrongPassword,
        /// A connection request with a missing or invalid identity.
        InvalidIdentity,
        /// A connection request without a connect token that is valid now, for this server and this client.
        RefusedToken,
    }
}

/// Bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Amount {
    /// Since the connection began.
    pub total: u64,
    /// In the last whole second.
    pub last_second: u32,
}

/// Messages that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Waiting {
    /// The number of capsules; a split message has several.
    pub messages: u32,
    /// Their bytes, without headers.
    pub bytes: u32,
}

/// Counters and measurements of one connection (docs/raknet.md#statistics).
///
/// Without the feature `statistics` the counters and the pings are 0.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Messages of the application accepted by `send`.
    pub messages_sent: u64,
    /// Messages of the application delivered.
    pub messages_received: u64,
    /// Data datagrams sent; acknowledgements are not counted.
    pub datagrams_sent: u64,
    /// Data datagrams received; duplicates are not counted.
    pub datagrams_received: u64,
    /// Datagrams declared lost, after which their messages were queued again.
    ///
    /// Some may only have been late: [`datagrams_missing`](Self::datagrams_missing) excludes them.
    pub datagrams_lost: u64,
    /// Spurious losses: datagrams declared lost that arrived after all, as far as that is known.
    ///
    /// It is known for datagrams while their messages wait for retransmission, and for the last sixteen of the others.
    pub datagrams_late: u64,
    /// Datagrams that were acknowledged.
    pub datagrams_acknowledged: u64,
    /// Bytes of messages accepted by `send`.
    pub bytes_pushed: Amount,
    /// Bytes of messages sent for the first time.
    pub bytes_sent: Amount,
    /// Bytes of messages retransmitted.
    pub bytes_resent: Amount,
    /// Bytes of messages delivered.
    pub bytes_processed: Amount,
    /// Bytes of messages that were received in vain: duplicates or outdated.
    pub bytes_ignored: Amount,
    /// Bytes of datagrams sent, without IP and UDP headers.
    pub actual_bytes_sent: Amount,
    /// Bytes of datagrams received, without IP and UDP headers.
    pub actual_bytes_received: Amount,
    /// New messages that wait, by priority from immediate to low.
    pub waiting: [Waiting; 4],
    /// Lost messages that wait for retransmission.
    pub waiting_resends: Waiting,
    /// The smoothed round-trip time; zero before the first sample.
    ///
    /// It includes the acknowledgement delay of the remote peer.
    pub round_trip: Duration,
    /// The round-trip time of the last connected ping; zero before the first pong.
    pub last_ping: Duration,
    /// The mean of the last five; zero before the first pong.
    pub average_ping: Duration,
    /// The lowest of all; zero before the first pong.
    pub lowest_ping: Duration,
    /// The clock of the remote peer minus the local one in milliseconds, once a pong has arrived.
    pub clock_difference: Option<i64>,
    /// The congestion window in bytes.
    pub congestion_window: u32,
    /// Bytes in flight.
    pub in_flight: u32,
    /// The MTU of the connection, including 28 bytes of IP and UDP headers.
    pub mtu: u16,
}

impl ConnectionStats {
    /// Returns the datagrams declared lost that are not known to have arrived.
    ///
    /// They were lost on the path, or are still delayed. Unlike the counters it decreases when a datagram arrives late.
    #[must_use]
    pub const fn datagrams_missing(&self) -> u64 {
        self.datagrams_lost.saturating_sub(self.datagrams_late)
    }

    /// Returns the fraction of bytes that had to be retransmitted since the beginning, 0 to 1.
    #[must_use]
    pub fn loss(&self) -> f64 {
        share(self.bytes_resent.total, self.bytes_sent.total)
    }

    /// Returns the fraction of bytes that had to be retransmitted in the last whole second, 0 to 1.
    ///
    /// A game can show it to its player as the current state of the path, for which [`loss`](Self::loss) changes too
    /// slowly.
    #[must_use]
    pub fn loss_last_second(&self) -> f64 {
        share(self.bytes_resent.last_second.into(), self.bytes_sent.last_second.into())
    }
}

/// Returns `part` as a fraction of the sum, from 0 to 1.
fn share(part: u64, rest: u64) -> f64 {
    let all = part + rest;
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

pub(crate) use counters::{Count, Metrics, WaitingAmounts};

#[cfg(feature = "statistics")]
mod counters {
    use super::{Amount, Waiting};
    use crate::time::{Instant, divide};

    const MICROS_PER_SECOND: u64 = 1_000_000;

    /// A count of events.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Count(u64);

    impl Count {
        #[inline]
        pub(crate) const fn add_one(&mut self) {
            self.0 += 1;
        }

        pub(crate) const fn get(self) -> u64 {
            self.0
        }
    }

    /// The amounts of messages in each of `N` queues.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct WaitingAmounts<const N: usize>([Waiting; N]);

    impl<const N: usize> Default for WaitingAmounts<N> {
        fn default() -> Self {
            Self(const { [Waiting { messages: 0, bytes: 0 }; N] })
        }
    }

    impl<const N: usize> WaitingAmounts<N> {
        /// Counts a message that entered a queue.
        pub(crate) fn count_in(&mut self, queue: usize, bytes: usize) {
            if let Some(amount) = self.0.get_mut(queue) {
                amount.messages += 1;
                amount.bytes = amount.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
            }
        }

        /// Counts a message that left a queue.
        pub(crate) fn count_out(&mut self, queue: usize, bytes: usize) {
            if let Some(amount) = self.0.get_mut(queue) {
                amount.messages = amount.messages.saturating_sub(1);
                amount.bytes = amount.bytes.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
            }
        }

        pub(crate) const fn amounts(self) -> [Waiting; N] {
            self.0
        }
    }

    /// Bytes of one kind: in total, in the current second, and in the last whole one.
    ///
    /// Counters are aligned to four bytes, so that neither end wastes an odd number of words.
    #[derive(Clone, Copy, Debug, Default)]
    #[repr(C, packed(4))]
    struct Counter {
        total: u64,
        running: u32,
        last: u32,
    }

    /// Counters of bytes, one for each of `N` metrics.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Metrics<const N: usize> {
        counters: [Counter; N],
        second: u32,
    }

    impl<const N: usize> Default for Metrics<N> {
        fn default() -> Self {
            Self { counters: const { [Counter { total: 0, running: 0, last: 0 }; N] }, second: 0 }
        }
    }

    impl<const N: usize> Metrics<N> {
        #[inline]
        pub(crate) fn add(&mut self, now: Instant, metric: usize, bytes: usize) {
            add(&mut self.counters, &mut self.second, now, metric, bytes);
        }

        /// Returns all counters as of `now`.
        pub(crate) fn amounts(&self, now: Instant) -> [Amount; N] {
            let mut metrics = *self;
            start_second(&mut metrics.counters, &mut metrics.second, now);
            metrics.counters.map(|counter| Amount { total: counter.total, last_second: counter.last })
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
        // Without a hardware instruction, the division below would dominate the cost.
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
        fn the_last_second_is_the_last_complete_one() {
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

/// Without the feature `statistics` nothing is counted.
#[cfg(not(feature = "statistics"))]
mod counters {
    use super::{Amount, Waiting};
    use crate::time::Instant;

    /// A counter that stays at 0.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Count;

    impl Count {
        pub(crate) const fn add_one(self) {}

        pub(crate) const fn get(self) -> u64 {
            0
        }
    }

    /// Counters of bytes that stay at 0.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Metrics<const N: usize>;

    impl<const N: usize> Metrics<N> {
        #[inline]
        pub(crate) const fn add(self, _: Instant, _: usize, _: usize) {}

        pub(crate) fn amounts(self, _: Instant) -> [Amount; N] {
            [Amount::default(); N]
        }
    }

    /// The amounts of messages in each of `N` queues, which are not counted.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct WaitingAmounts<const N: usize>;

    impl<const N: usize> WaitingAmounts<N> {
        pub(crate) const fn count_in(self, _: usize, _: usize) {}

        pub(crate) const fn count_out(self, _: usize, _: usize) {}

        pub(crate) fn amounts(self) -> [Waiting; N] {
            [Waiting::default(); N]
        }
    }
}
