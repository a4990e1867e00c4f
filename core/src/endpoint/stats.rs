//! Counters of a peer. They only grow, and at 64 bits never wrap in practice.

/// Whether anything is counted (feature `statistics`); if not, every counter stays 0.
const STATISTICS: bool = cfg!(feature = "statistics");

/// The reasons of a protocol for dropping what arrived.
pub trait DropReasons: Copy + 'static {
    /// Every reason, in the order of [`index`](Self::index).
    const REASONS: &'static [Self];
    /// One counter a reason.
    type Counts: Copy + core::fmt::Debug + Default + AsRef<[u64]> + AsMut<[u64]> + Send + Sync;

    /// Where the counter of this reason stands.
    fn index(self) -> usize;
}

/// Counters of a whole peer. Without the feature `statistics` all of them are 0.
///
/// ```
/// use rakwire::raknet::{Config, DropReason, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// peer.handle_datagram(rakwire::Instant::ZERO, "192.0.2.1:9".parse()?, &[0]);
/// assert_eq!(peer.stats().datagrams_received, 1);
/// assert_eq!(peer.stats().dropped(DropReason::TooShort), 1);
/// assert!(format!("{:?}", peer.stats()).ends_with("drops: {TooShort: 1} }"));
/// # Ok::<(), core::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PeerStats<R: DropReasons> {
    /// Datagrams that arrived.
    pub datagrams_received: u64,
    /// Bytes of them, without IP and UDP headers.
    pub bytes_received: u64,
    /// Datagrams of messages that were dropped for connections that [refuse](super::Peer::refuse_data) them.
    pub datagrams_refused: u64,
    /// Datagrams given to be sent.
    pub datagrams_sent: u64,
    /// Bytes of them, without IP and UDP headers.
    pub bytes_sent: u64,
    drops: R::Counts,
}

/// Names the reasons for which something was dropped, and leaves out those for which nothing was.
impl<R: DropReasons + core::fmt::Debug> core::fmt::Debug for PeerStats<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        struct Drops<'s, R: DropReasons>(&'s PeerStats<R>);

        impl<R: DropReasons + core::fmt::Debug> core::fmt::Debug for Drops<'_, R> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_map().entries(self.0.drops().filter(|(_, count)| *count > 0)).finish()
            }
        }

        f.debug_struct("PeerStats")
            .field("datagrams_received", &self.datagrams_received)
            .field("bytes_received", &self.bytes_received)
            .field("datagrams_refused", &self.datagrams_refused)
            .field("datagrams_sent", &self.datagrams_sent)
            .field("bytes_sent", &self.bytes_sent)
            .field("drops", &Drops(self))
            .finish()
    }
}

impl<R: DropReasons> Default for PeerStats<R> {
    fn default() -> Self {
        Self {
            datagrams_received: 0,
            bytes_received: 0,
            datagrams_refused: 0,
            datagrams_sent: 0,
            bytes_sent: 0,
            drops: R::Counts::default(),
        }
    }
}

impl<R: DropReasons> PeerStats<R> {
    /// How often something was dropped for `reason`.
    #[must_use]
    pub fn dropped(&self, reason: R) -> u64 {
        self.drops.as_ref().get(reason.index()).copied().unwrap_or(0)
    }

    /// Every reason with its count.
    pub fn drops(&self) -> impl Iterator<Item = (R, u64)> {
        R::REASONS.iter().copied().zip(self.drops.as_ref().iter().copied())
    }

    /// Counts something that is dropped.
    #[cfg(feature = "statistics")]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn drop(&mut self, reason: R) {
        let Some(count) = self.drops.as_mut().get_mut(reason.index()) else {
            debug_assert!(false, "a reason without a counter");
            return;
        };
        *count += 1;
    }

    /// Counts nothing: the feature `statistics` is left out.
    #[cfg(not(feature = "statistics"))]
    #[inline(always)]
    pub(crate) const fn drop(&mut self, _: R) {}

    /// Counts a datagram that arrived.
    #[inline]
    pub(crate) const fn on_received(&mut self, bytes: usize) {
        if STATISTICS {
            self.datagrams_received += 1;
            self.bytes_received += bytes as u64;
        }
    }

    /// Counts a datagram that is sent.
    #[inline]
    pub(crate) const fn on_sent(&mut self, bytes: usize) {
        if STATISTICS {
            self.datagrams_sent += 1;
            self.bytes_sent += bytes as u64;
        }
    }

    /// Counts a datagram that its connection refuses.
    #[inline]
    pub(crate) const fn on_refused(&mut self) {
        if STATISTICS {
            self.datagrams_refused += 1;
        }
    }
}
