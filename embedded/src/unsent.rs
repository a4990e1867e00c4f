//! Counters of datagrams that were not sent.

/// The reason why a datagram was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) enum UnsentReason {
    NoRoute,
    Unanswered,
    BackedOff,
    Rationed,
}

/// The numbers of datagrams that the peer composed and the network did not accept, by reason.
/// [`Handle::unsent`](crate::Handle::unsent) has an example.
///
/// The protocols treat such datagrams as lost in transit: reliable messages are resent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct UnsentDatagrams {
    /// The network stack had no address of the receiver's family, or no gateway.
    pub no_route: u32,
    /// The receiver, or the gateway to it, did not answer the request for its hardware address (ARP or NDP).
    pub unanswered: u32,
    /// The receiver, or the gateway to it, had not answered an earlier request, and the next request was not due.
    pub backed_off: u32,
    /// Answers to peers without a connection, such as pongs, that were dropped because earlier answers were still
    /// waiting.
    pub rate_limited: u32,
}

impl UnsentDatagrams {
    pub(crate) const fn new() -> Self {
        Self { no_route: 0, unanswered: 0, backed_off: 0, rate_limited: 0 }
    }

    pub(crate) const fn add(&mut self, reason: UnsentReason, datagrams: u32) {
        let counter = match reason {
            UnsentReason::NoRoute => &mut self.no_route,
            UnsentReason::Unanswered => &mut self.unanswered,
            UnsentReason::BackedOff => &mut self.backed_off,
            UnsentReason::Rationed => &mut self.rate_limited,
        };
        *counter = counter.saturating_add(datagrams);
    }
}
