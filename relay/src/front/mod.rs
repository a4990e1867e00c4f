//! A front: UDP in front of a game server that answers anybody, without IO (`docs/udp-front.md`).
//!
//! A client proves its address to the front, by a cookie, before anything is kept of it and before anything reaches the
//! server. Then the front opens the connection with the server in the client's place, from an address of its own for each
//! client, and passes datagrams in both directions.
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
//! Each input adds to a list of `Transmits` what is to be sent; `Front::poll_closed` names the flows that ended.

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

/// How often [`Front::handle_timeout`] is due.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// How long a server has to answer the handshake of a flow.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pongs may be longer than pings: few of them.
const PONGS: Rates = Rates { all: 1_000, network: 20 };

/// A challenge is never longer than what it answers; the rate bounds what a forged source makes the front send to it.
const CHALLENGES: Rates = Rates { all: 20_000, network: 200 };

/// A protocol whose clients can prove their address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrontProtocol {
    RakNet,
    GameProtocol,
}

impl FrontProtocol {
    /// The kind of the targets that speak it.
    pub(crate) const fn kind(self) -> ProtocolKind {
        match self {
            Self::RakNet => ProtocolKind::RakNet,
            Self::GameProtocol => ProtocolKind::GameProtocol,
        }
    }
}

/// What a front is told at its start.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) protocol: FrontProtocol,
    /// What the front calls itself until the server has said its GUID.
    pub(crate) guid: u64,
    pub(crate) keys: CookieKeys,
}

/// What holds for clients that have no flow yet.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    /// What the server answers to pings.
    pub(crate) pongs: Arc<PongCache>,
    /// The longest datagram that clients and server may agree on, in bytes without IP and UDP headers.
    pub(crate) payload_max: u16,
    /// The server, if it is told the addresses of clients by headers, which take some of the first datagrams.
    pub(crate) announced_to: Option<SocketAddr>,
}

/// What an admitted client gets for its flow, which keeps it.
#[derive(Debug)]
pub(crate) struct Admitted<P> {
    /// The game server.
    pub(crate) server: SocketAddr,
    /// The address that the server sees.
    pub(crate) source: Source,
    /// Whether the server is told the address of the client by a PROXY protocol header.
    pub(crate) proxy_protocol: bool,
    pub(crate) idle_timeout: Duration,
    /// The longest datagram that the client may send, in bytes.
    pub(crate) max_datagram: usize,
    /// How much the client may send; none is no limit.
    pub(crate) rate: Option<Rate>,
    /// What the client holds as long as its flow.
    pub(crate) permit: P,
}

/// Where the datagrams of a flow go to, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// The address that the server sees.
    pub(crate) source: Source,
}

/// Why a client gets no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// It is told so.
    Refused,
    /// Another one makes room for it. It is told nothing, so that it asks again.
    Later,
}

/// Who may have a flow.
pub(crate) trait Admit {
    /// What a client holds as long as its flow.
    type Permit: Permit;

    /// Whether a client whose address is proved gets a flow. If nothing but the number of all clients is against it,
    /// `make_room` may end a flow that waits for its server; it tells whether there was one.
    fn admit(
        &mut self,
        now: Now,
        client: SocketAddr,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Admitted<Self::Permit>, NotAdmitted>;

    /// Lets go what is kept for clients that have not asked again. It is called as often as [`Front::handle_timeout`].
    fn handle_timeout(&mut self, _now: Instant) {}

    /// What holds at this moment for clients without a flow. None if there is no server for them.
    fn offer(&self) -> Option<Offer>;
}

/// What a client holds as long as its flow.
pub(crate) trait Permit: std::fmt::Debug {
    /// Notes bytes of datagrams that were passed on.
    fn note_passed(&mut self, _direction: Direction, _bytes: usize) {}

    /// Whether a datagram may pass as far as all clients together are concerned; takes its bytes from what they may have.
    fn admits(&mut self, _direction: Direction, _bytes: usize) -> bool {
        true
    }

    /// Whether the flow is to end. It is asked as often as [`Front::handle_timeout`] is due.
    fn is_over(&self) -> bool {
        false
    }
}

/// What is kept of a client.
#[derive(Debug)]
struct Flow<P> {
    protocol: FlowProtocol,
    /// Whether the server has accepted the client.
    is_open: bool,
    server: SocketAddr,
    source: Source,
    /// If the server is told the address of the client.
    announcement: Option<Announcement>,
    idle_timeout: Duration,
    max_datagram: usize,
    rate: Option<RateLimit>,
    /// For what the front writes to the server when the client asks for a connection, which may be longer than the question.
    handshakes: Budget,
    permit: P,
}

/// See the module.
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

    /// Replaces the keys of cookies.
    pub(crate) fn set_keys(&mut self, keys: CookieKeys) {
        self.settings.keys = keys;
    }

    /// Whether a datagram at a port with QUIC and data channels is for the front: one of a client with a flow, or one that
    /// may be the first of a client. What else begins as QUIC does is QUIC.
    pub(crate) fn is_for_it(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        self.flows.find(from).is_some()
            || match self.settings.protocol {
                FrontProtocol::RakNet => table::may_begin_raknet(datagram),
                FrontProtocol::GameProtocol => table::may_begin_game_protocol(datagram),
            }
    }

    /// Handles datagrams of one client that stand behind each other, each `stride` bytes long except the last one.
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

    /// Handles datagrams of the server for one flow, as [`Front::handle_client`] does those of a client.
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
            // One before it may have ended the flow.
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

    /// Ends the flows whose clients are silent, whose servers do not answer, or which are to end.
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

    /// The next flow that ended: its socket is not needed any more.
    pub(crate) fn poll_closed(&mut self) -> Option<FlowId> {
        self.closed.pop()
    }

    /// Ends a flow, as when its socket failed.
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

    /// The system refused to send a datagram to the server. If it had the header of a flow, the next one has it.
    pub(crate) fn handle_unsent(&mut self, id: FlowId) {
        self.announcement(Some(id)).into_iter().for_each(Announcement::handle_unsent);
    }

    /// The way of a flow to its game server.
    pub(crate) fn route(&mut self, id: FlowId) -> Option<Route> {
        self.flows.get(id).map(|(client, flow)| Route { client, server: flow.server, source: flow.source })
    }

    /// The client begins anew, maybe since the server has started again and forgotten it.
    fn announce_again(&mut self, id: FlowId) {
        self.announcement(Some(id)).into_iter().for_each(Announcement::begin_again);
    }

    /// Writes a datagram to the server, which may have to be told the address of the client first.
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

    /// Whether the client of a flow may have the front send a message of a handshake to the server, which counts as sent.
    fn is_within_budget(&mut self, now: Instant, id: FlowId, length: usize) -> bool {
        let Some((_, flow)) = self.flows.get(id) else { return false };
        let header = flow.announcement.as_ref().and_then(Announcement::next).map_or(0, ProxyHeader::length);
        let is_within = flow.handshakes.take(now, header + length);
        if !is_within {
            self.counters.dropped(FrontDropReason::HandshakeBudget);
        }
        is_within
    }

    /// What a client may have the front send to the server for its handshakes: of its flow, or of the one before.
    fn handshakes_of(&mut self, now: Instant, client: SocketAddr) -> Budget {
        let id = self.flows.find(client);
        let of_flow = id.and_then(|id| self.flows.get(id)).map(|(_, flow)| flow.handshakes);
        of_flow.or_else(|| self.spent.of(client)).unwrap_or_else(|| full_budget(now))
    }

    /// The longest datagram that the client of a flow may send; what is sent without a flow goes nowhere.
    fn longest_of(&mut self, open: Option<FlowId>) -> usize {
        open.and_then(|id| self.flows.get(id)).map_or(usize::MAX, |(_, flow)| flow.max_datagram)
    }

    /// How the server of a flow is told the address of the client, if it believes PROXY headers.
    fn announcement(&mut self, open: Option<FlowId>) -> Option<&mut Announcement> {
        open.and_then(|id| self.flows.get(id)).and_then(|(_, flow)| flow.announcement.as_mut())
    }

    /// Whether the server has to be told the address of the client again with a datagram of a connection of so many bytes, which
    /// leaves room for it.
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

    /// Takes the bytes of a datagram that is about to pass from what all clients together may have. Without room it is dropped.
    fn takes_of_total(&mut self, id: FlowId, direction: Direction, length: usize) -> bool {
        let takes = self.flows.get(id).is_none_or(|(_, flow)| flow.permit.admits(direction, length));
        if !takes {
            self.counters.dropped(FrontDropReason::TotalRate);
        }
        takes
    }

    /// Whether a datagram is one of a connection, which needs no look inside.
    fn belongs_to_connection(&self, datagram: &[u8]) -> bool {
        match self.settings.protocol {
            FrontProtocol::RakNet => table::is_connected(datagram),
            FrontProtocol::GameProtocol => table::is_packet(datagram),
        }
    }

    /// The flow of a client, if the server has accepted it.
    fn open_flow(&mut self, client: SocketAddr, now: Instant) -> Option<FlowId> {
        let id = self.flows.find(client)?;
        self.flows.hear(id, now);
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

    /// Passes a datagram of an open flow by itself, if what all clients together may have leaves room for it.
    fn pass_one_to_server<'b>(&mut self, id: FlowId, datagram: &'b [u8], out: &mut Transmits<'b>) {
        if self.takes_of_total(id, Direction::ToServer, datagram.len()) {
            self.pass_to_server(Some(id), datagram, out, datagram.len());
        }
    }

    /// The same for the client.
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

    /// Gives a client whose address is proved a flow, if there is a place for it.
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

    /// Asks admission first, so that a client that gets no flow costs nobody else one.
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

/// Datagrams behind each other that pass together.
struct Run<'b> {
    bytes: &'b [u8],
    stride: usize,
    /// Where the run begins, where it ends.
    start: usize,
    end: usize,
}

impl<'b> Run<'b> {
    const fn new(bytes: &'b [u8], stride: usize) -> Self {
        Self { bytes, stride, start: 0, end: 0 }
    }

    const fn add(&mut self, datagram: &[u8]) {
        debug_assert!(datagram.len() <= self.stride, "longer than its stride");
        self.end += datagram.len();
    }

    /// What was added since the last call; the next run begins behind `skipped`, which comes next.
    fn take(&mut self, skipped: &[u8]) -> &'b [u8] {
        let run = &self.bytes[self.start..self.end];
        self.start = self.end + skipped.len();
        self.end = self.start;
        run
    }
}

/// What a client may have the front send to the server for its handshakes: as much as a browser may send itself.
fn full_budget(now: Instant) -> Budget {
    Budget::new(&Handshake::default(), now)
}

#[cfg(test)]
pub(crate) mod tests;
