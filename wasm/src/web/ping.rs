//! Pings a server for its status without a connection.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{Guid, PongFraming};
use rakwire::wire::offline::{Offline, PingScope};
use rakwire::wire::{Reader, Wire, Writer};
use wasm_bindgen::JsValue;
use wasm_bindgen::closure::Closure;
use web_sys::Url;

use super::browser::{Timer, describe, entropy, now, relay_url};
use super::error::{INVALID_URL, LOCAL_NETWORK_REFUSED, LOCAL_NETWORK_UNDECIDED, LOST, RelayClose};
use super::local_network::{self, Decision};
use super::socket::{FromRelay, Socket};
use crate::client::millis;

/// The interval between pings. Pings are repeated because each ping or pong may be lost.
const REPEAT: Duration = Duration::from_secs(1);
/// The length of a ping in bytes.
const PING: usize = 33;

/// The answer of a server to a ping.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pong {
    /// The GUID of the server.
    pub identity: Guid,
    /// The time from the ping to the pong, through the relay.
    pub latency: Duration,
    /// The advertisement of the server, 0 to 399 bytes, without the length prefix.
    pub data: Vec<u8>,
}

/// The reason why there is no pong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PingError {
    /// The URL is not that of a relay.
    InvalidUrl,
    /// See [`ConnectError::LocalNetworkRefused`](super::ConnectError::LocalNetworkRefused).
    LocalNetworkRefused,
    /// See [`ConnectError::LocalNetworkUndecided`](super::ConnectError::LocalNetworkUndecided).
    LocalNetworkUndecided,
    /// The relay refused the connection, or is unreachable.
    Relay(RelayClose),
    /// The server did not answer in time.
    NoAnswer,
}

impl core::fmt::Display for PingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::InvalidUrl => f.write_str(INVALID_URL),
            Self::LocalNetworkRefused => f.write_str(LOCAL_NETWORK_REFUSED),
            Self::LocalNetworkUndecided => f.write_str(LOCAL_NETWORK_UNDECIDED),
            Self::Relay(close) => close.fmt(f),
            Self::NoAnswer => f.write_str("the server does not answer"),
        }
    }
}

impl core::error::Error for PingError {}

/// Pings the RakNet server that the relay at `url` offers as `target` every second until it answers, for at most
/// `timeout`. Needs no connection. Uses a WebSocket, which every relay supports.
///
/// Dropping the future cancels the ping. To list servers, ping all of them concurrently with one future each.
///
/// # Errors
/// A [`PingError`] that describes the cause.
///
/// ```no_run
/// use std::time::Duration;
/// use rakwire_wasm::web::{PingScope, ping};
///
/// # async fn look() -> Result<(), Box<dyn std::error::Error>> {
/// let url = "wss://play.example.org/ws";
/// let pong = ping(url, "game", PingScope::OpenConnections, Duration::from_secs(2)).await?;
/// println!("{} after {:?}", String::from_utf8_lossy(&pong.data), pong.latency);
/// # Ok(())
/// # }
/// ```
pub async fn ping(url: &str, target: &str, scope: PingScope, timeout: Duration) -> Result<Pong, PingError> {
    let relay = relay_url(url, target).ok_or(PingError::InvalidUrl)?;
    let (answer, has_reached_relay) = match Question::start(&relay, scope, timeout) {
        Ok(question) => {
            let answer = poll_fn(|cx| question.borrow_mut().poll(cx)).await;
            (answer, question.borrow().has_reached_relay)
        }
        Err(error) => {
            let close = RelayClose { code: LOST, reason: describe(&error) };
            (Err(PingError::Relay(close)), false)
        }
    };
    let is_overdue = match &answer {
        _ if has_reached_relay => return answer,
        Err(PingError::NoAnswer) => true,
        Err(PingError::Relay(close)) if close.code == LOST => false,
        _ => return answer,
    };
    match local_network::explain(&relay, is_overdue).await {
        Some(Decision::Refused) => Err(PingError::LocalNetworkRefused),
        Some(Decision::Undecided) => Err(PingError::LocalNetworkUndecided),
        None => answer,
    }
}

/// A ping in progress.
struct Question {
    scope: PingScope,
    identity: Guid,
    give_up_at: Instant,
    /// The sending time of each ping, by the timestamp in the ping.
    sent: Vec<(u64, Instant)>,
    socket: Option<Socket>,
    has_reached_relay: bool,
    on_timer: Closure<dyn FnMut()>,
    _timer: Option<Timer>,
    answer: Option<Result<Pong, PingError>>,
    waker: Option<Waker>,
}

impl Question {
    fn start(relay: &Url, scope: PingScope, timeout: Duration) -> Result<Rc<RefCell<Self>>, JsValue> {
        let [a, b, c, d, e, f, g, h, ..] = entropy();
        let question = Rc::new_cyclic(|me: &Weak<RefCell<Self>>| {
            let at_timer = me.clone();
            RefCell::new(Self {
                scope,
                identity: Guid(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
                give_up_at: now() + timeout,
                sent: Vec::new(),
                socket: None,
                has_reached_relay: false,
                on_timer: Closure::new(move || change(&at_timer, Self::on_timer)),
                _timer: None,
                answer: None,
                waker: None,
            })
        });
        let at_event = Rc::downgrade(&question);
        let on_event = move |event| change(&at_event, |question| question.on_relay(event));
        let socket = Socket::open(relay, on_event)?;
        question.borrow_mut().socket = Some(socket);
        question.borrow_mut().wait();
        Ok(question)
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<Pong, PingError>> {
        if let Some(answer) = self.answer.take() {
            return Poll::Ready(answer);
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn on_relay(&mut self, event: FromRelay) {
        match event {
            FromRelay::Open => {
                self.has_reached_relay = true;
                self.send();
            }
            FromRelay::Datagram(datagram) => self.on_datagram(&datagram),
            FromRelay::Control(_) => {}
            FromRelay::Closed(close) => self.answer = Some(Err(PingError::Relay(close))),
        }
    }

    fn on_datagram(&mut self, datagram: &[u8]) {
        let Ok(Offline::Pong { time, guid, data }) = Offline::read(&mut Reader::new(datagram)) else {
            return;
        };
        // Some servers send their own clock instead of the timestamp of the ping.
        let ping = self.sent.iter().find(|(carried, _)| *carried == time).or_else(|| self.sent.last());
        if let Some((_, at)) = ping {
            let latency = now().saturating_since(*at);
            // Servers of Minecraft Bedrock put a length prefix before their data.
            let data = PongFraming::of(data).unframe(data).unwrap_or(data);
            self.answer = Some(Ok(Pong { identity: guid, latency, data: data.to_vec() }));
        }
    }

    fn on_timer(&mut self) {
        if now() >= self.give_up_at {
            self.answer = Some(Err(PingError::NoAnswer));
        } else {
            self.send();
            self.wait();
        }
    }

    fn send(&mut self) {
        let Some(socket) = self.socket.as_ref().filter(|socket| socket.is_open()) else { return };
        let at = now();
        let ping = Offline::Ping { scope: self.scope, time: at.as_millis(), guid: Some(self.identity) };
        let mut buffer = [0; PING];
        let mut writer = Writer::new(&mut buffer);
        if ping.write(&mut writer).is_ok() {
            socket.send(writer.finish());
            self.sent.push((at.as_millis(), at));
        }
    }

    /// Sets the timer to the next ping or to the time limit.
    fn wait(&mut self) {
        let left = self.give_up_at.saturating_since(now()).min(REPEAT);
        let wait = millis(Instant::ZERO + left).ceil();
        self._timer = Some(Timer::start(&self.on_timer, wait));
    }
}

/// Changes a pending ping, and wakes its task once there is an answer.
fn change(question: &Weak<RefCell<Question>>, work: impl FnOnce(&mut Question)) {
    let Some(question) = question.upgrade() else { return };
    let waker = {
        let mut question = question.borrow_mut();
        work(&mut question);
        if question.answer.is_some() { question.waker.take() } else { None }
    };
    waker.into_iter().for_each(Waker::wake);
}
