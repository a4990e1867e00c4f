//! How a connection opens and closes, on both sides (supplement 2.4, 2.5, 3).

use core::net::SocketAddr;

use super::{Connection, Context, Ending, LossRecovery, Sizes, State};
use crate::cursor::{Reader, Source, Writer};
use crate::raknet::config::{Config, DialledAddress};
use crate::raknet::delivery::{Delivery, Priority};
use crate::raknet::event::{ConnectFailure, DisconnectReason};
use crate::raknet::features::SERVER;
use crate::raknet::peer::ConnectOptions;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::address::{AddressList, UNASSIGNED};
use crate::raknet::wire::control::{Control, MAX_PASSWORD};
use crate::raknet::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use crate::raknet::wire::{Guid, MAX_MTU, Wire};
use crate::time::{Instant, micros};

/// MTUs that a client tries, a third of its attempts each (supplement 2.4).
const MTUS: [u16; 3] = [MAX_MTU, 1200, 576];

/// A client before the server knows of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    requests: u8,
    attempts: u8,
    protocol: u8,
    /// Microseconds between two first requests.
    interval: u32,
    next_request: Instant,
    answer: Option<Answer>,
}

/// What reply 1 said and request 2 has to say back.
#[derive(Clone, Copy, Debug)]
struct Answer {
    cookie: Option<u32>,
    mtu: u16,
}

impl Opening {
    pub(super) fn new(cx: &Context<'_, '_>, options: &ConnectOptions<'_>) -> Self {
        Self {
            attempts: options.attempts.unwrap_or(cx.config.connect_attempts).clamp(3, 254),
            protocol: options.protocol_version.unwrap_or(cx.config.protocol_version),
            interval: micros(options.interval.unwrap_or(cx.config.connect_interval)),
            next_request: cx.now,
            ..Self::default()
        }
    }

    pub(super) const fn next_request(&self) -> Instant {
        self.next_request
    }

    /// Composes request 2 if reply 1 came, or request 1 if it is time for one.
    pub(super) fn poll_transmit(
        &mut self,
        cx: &Context<'_, '_>,
        remote: SocketAddr,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let request = match self.answer.take() {
            Some(answer) => Offline::Request2 {
                security: answer.cookie.map_or(ClientSecurity::None, ClientSecurity::Cookie),
                server: dialled(cx.config, remote),
                mtu: answer.mtu,
                guid: cx.config.guid,
            },
            None if self.next_request <= cx.now && self.requests <= self.attempts => {
                let mtu = self.probe_mtu(cx.config);
                self.requests += 1;
                self.next_request = cx.now.plus_micros(self.interval);
                Offline::Request1 { protocol: self.protocol, mtu }
            }
            None => return None,
        };
        let mut writer = Writer::new(buffer);
        request.write(&mut writer).ok()?;
        Some(writer.written())
    }

    const fn is_exhausted(&self) -> bool {
        self.requests > self.attempts
    }

    /// The MTU that the next request probes.
    fn probe_mtu(&self, config: &Config) -> u16 {
        let third = (self.attempts / 3).max(1);
        let index = usize::from(self.requests / third).min(MTUS.len() - 1);
        config.clamp_mtu(MTUS.get(index).copied().unwrap_or(MAX_MTU))
    }
}

const fn dialled(config: &Config, remote: SocketAddr) -> SocketAddr {
    match config.dialled_address {
        DialledAddress::Known => remote,
        DialledAddress::Unknown => UNASSIGNED,
    }
}

impl Connection {
    /// Takes an offline message that answers a client's request.
    pub(crate) fn handle_offline(&mut self, cx: &mut Context<'_, '_>, message: &Offline<'_>) {
        let State::Opening(mut opening) = self.state else {
            cx.stats.drop(DropReason::Unexpected);
            return;
        };
        match *message {
            Offline::Reply1 { security, mtu, .. } => {
                let cookie = match security {
                    ServerSecurity::None => None,
                    ServerSecurity::Cookie(cookie) => Some(cookie),
                    ServerSecurity::PublicKey { .. } => {
                        return self.end(cx, State::Gone, Ending::Failed(ConnectFailure::SecurityRequired));
                    }
                };
                // A scrubber in front of a server may answer first; every later reply is answered too.
                opening.answer = Some(Answer { cookie, mtu: cx.config.clamp_mtu(mtu) });
                self.state = State::Opening(opening);
            }
            Offline::Reply2 { guid, mtu, .. } => self.request(cx, guid, cx.config.clamp_mtu(mtu)),
            Offline::Refused { refusal, .. } => {
                self.end(cx, State::Gone, Ending::Failed(ConnectFailure::Refused(refusal)));
            }
            Offline::IncompatibleProtocol { protocol, .. } => {
                let failure = ConnectFailure::IncompatibleProtocol { server: protocol };
                self.end(cx, State::Gone, Ending::Failed(failure));
            }
            Offline::Ping { .. }
            | Offline::Pong { .. }
            | Offline::OutOfBand { .. }
            | Offline::Request1 { .. }
            | Offline::Request2 { .. } => {
                cx.stats.drop(DropReason::Unexpected);
            }
        }
    }

    /// Begins the handshake inside the connection.
    fn request(&mut self, cx: &mut Context<'_, '_>, guid: Guid, mtu: u16) {
        self.guid = guid;
        self.sizes = Sizes::new(mtu, self.mode.overhead());
        let datagram = self.sizes.data_datagram();
        let recovery = LossRecovery::new(cx.config.congestion_control, datagram);
        self.recovery = recovery.starting_at(self.recovery.next_number());
        self.enter(cx, State::Requested);
        let mut password = [0; MAX_PASSWORD];
        let password = match self.password {
            Some(stored) => cx.pool.copy(stored, &mut password).unwrap_or(&[]),
            None => &[],
        };
        let (guid, time) = (cx.config.guid, cx.now.as_millis());
        let request = Control::Request { guid, time, proof: None, password };
        self.times.pinged = Some(cx.now);
        self.send_handshake(cx, &request, Delivery::RELIABLE);
        self.forget_password(cx);
    }

    fn enter(&mut self, cx: &Context<'_, '_>, state: State) {
        self.state = state;
        self.times.state_since = cx.now;
    }

    /// Sends a message without which the connection cannot open.
    fn send_handshake(&mut self, cx: &mut Context<'_, '_>, control: &Control<'_>, delivery: Delivery) {
        if !self.send_control(cx, control, delivery.with_priority(Priority::Immediate)) {
            self.abort(cx, DisconnectReason::ReceiveMemory, ConnectFailure::Closed);
        }
    }

    /// The answer to reply 1 is due, or the next request 1, or it is over.
    pub(super) fn on_opening_timeout(&mut self, cx: &mut Context<'_, '_>, opening: Opening) {
        if opening.next_request() <= cx.now && opening.is_exhausted() {
            self.end(cx, State::Gone, Ending::Failed(ConnectFailure::NoAnswer));
        }
    }

    /// Takes a message of RakNet itself.
    pub(super) fn handle_control(&mut self, cx: &mut Context<'_, '_>, payload: &[u8]) {
        let mut reader = Reader::new(payload);
        let control = Control::read(&mut reader);
        match (control, &self.state) {
            (Ok(Control::Request { guid, time, password, .. }), State::Unverified | State::Requested)
                if SERVER =>
            {
                self.accept_request(cx, guid, time, password);
            }
            // Anything else from a client that has not introduced itself ends it; nothing is held against its address.
            (_, State::Unverified) if SERVER => {
                cx.stats.drop(DropReason::BadControl);
                self.abort(cx, DisconnectReason::Lost, ConnectFailure::Closed);
            }
            (Ok(Control::Accepted { time, .. }), State::Requested | State::AwaitingNewIncoming) => {
                self.confirm(cx, time)
            }
            (Ok(Control::NewIncoming { accepted_time, time, .. }), State::AwaitingNewIncoming) if SERVER => {
                self.on_pong(cx, accepted_time, time);
                self.on_open(cx);
            }
            (Ok(Control::InvalidPassword { .. }), State::Requested) => {
                self.end(cx, State::Draining, Ending::Failed(ConnectFailure::InvalidPassword));
            }
            (Ok(Control::Ping { time }), _) if reader.remaining() == 0 => {
                self.times.pong_time = time;
                self.times.pong_due = true;
            }
            (Ok(Control::Pong { ping_time, time }), _) if reader.remaining() == 0 => {
                self.on_pong(cx, ping_time, time);
            }
            (Ok(Control::DetectLost), _) => {}
            (Ok(Control::Disconnect), _) => self.on_closing_notification(cx),
            (Ok(_) | Err(_), _) => cx.stats.drop(DropReason::BadControl),
        }
    }

    /// Server: the client introduced itself. Both sides may also dial each other at once.
    fn accept_request(&mut self, cx: &mut Context<'_, '_>, guid: Guid, request_time: u64, password: &[u8]) {
        if !is_same_secret(cx.password, password) {
            self.refuse_password(cx);
            return;
        }
        if self.guid != guid {
            cx.stats.drop(DropReason::BadControl);
            self.abort(cx, DisconnectReason::Lost, ConnectFailure::Closed);
            return;
        }
        let Some(client) = self.remote else { return };
        self.enter(cx, State::AwaitingNewIncoming);
        let accepted = Control::Accepted {
            client,
            system_index: cx.slot,
            addresses: AddressList::unassigned(cx.config.address_count.into()),
            request_time,
            time: cx.now.as_millis(),
        };
        self.times.pinged = Some(cx.now);
        self.send_handshake(cx, &accepted, Delivery::RELIABLE_ORDERED);
    }

    /// Server: says why, and holds the slot until that was acknowledged.
    fn refuse_password(&mut self, cx: &mut Context<'_, '_>) {
        let refusal = Control::InvalidPassword { guid: Some(cx.config.guid) };
        self.enter(cx, State::Refusing);
        self.send_handshake(cx, &refusal, Delivery::RELIABLE);
    }

    /// Client: the server accepted.
    fn confirm(&mut self, cx: &mut Context<'_, '_>, accepted_time: u64) {
        let Some(remote) = self.remote else { return };
        let incoming = Control::NewIncoming {
            server: dialled(cx.config, remote),
            addresses: AddressList::unassigned(cx.config.address_count.into()),
            accepted_time,
            time: cx.now.as_millis(),
        };
        self.send_handshake(cx, &incoming, Delivery::RELIABLE_ORDERED);
        if !matches!(self.state, State::Gone) {
            self.on_open(cx);
        }
    }

    fn on_open(&mut self, cx: &mut Context<'_, '_>) {
        self.enter(cx, State::Connected);
        self.opened = true;
        self.ping(cx, Delivery::UNRELIABLE);
    }

    /// A ping, or a message of the handshake that serves as one, came back. The wire counts milliseconds; when it was
    /// sent is known better here.
    fn on_pong(&mut self, cx: &mut Context<'_, '_>, ping_time: u64, remote_time: u64) {
        let pinged = self.times.pinged.filter(|pinged| pinged.as_millis() == ping_time);
        let Some(pinged) = pinged else {
            cx.stats.drop(DropReason::Unexpected);
            return;
        };
        let ping = cx.now.saturating_since(pinged);
        self.ping_stats.sample(ping, (pinged + ping / 2).as_millis(), remote_time);
    }

    /// The other peer says goodbye.
    fn on_closing_notification(&mut self, cx: &mut Context<'_, '_>) {
        let ending = match self.state {
            State::Connected => Ending::Disconnected(DisconnectReason::Remote),
            State::Closing => Ending::Disconnected(DisconnectReason::Local),
            State::Free
            | State::Opening(_)
            | State::Requested
            | State::Unverified
            | State::AwaitingNewIncoming
            | State::Refusing
            | State::Draining
            | State::Aborting
            | State::Gone => Ending::Failed(ConnectFailure::Closed),
        };
        self.end(cx, State::Draining, ending);
    }

    /// The application says goodbye: what was sent before is delivered first.
    pub(crate) fn disconnect(&mut self, cx: &mut Context<'_, '_>) {
        match self.state {
            State::Opening(_) | State::Requested | State::Unverified | State::AwaitingNewIncoming => {
                self.end(cx, State::Gone, Ending::Failed(ConnectFailure::Cancelled));
            }
            State::Connected => self.enter(cx, State::Closing),
            State::Free
            | State::Refusing
            | State::Closing
            | State::Draining
            | State::Aborting
            | State::Gone => {}
        }
    }

    /// Everything was acknowledged: says goodbye, and once that was acknowledged too, it is over.
    pub(super) fn leave(&mut self, cx: &mut Context<'_, '_>) -> ClosingNotification {
        let due =
            matches!(self.state, State::Closing) && self.closing_notification == ClosingNotification::Due;
        self.closing_notification = ClosingNotification::Sent;
        if due && self.send_control(cx, &Control::Disconnect, Delivery::RELIABLE_ORDERED) {
            return ClosingNotification::Due;
        }
        self.end(cx, State::Gone, Ending::Disconnected(DisconnectReason::Local));
        ClosingNotification::Sent
    }
}

/// How far a connection that ends has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ClosingNotification {
    /// What was sent before comes first: the other peer takes nothing more once it has heard the closing_notification.
    #[default]
    Due,
    Sent,
}

/// Compares without telling by the time taken where the difference is.
fn is_same_secret(expected: &[u8], given: &[u8]) -> bool {
    let differences = expected.iter().zip(given).fold(0, |all, (left, right)| all | (left ^ right));
    expected.len() == given.len() && differences == 0
}
