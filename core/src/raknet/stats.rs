//! Counters. They only grow, and at 64 bits never wrap in practice. What a peer tells of a connection stands first, and
//! behind it what counts in the last second and since the beginning (docs/raknet.md#statistics).

use core::time::Duration;

use crate::endpoint::DropReasons;

drop_reasons! {
    /// Why something that arrived was dropped. Nothing from the network is ever an error of a call: it is counted here.
    pub enum DropReason {
        /// Two bytes or fewer.
        TooShort,
        /// An offline message whose bytes make no sense.
        BadOffline,
        /// A datagram, acknowledgement or capsule whose bytes make no sense, from there to its end.
        BadDatagram,
        /// A datagram of a connection from an address that has none.
        UnknownSource,
        /// An offline message that nobody here asked for.
        Unexpected,
        /// Request 2 with a wrong or old cookie.
        BadCookie,
        /// Request 2 without the cookie that was asked for: of a client that does not know cookies, which never gets in while
        /// they are asked ([`CookiePolicy`](super::CookiePolicy)), or forged.
        MissingCookie,
        /// Request 2 of a client that was asked for no cookie, and that is asked for one after all: others have taken the places
        /// without one meanwhile, or connections that may be forged are in its way.
        CookieRequested,
        /// A request too short to be worth its answer.
        WouldAmplify,
        /// An answer that a later one pushed out of its queue.
        AnswersFull,
        /// A datagram that arrived before.
        DuplicateDatagram,
        /// A reliable message in a datagram with the number of an earlier one, as some peers send it, for which there is no
        /// memory: the number is acknowledged, so the peer does not resend it.
        LostInDuplicate,
        /// A datagram too far ahead of or behind the others.
        OutsideWindow,
        /// A reliable message that arrived before.
        DuplicateMessage,
        /// A sequenced message older than one delivered.
        OutOfSequence,
        /// A datagram for which there is no memory: it is not acknowledged, and the peer resends.
        NoMemory,
        /// A part that contradicts the other parts of its message.
        BadSplit,
        /// A message of RakNet itself that makes no sense in this state.
        BadControl,
        /// A message of a connection with an id that belongs to RakNet itself and means nothing inside a connection.
        ReservedId,
        /// An unreliable message of our own that waited too long.
        Expired,
        /// An acknowledgement of more than one datagram can be asked to work through.
        TooManyRecords,
        /// A ping beyond the limit of pongs.
        PongLimit,
        /// A message from a banned address.
        Banned,
        /// A connection that was half open and had to make room, or that its network had no room for.
        HalfOpenLimit,
        /// A client whose address or network has as many connections as it may have.
        AddressLimit,
        /// A part of a secure handshake or a sealed datagram that was forged, damaged or there before.
        Unauthentic,
        /// A secure handshake beyond what its network or all together may have computed.
        HandshakeLimit,
        /// A connection request with another password than the server's.
        WrongPassword,
        /// A connection request whose identity is missing or not right.
        InvalidIdentity,
        /// A connection request without a connect token that counts now, here and for this client.
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
    /// How many capsules; a split message has several.
    pub messages: u32,
    /// Bytes of them, without headers.
    pub bytes: u32,
}

/// Counters and measurements of one connection (docs/raknet.md#statistics). Without the feature `statistics` the counters and
/// the pings are 0.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Messages of the application accepted by `send`.
    pub messages_sent: u64,
    /// Messages of the application delivered.
    pub messages_received: u64,
    /// Datagrams of capsules sent, acknowledgements not counted.
    pub datagrams_sent: u64,
    /// Datagrams of capsules that arrived, duplicates not counted.
    pub datagrams_received: u64,
    /// Datagrams taken for lost whose messages were queued again. Some may only have been late:
    /// [`datagrams_missing`](Self::datagrams_missing) is without them.
    pub datagrams_lost: u64,
    /// Datagrams of those that arrived after all, as far as that is known: it is of those whose messages wait to be sent again,
    /// and of the last sixteen of the others.
    pub datagrams_late: u64,
    /// Datagrams that were acknowledged.
    pub datagrams_acknowledged: u64,
    /// Bytes of messages accepted by `send`.
    pub bytes_pushed: Amount,
    /// Bytes of messages sent for the first time.
    pub bytes_sent: Amount,
    /// Bytes of messages sent again.
    pub bytes_resent: Amount,
    /// Bytes of messages delivered.
    pub bytes_processed: Amount,
    /// Bytes of messages that arrived and were of no use: duplicates, outdated.
    pub bytes_ignored: Amount,
    /// Bytes of datagrams sent, without IP and UDP headers.
    pub actual_bytes_sent: Amount,
    /// Bytes of datagrams that arrived, without IP and UDP headers.
    pub actual_bytes_received: Amount,
    /// New messages that wait, by priority from immediate to low.
    pub waiting: [Waiting; 4],
    /// Lost messages that wait to be sent again.
    pub waiting_resends: Waiting,
    /// Smoothed round-trip time, zero before the first sample. It contains the other peer's wait before acknowledging.
    pub round_trip: Duration,
    /// The round-trip time of the last connected ping, zero before the first pong.
    pub last_ping: Duration,
    /// The mean of the last five, zero before the first pong.
    pub average_ping: Duration,
    /// The lowest ever, zero before the first pong.
    pub lowest_ping: Duration,
    /// The other peer's clock minus ours in milliseconds, once a ping has come back.
    pub clock_difference: Option<i64>,
    /// Bytes that may be in flight.
    pub congestion_window: u32,
    /// Bytes in flight.
    pub in_flight: u32,
    /// The MTU of the connection, with 28 bytes of IP and UDP headers.
    pub mtu: u16,
}

impl ConnectionStats {
    /// Datagrams taken for lost of which nothing says that they arrived: what the path has lost, and what it still delays. Unlike
    /// the counters it falls when a datagram arrives late.
    #[must_use]
    pub const fn datagrams_missing(&self) -> u64 {
        self.datagrams_lost.saturating_sub(self.datagrams_late)
    }

    /// The share of bytes that had to be sent again since the beginning, 0 to 1.
    #[must_use]
    pub fn loss(&self) -> f64 {
        share(self.bytes_resent.total, self.bytes_sent.total)
    }

    /// The share of bytes that had to be sent again in the last whole second, 0 to 1: what a game shows its player as the
    /// state of the path now, where [`loss`](Self::loss) moves too slowly.
    #[must_use]
    pub fn loss_last_second(&self) -> f64 {
        share(self.bytes_resent.last_second.into(), self.bytes_sent.last_second.into())
    }
}

/// `part` of both together, as a number from 0 to 1.
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

    /// How often something happened.
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

    /// How much waits in each of `N` queues.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct WaitingAmounts<const N: usize>([Waiting; N]);

    impl<const N: usize> Default for WaitingAmounts<N> {
        fn default() -> Self {
            Self(const { [Waiting { messages: 0, bytes: 0 }; N] })
        }
    }

    impl<const N: usize> WaitingAmounts<N> {
        /// A message came into a queue.
        pub(crate) fn count_in(&mut self, queue: usize, bytes: usize) {
            if let Some(amount) = self.0.get_mut(queue) {
                amount.messages += 1;
                amount.bytes = amount.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
            }
        }

        /// A message left a queue.
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

    /// Bytes of one kind: in all, in the second that is running, and in the last whole one.
    ///
    /// Counters are aligned to four bytes, so that an odd number of words is wasted by none of the two ends.
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

        /// All counters as they are read at `now`.
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
        // Where there is no instruction for the division below, it costs more than all the rest.
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
        fn seconds_turn_into_the_last_one() {
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

/// A peer that is built without statistics counts nothing.
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

    /// How much waits in each of `N` queues, which nobody counts.
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
