//! A front protects a game server that answers unvalidated addresses (`docs/udp-front.md`). This module contains no IO.
//!
//! A client validates its address by a cookie before the front keeps state for it or sends anything to the server. The
//! front then opens the connection to the server on the client's behalf, from a separate address per client, and
//! forwards datagrams in both directions.
//!
//! ```text
//!  client                   front                    server
//!    request 1  ─────────▶                                       nothing is kept
//!               ◀─────────  reply 1, cookie
//!    request 2  ─────────▶  a flow begins
//!    with the cookie        request 1  ─────────▶
//!                           ◀─────────  reply 1
//!                           request 2  ─────────▶
//!               ◀─────────  ◀─────────  reply 2
//!    datagrams  ◀────────▶             ◀────────▶
//! ```
//!
//! Each input appends its output to a list of `Transmits`. `Front::poll_closed` returns the flows that have ended.

mod cookie;
mod counters;
mod handshake;
mod ration;
mod table;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rakwire::wire::{WireError, Writer};

pub use cookie::{CookieKey, CookieKeySyntaxError, CookieKeys};
pub(crate) use counters::Direction;
pub use counters::{FrontCounters, FrontDropReason, FrontSnapshot};
pub(crate) use ration::{FREE_SHARE, Places, Rates, Rations, site};
use ration::{HalfOpen, SpentBudgets};
pub(crate) use table::{FlowId, To, Transmits};
use table::{FlowProtocol, FlowTable};

use crate::flow::proxy_header::{self, Announcement};
use crate::flow::rate::RateLimit;
use crate::flow::{ProxyHeader, Rate, Source};
use crate::protocol::{Budget, Handshake, PongCache, ProtocolKind};
use crate::time::Now;

/// The interval of [`Front::handle_timeout`].
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Time limit for a server to answer the handshake of a flow.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The rate of pongs. It is low, because a pong may be longer than its ping.
const PONGS: Rates = Rates { all: 1_000, network: 20 };

/// The rate of challenges. A challenge is never longer than the datagram that it answers; the rate bounds the traffic
/// to a forged source.
const CHALLENGES: Rates = Rates { all: 20_000, network: 200 };

/// A protocol for which the front can validate the addresses of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrontProtocol {
    RakNet,
    GameProtocol,
}

impl FrontProtocol {
    /// Returns the kind of target that a front with this protocol serves.
    pub(crate) const fn kind(self) -> ProtocolKind {
        match self {
            Self::RakNet => ProtocolKind::RakNet,
            Self::GameProtocol => ProtocolKind::GameProtocol,
        }
    }
}

/// The initial settings of a front.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) protocol: FrontProtocol,
    /// The front's GUID, in use until the server's GUID is known.
    pub(crate) guid: u64,
    pub(crate) keys: CookieKeys,
}

/// The conditions for clients without a flow.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    /// The server's answers to pings.
    pub(crate) pongs: Arc<PongCache>,
    /// The maximum length in bytes of a datagram that client and server may negotiate, without IP and UDP headers.
    pub(crate) payload_max: u16,
    /// The address of the server if it reads PROXY headers, which take space in some of the first datagrams.
    pub(crate) announced_to: Option<SocketAddr>,
}

/// The conditions for an admitted client, which stay fixed for its flow.
#[derive(Debug)]
pub(crate) struct Admitted<P> {
    /// The address of the game server.
    pub(crate) server: SocketAddr,
    /// The source address of the client's datagrams as seen by the server.
    pub(crate) source: Source,
    /// True if a PROXY protocol header announces the client's address to the server.
    pub(crate) proxy_protocol: bool,
    pub(crate) idle_timeout: Duration,
    /// The maximum length in bytes of a client's datagram.
    pub(crate) max_datagram: usize,
    /// The rate limit of the client; `None` is unlimited.
    pub(crate) rate: Option<Rate>,
    /// The resources that the client holds until its flow ends.
    pub(crate) permit: P,
}

/// The server and the client of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// The source address of the client's datagrams as seen by the server.
    pub(crate) source: Source,
}

/// The reason why a client gets no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// The client is refused, and the front sends a refusal.
    Refused,
    /// Another flow is being ended to free a slot. The client gets no reply, so that it repeats its request.
    Later,
}

/// Decides which clients get a flow.
pub(crate) trait Admit {
    /// The resources that a client holds until its flow ends.
    type Permit: Permit;

    /// Decides whether a client with a validated address gets a flow. If only the total number of clients prevents it,
    /// `make_room` may end a flow that waits for its server, and returns true if there was one.
    fn admit(
        &mut self,
        now: Now,
        client: SocketAddr,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Admitted<Self::Permit>, NotAdmitted>;

    /// Releases resources reserved for clients that have not repeated their request. Called as often as
    /// [`Front::handle_timeout`].
    fn handle_timeout(&mut self, _now: Instant) {}

    /// Returns the current conditions for clients without a flow, or `None` if there is no server for them.
    fn offer(&self) -> Option<Offer>;
}

/// The resources that a client holds until its flow ends.
pub(crate) trait Permit: std::fmt::Debug {
    /// Counts bytes of forwarded datagrams.
    fn note_passed(&mut self, _direction: Direction, _bytes: usize) {}

    /// Returns true if the total rate allows a datagram, and charges its bytes.
    fn admits(&mut self, _direction: Direction, _bytes: usize) -> bool {
        true
    }

    /// Returns true if the flow must end. [`Front::handle_timeout`] checks this.
    fn is_over(&self) -> bool {
        false
    }
}

/// The flow of a client.
#[derive(Debug)]
struct Flow<P> {
    protocol: FlowProtocol,
    /// True if the server has accepted the client.
    is_open: bool,
    server: SocketAddr,
    source: Source,
    /// Sends PROXY headers with the client's address to the server, if the server reads them.
    announcement: Option<Announcement>,
    idle_timeout: Duration,
    max_datagram: usize,
    rate: Option<RateLimit>,
    /// Bounds the messages that the front sends to the server for connection requests of this client. These messages
    /// may be longer than the requests.
    handshakes: Budget,
    permit: P,
}

/// The front; see the module.
#[derive(Debug)]
pub(crate) struct Front<A: Admit> {
    settings: Settings,
    admission: A,
    pong_rations: Rations,
    challenge_rations: Rations,
    flows: FlowTable<Flow<A::Permit>>,
    half_open: HalfOpen,
    spent: SpentBudgets,
    closed: Vec<FlowId>,
    counters: Arc<FrontCounters>,
}

impl<A: Admit> Front<A> {
    pub(crate) fn new(settings: Settings, admission: A, counters: Arc<FrontCounters>) -> Self {
        Self {
            flows: FlowTable::default(),
            settings,
            admission,
            pong_rations: Rations::new(PONGS),
            challenge_rations: Rations::new(CHALLENGES),
            half_open: HalfOpen::default(),
            spent: SpentBudgets::default(),
            closed: Vec::new(),
            counters,
        }
    }

    /// Replaces the cookie keys.
    pub(crate) fn set_keys(&mut self, keys: CookieKeys) {
        self.settings.keys = keys;
    }

    /// Returns true if a datagram at a shared port belongs to the front: its client has a flow, or it may be a client's
    /// first datagram. Any other datagram that looks like QUIC is left to QUIC.
    pub(crate) fn is_for_it(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        self.flows.find(from).is_some()
            || match self.settings.protocol {
                FrontProtocol::RakNet => table::may_begin_raknet(datagram),
                FrontProtocol::GameProtocol => table::may_begin_game_protocol(datagram),
            }
    }

    /// Handles contiguous datagrams of one client, each `stride` bytes long except the last one.
    pub(crate) fn handle_client<'b>(
        &mut self,
        now: Now,
        from: SocketAddr,
        bytes: &'b [u8],
        stride: usize,
        out: &mut Transmits<'b>,
    ) {
        if bytes.is_empty() {
            return self.counters.dropped(FrontDropReason::Empty);
        }
        let mut open = self.open_flow(from, now.at);
        let mut longest = self.longest_of(open);
        let mut run = Run::new(bytes, stride);
        for datagram in bytes.chunks(stride.max(1)) {
            if datagram.len() > longest {
                self.pass_to_server(open, run.take(datagram), out, stride);
                self.counters.dropped(FrontDropReason::TooBig);
                continue;
            }
            if proxy_header::is_forged(datagram) && self.announcement(open).is_some() {
                self.pass_to_server(open, run.take(datagram), out, stride);
                self.counters.dropped(FrontDropReason::ForgedHeader);
                continue;
            }
            let within_rate = open.is_none_or(|id| self.is_within_rate(id, now.at, datagram.len()));
            let of_connection = open.filter(|_| within_rate && self.belongs_to_connection(datagram));
            if let Some(id) = of_connection {
                if !self.takes_of_total(id, Direction::ToServer, datagram.len()) {
                    self.pass_to_server(open, run.take(datagram), out, stride);
                } else if self.needs_header(id, now.at, datagram.len()) {
                    self.pass_to_server(open, run.take(datagram), out, stride);
                    self.count_passed(id, Direction::ToServer, datagram.len(), datagram.len());
                    self.write_to_server(id, out, |writer| writer.bytes(datagram));
                } else {
                    run.add(datagram);
                }
                continue;
            }
            self.pass_to_server(open, run.take(datagram), out, stride);
            if !within_rate {
                self.counters.dropped(FrontDropReason::RateLimited);
                continue;
            }
            match self.settings.protocol {
                FrontProtocol::RakNet => self.handle_raknet(now, from, datagram, out),
                FrontProtocol::GameProtocol => self.handle_game_protocol(now, from, datagram, out),
            }
            open = self.open_flow(from, now.at);
            longest = self.longest_of(open);
        }
        self.pass_to_server(open, run.take(&[]), out, stride);
    }

    /// Handles datagrams from the server for one flow, in the same format as [`Front::handle_client`].
    pub(crate) fn handle_server<'b>(
        &mut self,
        id: FlowId,
        bytes: &'b [u8],
        stride: usize,
        out: &mut Transmits<'b>,
    ) {
        if bytes.is_empty() {
            return self.counters.dropped(FrontDropReason::Empty);
        }
        let mut run = Run::new(bytes, stride);
        for datagram in bytes.chunks(stride.max(1)) {
            // An earlier datagram may have ended the flow.
            let Some((_, flow)) = self.flows.get(id) else {
                self.counters.dropped(FrontDropReason::UnknownSource);
                continue;
            };
            flow.announcement.iter_mut().for_each(Announcement::handle_answer);
            let is_open = flow.is_open;
            if is_open && self.belongs_to_connection(datagram) {
                if self.takes_of_total(id, Direction::ToClient, datagram.len()) {
                    run.add(datagram);
                } else {
                    self.pass_to_client(id, run.take(datagram), out, stride);
                }
                continue;
            }
            self.pass_to_client(id, run.take(datagram), out, stride);
            match self.settings.protocol {
                FrontProtocol::RakNet => self.handle_raknet_server(id, datagram, out),
                FrontProtocol::GameProtocol => self.handle_game_protocol_server(id, datagram, out),
            }
        }
        self.pass_to_client(id, run.take(&[]), out, stride);
    }

    /// Ends flows with a silent client, an unresponsive server, or a permit that has ended.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let over = self.flows.select(|opened, heard, flow| {
            let waits = now.saturating_duration_since(opened) >= HANDSHAKE_TIMEOUT && !flow.is_open;
            waits || flow.permit.is_over() || now.saturating_duration_since(heard) >= flow.idle_timeout
        });
        for id in over {
            self.close(id);
        }
        let flows = &mut self.flows;
        self.half_open.retain(|id| flows.get(id).is_some_and(|(_, flow)| !flow.is_open));
        self.spent.forget_full(now);
        self.admission.handle_timeout(now);
    }

    /// Returns the next flow that has ended, so that its socket can be closed.
    pub(crate) fn poll_closed(&mut self) -> Option<FlowId> {
        self.closed.pop()
    }

    /// Ends a flow, for example because its socket failed.
    pub(crate) fn close(&mut self, id: FlowId) {
        if let Some((client, flow)) = self.flows.get(id) {
            self.spent.remember(client, flow.handshakes);
            self.flows.remove(id);
            self.closed.push(id);
            self.counters.flow_closed();
        }
    }

    /// Ends all flows.
    pub(crate) fn close_all(&mut self) {
        for id in self.flows.select(|_, _, _| true) {
            self.close(id);
        }
    }

    /// Handles a datagram to the server that the system refused to send. If it carried a PROXY header, the next
    /// datagram gets one.
    pub(crate) fn handle_unsent(&mut self, id: FlowId) {
        self.announcement(Some(id)).into_iter().for_each(Announcement::handle_unsent);
    }

    /// Returns the route of a flow to its game server.
    pub(crate) fn route(&mut self, id: FlowId) -> Option<Route> {
        self.flows.get(id).map(|(client, flow)| Route { client, server: flow.server, source: flow.source })
    }

    /// Restarts the announcement of a client that opens a new connection, because the server may have restarted and
    /// forgotten the client's address.
    fn announce_again(&mut self, id: FlowId) {
        self.announcement(Some(id)).into_iter().for_each(Announcement::begin_again);
    }

    /// Writes a datagram to the server, after a PROXY header if one is due.
    fn write_to_server(
        &mut self,
        id: FlowId,
        out: &mut Transmits<'_>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), WireError>,
    ) {
        let header = self.announcement(Some(id)).and_then(|announcement| {
            let header = announcement.next().copied();
            announcement.handle_sent();
            header
        });
        out.write_behind(header, To::Server(id), write);
    }

    /// Returns true if the client's handshake budget allows a message to the server, and charges it.
    fn is_within_budget(&mut self, now: Instant, id: FlowId, length: usize) -> bool {
        let Some((_, flow)) = self.flows.get(id) else { return false };
        let header = flow.announcement.as_ref().and_then(Announcement::next).map_or(0, ProxyHeader::length);
        let is_within = flow.handshakes.take(now, header + length);
        if !is_within {
            self.counters.dropped(FrontDropReason::HandshakeBudget);
        }
        is_within
    }

    /// Returns the handshake budget of a client: the budget of its flow, or the remaining budget of its previous flow.
    fn handshakes_of(&mut self, now: Instant, client: SocketAddr) -> Budget {
        let id = self.flows.find(client);
        let of_flow = id.and_then(|id| self.flows.get(id)).map(|(_, flow)| flow.handshakes);
        of_flow.or_else(|| self.spent.of(client)).unwrap_or_else(|| full_budget(now))
    }

    /// Returns the maximum length of a client's datagram; unlimited without a flow, because nothing is forwarded then.
    fn longest_of(&mut self, open: Option<FlowId>) -> usize {
        open.and_then(|id| self.flows.get(id)).map_or(usize::MAX, |(_, flow)| flow.max_datagram)
    }

    /// Returns the announcement of a flow, or `None` if its server reads no PROXY headers.
    fn announcement(&mut self, open: Option<FlowId>) -> Option<&mut Announcement> {
        open.and_then(|id| self.flows.get(id)).and_then(|(_, flow)| flow.announcement.as_mut())
    }

    /// Returns true if a connection datagram of this length must carry a PROXY header again, and leaves space for it.
    fn needs_header(&mut self, id: FlowId, now: Instant, length: usize) -> bool {
        let Some((_, flow)) = self.flows.get(id) else { return false };
        let Some(announcement) = &mut flow.announcement else { return false };
        announcement.handle_datagram(now);
        announcement.is_waiting() && length <= announcement.room(flow.max_datagram)
    }

    fn is_within_rate(&mut self, id: FlowId, now: Instant, length: usize) -> bool {
        let rate = self.flows.get(id).and_then(|(_, flow)| flow.rate.as_mut());
        rate.is_none_or(|rate| rate.admits(now, length))
    }

    /// Charges a datagram to the total rate. Returns false, and counts the datagram as dropped, if the rate does not
    /// allow it.
    fn takes_of_total(&mut self, id: FlowId, direction: Direction, length: usize) -> bool {
        let takes = self.flows.get(id).is_none_or(|(_, flow)| flow.permit.admits(direction, length));
        if !takes {
            self.counters.dropped(FrontDropReason::TotalRate);
        }
        takes
    }

    /// Returns true if a datagram belongs to a connection, and can be forwarded without inspection.
    fn belongs_to_connection(&self, datagram: &[u8]) -> bool {
        match self.settings.protocol {
            FrontProtocol::RakNet => table::is_connected(datagram),
            FrontProtocol::GameProtocol => table::is_packet(datagram),
        }
    }

    /// Returns the flow of a client, if the server has accepted it.
    fn open_flow(&mut self, client: SocketAddr, now: Instant) -> Option<FlowId> {
        let id = self.flows.find(client)?;
        self.flows.record_input(id, now);
        self.flows.get(id).filter(|(_, flow)| flow.is_open).map(|_| id)
    }

    fn pass_to_server<'b>(
        &mut self,
        id: Option<FlowId>,
        datagrams: &'b [u8],
        out: &mut Transmits<'b>,
        stride: usize,
    ) {
        if let Some(id) = id.filter(|_| !datagrams.is_empty()) {
            self.count_passed(id, Direction::ToServer, datagrams.len(), stride);
            out.pass(To::Server(id), datagrams, stride);
        }
    }

    /// Forwards a single datagram of an open flow to the server, if the total rate allows it.
    fn pass_one_to_server<'b>(&mut self, id: FlowId, datagram: &'b [u8], out: &mut Transmits<'b>) {
        if self.takes_of_total(id, Direction::ToServer, datagram.len()) {
            self.pass_to_server(Some(id), datagram, out, datagram.len());
        }
    }

    /// Forwards a single datagram of an open flow to the client, if the total rate allows it.
    fn pass_one_to_client<'b>(&mut self, id: FlowId, datagram: &'b [u8], out: &mut Transmits<'b>) {
        if self.takes_of_total(id, Direction::ToClient, datagram.len()) {
            self.pass_to_client(id, datagram, out, datagram.len());
        }
    }

    fn pass_to_client<'b>(
        &mut self,
        id: FlowId,
        datagrams: &'b [u8],
        out: &mut Transmits<'b>,
        stride: usize,
    ) {
        if let Some((client, _)) = self.flows.get(id).filter(|_| !datagrams.is_empty()) {
            self.count_passed(id, Direction::ToClient, datagrams.len(), stride);
            out.pass(To::Client(client), datagrams, stride);
        }
    }

    fn count_passed(&mut self, id: FlowId, direction: Direction, bytes: usize, stride: usize) {
        self.counters.passed(direction, bytes, stride);
        if let Some((_, flow)) = self.flows.get(id) {
            flow.permit.note_passed(direction, bytes);
        }
    }

    /// Creates a flow for a client with a validated address, if a slot is free.
    fn begin(
        &mut self,
        now: Now,
        client: SocketAddr,
        protocol: FlowProtocol,
        handshakes: Budget,
    ) -> Result<FlowId, NotAdmitted> {
        let flow = self.admit(now, client).map(|admitted| {
            let Admitted { server, source, proxy_protocol, idle_timeout, max_datagram, rate, permit } =
                admitted;
            let header = proxy_protocol.then_some(ProxyHeader { client, server });
            Flow {
                protocol,
                is_open: false,
                server,
                source,
                announcement: header.map(Announcement::new),
                idle_timeout,
                max_datagram,
                rate: rate.map(|rate| RateLimit::new(rate, now.at)),
                handshakes,
                permit,
            }
        });
        let id = flow.and_then(|flow| self.flows.insert(client, now.at, flow).ok_or(NotAdmitted::Refused));
        match id {
            Ok(id) => {
                self.half_open.push(id);
                self.counters.flow_opened();
            }
            Err(_) => self.counters.dropped(FrontDropReason::NotAdmitted),
        }
        id
    }

    /// Decides on admission before a half-open flow is evicted, so that a refused client evicts no flow.
    fn admit(&mut self, now: Now, client: SocketAddr) -> Result<Admitted<A::Permit>, NotAdmitted> {
        let Self { admission, flows, half_open, spent, closed, counters, .. } = self;
        let mut make_room = || {
            let oldest = half_open.pop(|id| flows.get(id).is_some_and(|(_, flow)| !flow.is_open));
            let Some(id) = oldest else { return false };
            if let Some((client, flow)) = flows.get(id) {
                spent.remember(client, flow.handshakes);
            }
            flows.remove(id);
            closed.push(id);
            counters.flow_closed();
            true
        };
        admission.admit(now, client, &mut make_room)
    }
}

/// Contiguous datagrams that are forwarded together.
struct Run<'b> {
    bytes: &'b [u8],
    stride: usize,
    /// The start of the run.
    start: usize,
    /// The end of the run, exclusive.
    end: usize,
}

impl<'b> Run<'b> {
    const fn new(bytes: &'b [u8], stride: usize) -> Self {
        Self { bytes, stride, start: 0, end: 0 }
    }

    const fn add(&mut self, datagram: &[u8]) {
        debug_assert!(datagram.len() <= self.stride, "a datagram is longer than its stride");
        self.end += datagram.len();
    }

    /// Returns the datagrams since the last call. The next run begins after `skipped`, which follows them.
    fn take(&mut self, skipped: &[u8]) -> &'b [u8] {
        let run = &self.bytes[self.start..self.end];
        self.start = self.end + skipped.len();
        self.end = self.start;
        run
    }
}

/// Returns a full handshake budget, the same as that of a client that connects through the relay.
fn full_budget(now: Instant) -> Budget {
    Budget::new(&Handshake::default(), now)
}

#[cfg(test)]
pub(crate) mod tests;
