//! What carries datagrams to the relay: which of the two that lead there, and the race between them (RFC 8305).

use rakwire::Instant;
use wasm_bindgen::JsValue;
use web_sys::Url;

use super::browser::{describe, now, soon};
use super::error::{LOST, RelayClose};
use super::session::{self, Session};
use super::socket::{FromRelay, Socket};
use crate::client::millis;

/// How long the first carrier may take until a second one is opened beside it, as in the npm package.
pub(super) const HEAD_START_MS: f64 = 250.0;
/// The part of the time that it took to open for which a WebSocket yields to a session on its way, which needs a round trip more
/// since it asks the relay first where it leads; and the longest.
const YIELDING_PART: f64 = 1.0 / 3.0;
const LONGEST_YIELD_MS: f64 = 250.0;

/// By what a connection reaches the relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// WebTransport where browser and relay have it, and otherwise a WebSocket, which is opened beside when WebTransport is not open
    /// after a quarter of a second: the first one that is open carries the connection to its end.
    #[default]
    Auto,
    /// WebTransport alone: like UDP it loses datagrams, so that one that is lost holds up no other.
    WebTransport,
    /// A WebSocket alone, which passes wherever pages of the web do.
    WebSocket,
}

/// Which carrier something is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Session,
    Socket,
}

/// What became of the carriers by an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// This one is open and carries the connection from now on.
    Opened(Kind),
    Datagram(Vec<u8>),
    /// A control message of the relay.
    Control(String),
    /// None is left.
    Closed(RelayClose),
    /// A WebSocket is due.
    SocketDue,
    /// The WebSocket is open, and due to carry the connection in a moment.
    Yields,
    Nothing,
}

/// The browser has no WebTransport, which alone was to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoTransport;

/// The carriers of one connection.
#[derive(Debug)]
pub(super) struct Carriers {
    session: Option<Session>,
    socket: Option<Socket>,
    /// The one that is open first.
    open: Option<Kind>,
    /// Whether a WebSocket may still be opened.
    has_socket_left: bool,
    socket_started: Instant,
    has_socket_failed: bool,
    /// For how long the open WebSocket yields.
    yields_ms: Option<f64>,
    /// How the first one failed. What the relay said tells more than that something was not there.
    failure: Option<RelayClose>,
}

impl Carriers {
    /// Opens the first one, which hands its events to `on_event`.
    pub(super) fn start(
        relay: &Url,
        transport: Transport,
        on_event: impl Fn(Kind, FromRelay) + Clone + 'static,
    ) -> Result<Self, NoTransport> {
        let mut carriers = Self {
            session: None,
            socket: None,
            open: None,
            has_socket_left: transport != Transport::WebTransport,
            socket_started: Instant::ZERO,
            has_socket_failed: false,
            yields_ms: None,
            failure: None,
        };
        if transport != Transport::WebSocket && session::is_there() {
            let notify = on_event.clone();
            let opened = Session::open(relay.clone(), move |event| notify(Kind::Session, event));
            carriers.session = made(opened, Kind::Session, on_event);
        } else if carriers.has_socket_left {
            carriers.open_socket(relay, on_event);
        } else {
            return Err(NoTransport);
        }
        Ok(carriers)
    }

    /// Whether a second one is opened if the first one takes its time.
    pub(super) const fn may_race(&self) -> bool {
        self.has_socket_left
    }

    /// Whether one has been open.
    pub(super) const fn has_reached_relay(&self) -> bool {
        self.open.is_some() || self.yields_ms.is_some()
    }

    /// Which one carries the connection, or has carried it.
    pub(super) const fn transport(&self) -> Option<Transport> {
        match self.open {
            Some(Kind::Session) => Some(Transport::WebTransport),
            Some(Kind::Socket) => Some(Transport::WebSocket),
            None => None,
        }
    }

    /// For how long the open WebSocket yields to a session on its way.
    pub(super) const fn yields_ms(&self) -> Option<f64> {
        self.yields_ms
    }

    /// Opens a WebSocket too, if that is still of use.
    pub(super) fn open_socket(&mut self, relay: &Url, on_event: impl Fn(Kind, FromRelay) + Clone + 'static) {
        if core::mem::take(&mut self.has_socket_left) && self.open.is_none() {
            self.socket_started = now();
            let notify = on_event.clone();
            let opened = Socket::open(relay, move |event| notify(Kind::Socket, event));
            self.socket = made(opened, Kind::Socket, on_event);
        }
    }

    pub(super) fn on_event(&mut self, kind: Kind, event: FromRelay) -> Outcome {
        match event {
            FromRelay::Open if self.open.is_none() => {
                if kind == Kind::Session || self.session.is_none() {
                    return self.win(kind);
                }
                let took_ms = millis(now()) - millis(self.socket_started);
                self.yields_ms = Some((took_ms * YIELDING_PART).min(LONGEST_YIELD_MS));
                Outcome::Yields
            }
            FromRelay::Datagram(datagram) if self.open == Some(kind) => Outcome::Datagram(datagram),
            FromRelay::Control(text) if self.open == Some(kind) => Outcome::Control(text),
            FromRelay::Closed(close) => self.on_closed(kind, close),
            FromRelay::Open | FromRelay::Datagram(_) | FromRelay::Control(_) => Outcome::Nothing,
        }
    }

    /// Lets the WebSocket win that has yielded.
    pub(super) fn end_yielding(&mut self) -> Outcome {
        match self.yields_ms.take() {
            Some(_) if self.open.is_none() => self.win(Kind::Socket),
            _ => Outcome::Nothing,
        }
    }

    /// The others are closed.
    fn win(&mut self, kind: Kind) -> Outcome {
        self.open = Some(kind);
        match kind {
            Kind::Session => self.socket = None,
            Kind::Socket => self.session = None,
        }
        Outcome::Opened(kind)
    }

    fn on_closed(&mut self, kind: Kind, close: RelayClose) -> Outcome {
        if self.open == Some(kind) {
            return Outcome::Closed(close);
        }
        if self.open.is_some() {
            return Outcome::Nothing;
        }
        let failure = self.failure.take().filter(|failure| failure.code != LOST).unwrap_or(close);
        let other_opens = match kind {
            Kind::Session => {
                self.session = None;
                if self.yields_ms.is_some() {
                    return self.end_yielding();
                }
                self.socket.is_some() && !self.has_socket_failed
            }
            Kind::Socket => {
                self.yields_ms = None;
                self.has_socket_failed = true;
                self.session.is_some()
            }
        };
        if self.has_socket_left || other_opens {
            self.failure = Some(failure);
            return if self.has_socket_left { Outcome::SocketDue } else { Outcome::Nothing };
        }
        Outcome::Closed(failure)
    }

    /// Whether one is open.
    pub(super) fn is_open(&self) -> bool {
        match self.open {
            Some(Kind::Session) => self.session.as_ref().is_some_and(Session::is_open),
            Some(Kind::Socket) => self.socket.as_ref().is_some_and(Socket::is_open),
            None => false,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        match self.open {
            Some(Kind::Session) => self.session.as_ref().is_some_and(Session::has_room),
            Some(Kind::Socket) => self.socket.as_ref().is_some_and(Socket::has_room),
            None => false,
        }
    }

    pub(super) fn send(&self, datagram: &[u8]) {
        match self.open {
            Some(Kind::Session) => self.session.iter().for_each(|session| session.send(datagram)),
            Some(Kind::Socket) => self.socket.iter().for_each(|socket| socket.send(datagram)),
            None => {}
        }
    }
}

/// A carrier that was made. One that cannot even be made, as a WebSocket that the browser forbids this page, fails a moment later, as
/// others do.
fn made<T>(
    opened: Result<T, JsValue>,
    kind: Kind,
    on_event: impl Fn(Kind, FromRelay) + 'static,
) -> Option<T> {
    match opened {
        Ok(carrier) => Some(carrier),
        Err(error) => {
            let close = RelayClose { code: LOST, reason: describe(&error) };
            soon(move || on_event(kind, FromRelay::Closed(close)));
            None
        }
    }
}
