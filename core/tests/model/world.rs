//! A model of two RakNet peers and the path between them, which checks their guarantees under any sequence of
//! operations.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::raknet::{
    Capacity, Config, ConnectionId, ConnectionState, CookiePolicy, Delivery, DisconnectReason, Event, Peer,
    Receipt, SendError,
};
use rakwire::{Instant, U24};

use super::ledger::Ledger;
use super::operation::{End, Forgery, Operation, Send, Sequence, Setup};
use super::route::Route;
use super::{Broken, Kept, forge};

/// The idle timeout of a peer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time after a fault during which it may still close the connection.
const AFTERMATH: Duration = Duration::from_secs(20);
/// The time for which a peer that disconnects waits for the delivery of its messages.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of parts of a message between two progress events.
const PROGRESS_INTERVAL: u32 = 2;
/// One more than the number of datagrams of a handshake, so that a forgery may also arrive after the handshake.
const HANDSHAKE: u8 = 8;
/// The maximum time for any delivery once the path is perfect again.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum number of events at one point in time.
const STANDSTILL: u32 = 64;
/// The minimum number of blocks of a peer that sends long messages without copies.
const HANDING_OVER: usize = 128;
/// The minimum length of messages that are sent without copies, in bytes.
const ZERO_COPY_THRESHOLD: usize = 300;
const UNKNOWN_SOURCE: ([u8; 4], u16) = ([203, 0, 113, 9], 4_000);
/// The length of a pong without an advertisement, including the two bytes of its length field.
const LONGEST_PONG: usize = 35;

/// The authenticity of the datagrams of the current connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Whole,
    /// Datagrams were forged: only memory bounds, work bounds and the absence of panics are guaranteed.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attention {
    Attending,
    Neglecting,
}

/// The state of the connection, as one application sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    None,
    Open(ConnectionId),
    /// The application has called `disconnect`.
    Leaving(ConnectionId),
    Over,
}

impl Life {
    const fn id(self) -> Option<ConnectionId> {
        match self {
            Self::Open(id) | Self::Leaving(id) => Some(id),
            Self::None | Self::Over => None,
        }
    }
}

struct Station {
    peer: Peer<'static>,
    address: SocketAddr,
    life: Life,
    /// `Neglecting` while the application polls no events at all.
    attention: Attention,
    /// `Neglecting` while the connection is paused, so that the application polls none of its events.
    paused: Attention,
    /// The time since which the application has not polled all events. Events that it polls later may be as old.
    absent_since: Option<Instant>,
    /// The time at which this peer closes the connection even if messages were not delivered.
    gives_up_at: Option<Instant>,
    /// The messages that this peer has sent.
    ledger: Ledger,
    /// The path from this peer to the other peer.
    route: Route,
}

pub struct World {
    now: Instant,
    ends: [Station; 2],
    trust: Trust,
    first_number: u32,
    longest: usize,
    /// The number of blocks that a connection holds per direction once it has used a channel above 3.
    channel_blocks: usize,
    /// The time of the last clock jump.
    jumped_at: Option<Instant>,
    /// The number of bytes that the peers may still send to the unknown address in response.
    answerable: usize,
    /// The number of messages delivered.
    pub delivered: usize,
}

/// Executes a sequence and returns the number of delivered messages; an error describes the violated guarantee.
pub fn run(sequence: &Sequence) -> Result<usize, Broken> {
    let mut world = World::new(sequence.setup);
    world.connect()?;
    for (number, operation) in sequence.operations.iter().enumerate() {
        world.perform(operation).map_err(|broken| format!("operation {number}, {operation:?}: {broken}"))?;
    }
    world.finish().map_err(|broken| format!("at the end: {broken}"))?;
    Ok(world.delivered)
}

fn station(setup: Setup, end: End) -> Station {
    let mut config = Config::new([end.index() as u8 + 1; 32]);
    config.max_incoming = if end == End::Server { 1 } else { 0 };
    // If cookies are required, a datagram from an unknown address leaves no state.
    config.cookies = CookiePolicy::Required;
    config.mtu = setup.mtu;
    config.timeout = TIMEOUT;
    config.close_timeout = CLOSE_TIMEOUT;
    config.progress_interval = PROGRESS_INTERVAL;
    let capacity = Capacity { connections: 2, blocks: setup.blocks, block_size: setup.block_size };
    let mut peer = Peer::with_capacity(capacity, config);
    peer.start_numbers_at(U24::new(setup.first_number));
    if setup.blocks >= HANDING_OVER {
        peer.set_zero_copy_threshold(ZERO_COPY_THRESHOLD);
    }
    Station {
        peer,
        address: SocketAddr::from(([192, 0, 2, end.index() as u8 + 1], 7)),
        life: Life::None,
        attention: Attention::Attending,
        paused: Attention::Attending,
        absent_since: None,
        gives_up_at: None,
        ledger: Ledger::default(),
        route: Route::default(),
    }
}

impl World {
    fn new(setup: Setup) -> Self {
        Self {
            now: Instant::from_micros(100_000_000),
            ends: End::BOTH.map(|end| station(setup, end)),
            trust: Trust::Whole,
            first_number: setup.first_number,
            longest: setup.blocks * setup.block_size / 8,
            channel_blocks: 28_usize.div_ceil(setup.block_size / 12),
            jumped_at: None,
            answerable: 0,
            delivered: 0,
        }
    }

    fn end(&mut self, end: End) -> &mut Station {
        &mut self.ends[end.index()]
    }

    /// Opens a connection over a perfect path, unless a peer still has one.
    fn connect(&mut self) -> Kept {
        if self.ends.iter().any(|station| station.peer.connections().next().is_some()) {
            return Ok(());
        }
        self.dial()?;
        self.run_until(|world| world.ends.iter().all(|station| matches!(station.life, Life::Open(_))))?;
        let open = self.ends.iter().all(|station| matches!(station.life, Life::Open(_)));
        if open { Ok(()) } else { Err("no connection over a path without faults".to_owned()) }
    }

    /// Resets the state of the last connection and starts a new attempt over a perfect path.
    fn dial(&mut self) -> Kept {
        // Responses to earlier forgeries are sent first.
        End::BOTH.into_iter().try_for_each(|end| self.transmit(end))?;
        self.trust = Trust::Whole;
        for station in &mut self.ends {
            station.route.forget();
            station.ledger = Ledger::default();
            station.life = Life::None;
            station.attention = Attention::Attending;
            station.paused = Attention::Attending;
            station.absent_since = None;
            station.gives_up_at = None;
        }
        let (now, to) = (self.now, self.ends[End::Server.index()].address);
        let dialled = self.end(End::Client).peer.connect(now, to);
        dialled.map(drop).map_err(|error| error.to_string())
    }

    /// Closes the connection as at the end of a run, and starts another. Delivers forged datagrams to `to` after
    /// `after` datagrams of the handshake.
    fn interfere(&mut self, to: End, after: u8, forgeries: &[Forgery]) -> Kept {
        self.finish()?;
        self.dial()?;
        self.trust = Trust::Gone;
        let mut left = after % HANDSHAKE;
        while left > 0 && self.exchange_one()? {
            left -= 1;
        }
        forgeries.iter().try_for_each(|forgery| {
            self.forge(to, forgery);
            self.tell(to)
        })?;
        self.run_until(Self::is_settled)
    }

    /// Returns true if the connection is open or absent at each peer.
    fn is_settled(&mut self) -> bool {
        self.ends.iter().all(|station| {
            matches!(station.life, Life::Open(_)) || station.peer.connections().next().is_none()
        })
    }

    /// Delivers one datagram to the other peer, if any is pending.
    fn exchange_one(&mut self) -> Result<bool, Broken> {
        for end in End::BOTH {
            let (now, from) = (self.now, self.end(end).address);
            let mut buffer = [0; rakwire::wire::MAX_DATAGRAM];
            let Some(transmit) = self.end(end).peer.poll_transmit(now, &mut buffer) else { continue };
            let datagram = transmit.payload.to_vec();
            self.end(end.other()).peer.handle_datagram(now, from, &datagram);
            self.tell(end.other())?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Delivers a forged datagram with the source address of the other peer.
    fn forge(&mut self, to: End, forgery: &Forgery) {
        let (now, from) = (self.now, self.end(to.other()).address);
        let datagram = forge::compose(forgery, self.first_number);
        self.end(to).peer.handle_datagram(now, from, &datagram);
    }

    fn perform(&mut self, operation: &Operation) -> Kept {
        match operation {
            Operation::Send(send) => self.send(*send),
            Operation::Advance { millis } => self.advance(Duration::from_millis((*millis).into())),
            Operation::Fault { to, fault, mask } => {
                self.end(to.other()).route.order(*fault, *mask);
                Ok(())
            }
            Operation::Replay { to, age } => {
                let now = self.now;
                self.end(to.other()).route.replay(now, usize::from(*age));
                Ok(())
            }
            Operation::StepBack { millis } => {
                let micros = self.now.as_micros().saturating_sub(u64::from(*millis) * 1_000);
                self.now = Instant::from_micros(micros);
                Ok(())
            }
            Operation::Jump { millis } => {
                self.now = self.now + Duration::from_millis((*millis).into());
                self.jumped_at = Some(self.now);
                Ok(())
            }
            Operation::Forged { to, forgery } => {
                self.intrude(*to, &forge::compose(forgery, self.first_number))
            }
            Operation::Forge { to, forgery } => {
                self.trust = Trust::Gone;
                self.forge(*to, forgery);
                Ok(())
            }
            Operation::Connect => self.connect(),
            Operation::Interfere { to, after, forgeries } => self.interfere(*to, *after, forgeries),
            Operation::Disconnect(end) => self.disconnect(*end),
            Operation::Pause(end) => self.pause(*end),
            Operation::Resume(end) => self.resume(*end),
            Operation::Neglect(end) => {
                let now = self.now;
                let station = self.end(*end);
                station.attention = Attention::Neglecting;
                station.absent_since.get_or_insert(now);
                Ok(())
            }
            Operation::Attend(end) => {
                self.end(*end).attention = Attention::Attending;
                Ok(())
            }
        }
    }

    fn send(&mut self, send: Send) -> Kept {
        let (now, longest) = (self.now, self.longest);
        let station = self.end(send.from);
        let Life::Open(id) = station.life else { return Ok(()) };
        for _ in 0..send.copies {
            if !station.ledger.has_room() {
                return Ok(());
            }
            let message = station.ledger.compose(usize::from(send.length).min(longest));
            match send_somehow(&mut station.peer, now, id, &message, send.delivery) {
                Ok(_) => station.ledger.accept(send.delivery, &message),
                Err(SendError::QuotaExceeded | SendError::PoolExhausted | SendError::NotConnected) => {}
                Err(error) => return Err(format!("{} bytes were refused: {error}", message.len())),
            }
        }
        Ok(())
    }

    fn disconnect(&mut self, end: End) -> Kept {
        let now = self.now;
        let station = self.end(end);
        if let Life::Open(id) = station.life {
            station.peer.disconnect(now, id);
            station.life = Life::Leaving(id);
            station.gives_up_at = Some(now + CLOSE_TIMEOUT);
        }
        Ok(())
    }

    fn pause(&mut self, end: End) -> Kept {
        let now = self.now;
        let station = self.end(end);
        let Some(id) = station.life.id() else { return Ok(()) };
        station.paused = Attention::Neglecting;
        station.absent_since.get_or_insert(now);
        if station.peer.pause(id) {
            Ok(())
        } else {
            Err("`pause` does not know an open connection".to_owned())
        }
    }

    fn resume(&mut self, end: End) -> Kept {
        let station = self.end(end);
        let Some(id) = station.life.id() else { return Ok(()) };
        station.paused = Attention::Attending;
        if station.peer.resume(id) {
            Ok(())
        } else {
            Err("`resume` does not know an open connection".to_owned())
        }
    }

    /// Checks that a datagram from an unknown address leaves no state. [`transmit`](Self::transmit) checks that the
    /// response is not longer.
    fn intrude(&mut self, to: End, datagram: &[u8]) -> Kept {
        let now = self.now;
        self.answerable += datagram.len().max(LONGEST_PONG);
        let peer = &mut self.end(to).peer;
        let state = |peer: &Peer<'_>| (peer.connections().count(), peer.blocks_available());
        let before = state(peer);
        peer.handle_datagram(now, UNKNOWN_SOURCE.into(), datagram);
        let after = state(peer);
        if before == after {
            Ok(())
        } else {
            Err(format!("an unknown address changed connections and blocks from {before:?} to {after:?}"))
        }
    }

    fn advance(&mut self, time: Duration) -> Kept {
        let end = self.now + time;
        self.run_while(end, |_| false)?;
        self.now = end;
        Ok(())
    }

    /// Runs until `done` returns true, at most as long as any delivery may take.
    fn run_until(&mut self, done: impl FnMut(&mut Self) -> bool) -> Kept {
        self.run_while(self.now + DELIVERY_TIMEOUT, done)
    }

    fn run_while(&mut self, end: Instant, mut done: impl FnMut(&mut Self) -> bool) -> Kept {
        let mut still = 0;
        loop {
            End::BOTH.into_iter().try_for_each(|end| self.transmit(end))?;
            End::BOTH.into_iter().try_for_each(|end| self.tell(end))?;
            // Polling events may free memory, after which peers may send again.
            if done(self) {
                return Ok(());
            }
            let next = self
                .ends
                .iter()
                .flat_map(|station| [station.peer.poll_timeout(), station.route.next_arrival()]);
            let Some(next) = next.flatten().min().map(|next| next.max(self.now)).filter(|next| *next <= end)
            else {
                return Ok(());
            };
            still = if next == self.now { still + 1 } else { 0 };
            if still > STANDSTILL {
                return Err("events occur endlessly without an advance of the clock".to_owned());
            }
            self.now = next;
            End::BOTH.into_iter().for_each(|end| self.happen(end));
        }
    }

    /// Delivers the datagrams that have arrived at this peer and handles its timeout.
    fn happen(&mut self, end: End) {
        let now = self.now;
        let from = self.end(end.other()).address;
        while let Some(datagram) = self.end(end.other()).route.receive(now) {
            self.end(end).peer.handle_datagram(now, from, &datagram);
        }
        let peer = &mut self.end(end).peer;
        if peer.poll_timeout().is_some_and(|at| at <= now) {
            peer.handle_timeout(now);
        }
    }

    fn transmit(&mut self, end: End) -> Kept {
        let (now, to) = (self.now, self.end(end.other()).address);
        let mut answerable = self.answerable;
        let Station { peer, route, .. } = self.end(end);
        // Every datagram carries messages or records, and the blocks limit the number of both.
        let most = peer.blocks() + 64;
        let mut buffer = [0; rakwire::wire::MAX_DATAGRAM];
        let mut count = 0;
        while let Some(transmit) = peer.poll_transmit(now, &mut buffer) {
            count += 1;
            if count > most {
                return Err(format!("{end:?} never stops sending"));
            }
            if transmit.to == to {
                route.send(now, transmit.payload);
            } else {
                answerable = answerable
                    .checked_sub(transmit.payload.len())
                    .ok_or_else(|| format!("{end:?} sends more to an unknown address than it received"))?;
            }
        }
        self.answerable = answerable;
        Ok(())
    }

    fn tell(&mut self, end: End) -> Kept {
        if self.end(end).attention == Attention::Neglecting {
            return Ok(());
        }
        let [client, server] = &mut self.ends;
        let (own, other) = if end == End::Client { (client, server) } else { (server, client) };
        while let Some(event) = own.peer.poll_event() {
            match event {
                Event::Connected { id, remote, .. } if remote == other.address => own.life = Life::Open(id),
                Event::Message { id, delivery, message } if Some(id) == own.life.id() => {
                    self.delivered += 1;
                    let lent = message.to_vec();
                    if own.peer.take_event_data() != lent {
                        return Err("a taken message differs from the borrowed one".to_owned());
                    }
                    arrive(self.trust, &mut other.ledger, delivery, &lent)?;
                }
                Event::Disconnected { id, reason, .. } if Some(id) == own.life.id() => {
                    if self.trust == Trust::Whole {
                        let trouble = trouble(self.now, own, other, self.jumped_at);
                        may_end(self.now, reason, own.life, other, trouble)
                            .map_err(|broken| format!("{end:?}: {broken}"))?;
                    }
                    own.life = Life::Over;
                    if matches!(reason, DisconnectReason::ReceiveMemory | DisconnectReason::MessageTooLarge) {
                        own.gives_up_at = Some(self.now);
                    }
                }
                // Forged datagrams may make the attempt fail.
                Event::ConnectFailed { .. }
                    if end == End::Client && self.trust == Trust::Gone && own.life == Life::None =>
                {
                    own.life = Life::Over;
                }
                // A forged connection request may contain a wrong password.
                Event::Refused { .. } if self.trust == Trust::Gone => {}
                Event::Receipt { id, .. } | Event::Progress { id, .. } if Some(id) == own.life.id() => {}
                event @ (Event::Connected { .. }
                | Event::ConnectFailed { .. }
                | Event::Disconnected { .. }
                | Event::Message { .. }
                | Event::Pong { .. }
                | _) => return Err(format!("{end:?} received {event:?}")),
            }
        }
        if own.paused == Attention::Attending {
            own.absent_since = None;
        }
        Ok(())
    }

    /// Repairs the path and waits until everything is delivered. Then closes the connection and checks that all blocks
    /// are free.
    fn finish(&mut self) -> Kept {
        for end in End::BOTH {
            self.end(end).route.mend();
            self.end(end).attention = Attention::Attending;
            self.resume(end)?;
        }
        self.run_until(|world| world.is_delivered())?;
        if !self.is_delivered() {
            return Err(self.complaint());
        }
        End::BOTH.into_iter().try_for_each(|end| self.disconnect(end))?;
        self.run_until(Self::is_over)?;
        if self.is_over() { Ok(()) } else { Err(format!("a connection never closes: {}", self.memory())) }
    }

    /// Returns true if everything was delivered and acknowledged, or the connection has closed.
    fn is_delivered(&mut self) -> bool {
        let open = self.ends.iter().all(|station| matches!(station.life, Life::Open(_)));
        match self.trust {
            Trust::Whole if open => self.ends.iter().all(|station| {
                let held = station.peer.blocks() - station.peer.blocks_available();
                let is_for_channels = (0..=2).any(|directions| held == directions * self.channel_blocks);
                station.ledger.owed().is_none() && is_for_channels
            }),
            Trust::Whole => self.is_over(),
            Trust::Gone => true,
        }
    }

    fn is_over(&mut self) -> bool {
        self.ends.iter().all(|station| {
            station.peer.connections().next().is_none()
                && station.peer.blocks_available() == station.peer.blocks()
        })
    }

    fn complaint(&self) -> Broken {
        let owed = self.ends.iter().find_map(|station| station.ledger.owed());
        owed.unwrap_or_else(|| format!("memory is not freed: {}", self.memory()))
    }

    fn memory(&self) -> String {
        let memory = self.ends.iter().map(|station| {
            let connection = station.peer.connections().next();
            let state: Option<ConnectionState> =
                connection.and_then(|id| station.peer.connection(id)).map(|info| info.state);
            format!("{} of {} blocks, {state:?}", station.peer.blocks_available(), station.peer.blocks())
        });
        memory.collect::<Vec<_>>().join("; ")
    }
}

/// Sends a message with `send_vec` if its length is odd, and with `send` otherwise.
fn send_somehow(
    peer: &mut Peer<'_>,
    now: Instant,
    id: ConnectionId,
    message: &[u8],
    delivery: Delivery,
) -> Result<Option<Receipt>, SendError> {
    if message.len().is_multiple_of(2) {
        return peer.send(now, id, message, delivery);
    }
    let mut owned = message.to_vec();
    let sent = peer.send_vec(now, id, &mut owned, delivery);
    assert_eq!(owned.is_empty(), sent.is_ok(), "only a refused message may stay with the application");
    sent
}

fn arrive(trust: Trust, ledger: &mut Ledger, delivery: Delivery, bytes: &[u8]) -> Kept {
    match trust {
        Trust::Whole => ledger.arrive(delivery, bytes),
        Trust::Gone => Ok(()),
    }
}

/// A circumstance that excuses a disconnection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    Losses,
    /// The clock jumped ahead, as after a sleep of the machine.
    Jump,
}

fn trouble(now: Instant, own: &Station, other: &Station, jumped_at: Option<Instant>) -> Trouble {
    let notified_at = own.absent_since.unwrap_or(now);
    let shows = |at: Option<Instant>| at.is_some_and(|at| notified_at <= at + AFTERMATH);
    if shows(jumped_at) {
        Trouble::Jump
    } else if shows(own.route.lost_at) || shows(other.route.lost_at) {
        Trouble::Losses
    } else {
        Trouble::None
    }
}

/// Checks whether a connection may close for this reason.
fn may_end(now: Instant, reason: DisconnectReason, life: Life, other: &Station, trouble: Trouble) -> Kept {
    let other_left = !matches!(other.life, Life::Open(_));
    let allowed = match reason {
        DisconnectReason::Local => matches!(life, Life::Leaving(_)),
        DisconnectReason::Remote => {
            let owed = other.ledger.owed().filter(|_| !gave_up(now, other));
            if let Some(owed) = owed {
                return Err(format!("the remote peer disconnected, but {owed}"));
            }
            other_left || gave_up(now, other)
        }
        DisconnectReason::Lost => trouble != Trouble::None || other_left,
        DisconnectReason::ReceiveMemory => trouble == Trouble::Jump || other_left,
        DisconnectReason::MessageTooLarge | _ => false,
    };
    if allowed { Ok(()) } else { Err(format!("the connection closed: {reason}; {}", queues(other))) }
}

/// Returns the state of a sender's queues, to explain a failure.
fn queues(sender: &Station) -> String {
    let stats = sender.life.id().and_then(|id| sender.peer.connection_stats(id));
    stats.map_or_else(String::new, |stats| {
        format!(
            "the remote peer has queued {:?} and resends {:?}, and {} bytes of a window of {} are in flight",
            stats.waiting, stats.waiting_resends, stats.in_flight, stats.congestion_window
        )
    })
}

/// Returns true if this peer may have closed the connection although messages were not delivered.
///
/// This includes a peer with an application that has not polled the disconnection yet. Its reason is checked later.
fn gave_up(now: Instant, station: &Station) -> bool {
    let state = station.life.id().and_then(|id| station.peer.connection(id)).map(|info| info.state);
    let unseen = matches!(station.life, Life::Open(_)) && state == Some(ConnectionState::Disconnected);
    unseen || station.gives_up_at.is_some_and(|at| at <= now)
}
