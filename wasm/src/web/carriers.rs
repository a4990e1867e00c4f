//! The carriers of datagrams to the relay, and the race between them (RFC 8305).

use rakwire::Instant;
use wasm_bindgen::JsValue;
use web_sys::Url;

use super::browser::{describe, now, soon};
use super::error::{LOST, RelayClose};
use super::session::{self, Session};
use super::socket::{FromRelay, Socket};
use crate::client::millis;

/// The head start of the first carrier before a second one is opened, in milliseconds: the Connection Attempt Delay
/// that RFC 8305 recommends.
pub(super) const HEAD_START_MS: f64 = 250.0;
/// An open WebSocket waits for a WebTransport session in progress for this fraction of its own opening time, up to a
/// maximum. The session needs the announcement of the relay and one more round trip.
const YIELDING_PART: f64 = 1.0 / 3.0;
const LONGEST_YIELD_MS: f64 = 250.0;

/// The transport to the relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// WebTransport if the browser and the relay have it, otherwise a WebSocket. The WebSocket is also opened if
    /// WebTransport is not open after a quarter of a second. The first that opens is used for the whole connection.
    #[default]
    Auto,
    /// WebTransport only. As with UDP, a lost datagram does not delay other datagrams.
    WebTransport,
    /// A WebSocket only, which works wherever web pages do.
    WebSocket,
}

/// The kind of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Session,
    Socket,
}

/// The effect of an event on the carriers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// This carrier has opened and carries all following datagrams.
    Opened(Kind),
    Datagram(Vec<u8>),
    /// A control message of the relay.
    Control(String),
    /// No carrier is left.
    Closed(RelayClose),
    /// A WebSocket should be opened.
    SocketDue,
    /// The WebSocket has opened, and is used after a short delay unless the session opens first.
    Yields,
    Nothing,
}

/// The error if the browser has no WebTransport and the caller allowed no other transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoTransport;

/// The carriers of one connection.
#[derive(Debug)]
pub(super) struct Carriers {
    session: Option<Session>,
    socket: Option<Socket>,
    /// The first carrier that opened.
    open: Option<Kind>,
    /// True if a WebSocket may still be opened.
    has_socket_left: bool,
    socket_started: Instant,
    has_socket_failed: bool,
    /// The time in milliseconds for which the open WebSocket waits for a WebTransport session.
    yields_ms: Option<f64>,
    /// The failure of the first carrier. A close code of the relay takes precedence over an unavailable carrier.
    failure: Option<RelayClose>,
}

impl Carriers {
    /// Opens the first carrier, which passes its events to `on_event`.
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
        if transport != Transport::WebSocket && session::is_supported() {
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

    /// Returns true if a second carrier may be opened when the first one is slow.
    pub(super) const fn may_race(&self) -> bool {
        self.has_socket_left
    }

    /// Returns true if a carrier has been open.
    pub(super) const fn has_reached_relay(&self) -> bool {
        self.open.is_some() || self.yields_ms.is_some()
    }

    /// Returns the transport in use, or the last one in use after the close; `None` before the first.
    pub(super) const fn transport(&self) -> Option<Transport> {
        match self.open {
            Some(Kind::Session) => Some(Transport::WebTransport),
            Some(Kind::Socket) => Some(Transport::WebSocket),
            None => None,
        }
    }

    /// Returns the time in milliseconds for which the open WebSocket waits for the WebTransport session.
    pub(super) const fn yields_ms(&self) -> Option<f64> {
        self.yields_ms
    }

    /// Opens a WebSocket, if one may still be opened and no carrier is open.
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

    /// Uses the open WebSocket without further delay.
    pub(super) fn end_yielding(&mut self) -> Outcome {
        match self.yields_ms.take() {
            Some(_) if self.open.is_none() => self.win(Kind::Socket),
            _ => Outcome::Nothing,
        }
    }

    /// Uses this carrier, and closes the others.
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

    /// Returns true if a carrier is open.
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

/// Returns a created carrier. If the browser refuses to create it, for example because of the content security policy,
/// reports the failure asynchronously, as for other carriers.
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
