//! Moves datagrams and time between the client and the browser.

use std::cell::RefCell;
use std::fmt;
use std::rc::{Rc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::{Carrier, ConnectError, Hook, Protocol, Receipt, SendError};
use wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::spawn_local;
use web_sys::Url;

use super::announced::draining;
use super::browser::{AtPageEnd, Timer, after_task, entropy, now, soon, stay};
use super::carriers::{Carriers, HEAD_START_MS, Kind, NoTransport, Outcome, Transport};
use super::error::{self, LOST, RelayClose};
use super::local_network::{self, Decision};
use super::socket::FromRelay;
use crate::client::{Client, OutOfMemory, millis};

/// The interval in milliseconds at which a full WebSocket is polled, because browsers have no event for it.
const FULL_SOCKET_MS: f64 = 5.0;
/// A timer that fires this many milliseconds late indicates that the page was suspended, and received datagrams may be
/// queued.
const LATE_MS: f64 = 50.0;
/// The maximum time in milliseconds for which timeouts are deferred while such datagrams are handled. It bounds the
/// delay under a flood.
const CATCH_UP_MS: f64 = 500.0;

/// The maximum time for which a disconnecting peer waits for acknowledgements of its messages.
const DISCONNECT_WAIT: Duration = Duration::from_secs(5);

/// A client with a boxed hook, so that connections have no type parameter for it.
pub(super) type HookedClient<P> = Client<P, Box<dyn Hook<P>>>;

/// The parameters of a client, and a function that is notified of its carrier.
pub(super) struct Start<P: Protocol, F> {
    /// The URL of the relay's WebSocket; `None` if the caller's URL is invalid.
    pub(super) relay: Option<Url>,
    pub(super) transport: Transport,
    pub(super) ends_with_page: bool,
    pub(super) client: F,
    pub(super) set_carrier: fn(&mut HookedClient<P>, Carrier),
}

/// The parts of a connection that browser callbacks and futures share.
pub(super) struct Driver<P: Protocol> {
    pub(super) client: HookedClient<P>,
    pub(super) relay_close: Option<RelayClose>,
    /// The remaining time that the relay announced with its shutdown. `None` once the receive queue has taken it.
    pub(super) draining: Option<Duration>,
    /// The error with which the client refused to start connecting.
    pub(super) refusal: Option<ConnectError>,
    /// True once the time limit for connecting has passed.
    pub(super) is_overdue: bool,
    /// The permission decision of the browser for the network of the relay, if the relay may be unreachable because
    /// of it.
    pub(super) decision: Option<Decision>,
    relay: Url,
    set_carrier: fn(&mut HookedClient<P>, Carrier),
    carriers: Option<Carriers>,
    /// The delay before a second carrier is opened.
    head_start: Option<(Timer, Closure<dyn FnMut()>)>,
    /// The delay before an open WebSocket is used.
    yielding: Option<(Timer, Closure<dyn FnMut()>)>,
    timer: Option<(Instant, Timer)>,
    /// `None` if leaving the page does not close the connection.
    _at_page_end: Option<AtPageEnd>,
    on_timer: Closure<dyn FnMut()>,
    wakers: Vec<Waker>,
    /// True if the task of a waker waits for free send memory.
    has_waiting_sender: bool,
    pump_is_queued: bool,
    /// Set while datagrams that arrived during a suspension of the page are handled, before any timeout.
    catching_up: Option<CatchingUp>,
    me: Weak<RefCell<Self>>,
}

/// The state of handling datagrams that were queued while the page was suspended.
#[derive(Debug)]
struct CatchingUp {
    until_ms: f64,
    /// True if an event of a carrier has arrived since the last check.
    has_caught: bool,
}

impl<P: Protocol> fmt::Debug for Driver<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("carriers", &self.carriers).finish_non_exhaustive()
    }
}

impl<P: Protocol> Driver<P> {
    /// Starts to open a carrier; callbacks continue the attempt. Fails if the URL is invalid, or the browser lacks the
    /// memory or the transport.
    pub(super) fn start(
        start: Start<P, impl FnOnce([u8; 32]) -> Result<HookedClient<P>, OutOfMemory>>,
    ) -> Result<Rc<RefCell<Self>>, error::ConnectError<P>> {
        let Start { relay, transport, ends_with_page, client, set_carrier } = start;
        let relay = relay.ok_or(error::ConnectError::InvalidUrl)?;
        let client = client(entropy()).map_err(|OutOfMemory| error::ConnectError::OutOfMemory)?;
        let driver = Rc::new_cyclic(|me: &Weak<RefCell<Self>>| {
            let at_timer = me.clone();
            let (before_end, at_end) = (me.clone(), me.clone());
            RefCell::new(Self {
                client,
                relay_close: None,
                draining: None,
                refusal: None,
                is_overdue: false,
                decision: None,
                relay: relay.clone(),
                set_carrier,
                carriers: None,
                head_start: None,
                yielding: None,
                timer: None,
                _at_page_end: ends_with_page.then(|| {
                    AtPageEnd::call(
                        move || stay_if_fragile(&before_end),
                        move || {
                            change(&at_end, Self::leave);
                            stay_if_fragile(&at_end);
                        },
                    )
                }),
                on_timer: Closure::new(move || change(&at_timer, Self::on_timer)),
                wakers: Vec::new(),
                has_waiting_sender: false,
                pump_is_queued: false,
                catching_up: None,
                me: me.clone(),
            })
        });
        let weak = Rc::downgrade(&driver);
        let carriers = Carriers::start(&relay, transport, events(&weak))
            .map_err(|NoTransport| error::ConnectError::NoTransport)?;
        if carriers.may_race() {
            driver.borrow_mut().head_start = Some(after(&weak, HEAD_START_MS, Self::open_socket));
        }
        driver.borrow_mut().carriers = Some(carriers);
        Ok(driver)
    }

    /// Opens a WebSocket in addition to the carrier that has not opened yet.
    fn open_socket(&mut self) {
        let on_event = events(&self.me);
        let Some(carriers) = &mut self.carriers else { return };
        carriers.open_socket(&self.relay, on_event);
    }

    /// Uses an open WebSocket for the connection.
    fn end_yielding(&mut self) {
        if let Some(carriers) = &mut self.carriers {
            let outcome = carriers.end_yielding();
            self.on_outcome(outcome);
        }
    }

    /// Returns the transport in use, or the last one in use after the close; `None` before the first.
    pub(super) fn transport(&self) -> Option<Transport> {
        self.carriers.as_ref()?.transport()
    }

    /// Returns the callback of the time limit for connecting.
    pub(super) fn on_deadline(driver: &Rc<RefCell<Self>>) -> Closure<dyn FnMut()> {
        let driver = Rc::downgrade(driver);
        Closure::new(move || {
            change(&driver, |driver| {
                if driver.has_reached_relay() {
                    driver.is_overdue = true;
                } else {
                    driver.ask_why_not(true, |driver| driver.is_overdue = true);
                }
            });
        })
    }

    pub(super) fn send(
        &mut self,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        if self.relay_close.is_some() {
            return Err(SendError::NotConnected);
        }
        let receipt = self.client.send(now(), message, delivery)?;
        self.pump_soon();
        Ok(receipt)
    }

    pub(super) fn can_send(&mut self, length: usize, delivery: P::Delivery) -> Result<(), SendError> {
        if self.relay_close.is_some() {
            return Err(SendError::NotConnected);
        }
        self.client.can_send(length, delivery)
    }

    pub(super) fn disconnect(&mut self) {
        self.client.disconnect(now());
        self.pump();
    }

    /// Disconnects immediately because the page is being left, although earlier messages may not have arrived. The
    /// carrier stays open, because closing a WebTransport session makes Chromium drop unsent datagrams.
    fn leave(&mut self) {
        let now = now();
        self.client.disconnect(now);
        self.send_all(now);
        self.client.handle_timeout(now + DISCONNECT_WAIT);
        self.send_all(now);
    }

    /// Sends all datagrams of the client, even if the buffer of the carrier is full.
    fn send_all(&mut self, now: Instant) {
        let Some(carriers) = self.carriers.as_ref().filter(|carriers| carriers.is_open()) else { return };
        while let Some(datagram) = self.client.poll_transmit(now) {
            carriers.send(datagram);
        }
    }

    /// Wakes the task of `cx` at the next event.
    pub(super) fn wake_later(&mut self, cx: &Context<'_>) {
        if !self.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.wakers.push(cx.waker().clone());
        }
    }

    /// Wakes the task of `cx` when send memory may be free.
    pub(super) fn wake_sender_later(&mut self, cx: &Context<'_>) {
        self.has_waiting_sender = true;
        self.wake_later(cx);
    }

    /// Returns true if a task waits for send memory.
    pub(super) const fn has_waiting_sender(&self) -> bool {
        self.has_waiting_sender
    }

    /// Takes the wakers of all waiting tasks. The caller wakes them once it no longer borrows the driver, because their
    /// tasks borrow it.
    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        self.has_waiting_sender = false;
        core::mem::take(&mut self.wakers)
    }

    /// Schedules a single run for all messages that the application sends in the same task, so that they share
    /// datagrams.
    pub(super) fn pump_soon(&mut self) {
        if core::mem::replace(&mut self.pump_is_queued, true) {
            return;
        }
        let me = self.me.clone();
        soon(move || {
            change(&me, |driver| {
                driver.pump_is_queued = false;
                driver.pump();
            });
        });
    }

    fn on_relay(&mut self, kind: Kind, event: FromRelay) {
        if let Some(carriers) = &mut self.carriers {
            let outcome = carriers.on_event(kind, event);
            self.on_outcome(outcome);
        }
    }

    fn on_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Opened(kind) => {
                let carrier = match kind {
                    Kind::Session => Carrier::Datagrams,
                    Kind::Socket => Carrier::Stream,
                };
                (self.set_carrier)(&mut self.client, carrier);
                self.refusal = self.client.connect(now()).err();
            }
            Outcome::Datagram(datagram) => self.client.handle(now(), &datagram),
            Outcome::Control(text) => {
                self.draining = draining(&text).or(self.draining);
                return;
            }
            Outcome::Closed(close) => {
                self.timer = None;
                if close.code == LOST && !self.has_reached_relay() {
                    self.ask_why_not(false, move |driver| driver.relay_close = Some(close));
                } else {
                    self.relay_close = Some(close);
                }
                return;
            }
            Outcome::SocketDue => {
                self.open_socket();
                return;
            }
            Outcome::Yields => {
                let yields_ms = self.carriers.as_ref().and_then(Carriers::yields_ms).unwrap_or_default();
                self.yielding = Some(after(&self.me, yields_ms, Self::end_yielding));
                return;
            }
            Outcome::Nothing => return,
        }
        self.pump();
    }

    fn has_reached_relay(&self) -> bool {
        self.carriers.as_ref().is_some_and(Carriers::has_reached_relay)
    }

    /// Queries whether the browser denies this page access to the network of an unreachable relay, and then calls
    /// `then`.
    fn ask_why_not(&self, is_overdue: bool, then: impl FnOnce(&mut Self) + 'static) {
        let (me, relay) = (self.me.clone(), self.relay.clone());
        spawn_local(async move {
            let decision = local_network::explain(&relay, is_overdue).await;
            change(&me, |driver| {
                driver.decision = decision;
                then(driver);
            });
        });
    }

    fn on_timer(&mut self) {
        if !self.is_late(now()) {
            self.timer = None;
        }
        self.pump();
    }

    /// Returns true if the page was suspended, so queued datagrams must be handled before timeouts. Checked on every
    /// run, because a datagram or a message of the application may start a run before the timer does.
    fn is_late(&self, now: Instant) -> bool {
        self.timer.as_ref().is_some_and(|(due, _)| millis(now) - millis(*due) > LATE_MS)
    }

    /// Lets the browser deliver queued events until one of its tasks has delivered no datagram. Uses no timer,
    /// because browsers delay timers of a hidden tab.
    fn catch_up(&mut self) {
        let Some(catching_up) = &mut self.catching_up else { return };
        if core::mem::take(&mut catching_up.has_caught) && millis(now()) < catching_up.until_ms {
            let me = self.me.clone();
            after_task(move || change(&me, Self::catch_up));
        } else {
            self.catching_up = None;
            self.pump();
        }
    }

    /// Handles timeouts, sends datagrams while the carrier accepts them, and sets the timer.
    fn pump(&mut self) {
        if let Some(catching_up) = &mut self.catching_up {
            catching_up.has_caught = true;
            return;
        }
        let now = now();
        if self.is_late(now) {
            self.timer = None;
            self.catching_up = Some(CatchingUp { until_ms: millis(now) + CATCH_UP_MS, has_caught: true });
            self.catch_up();
            return;
        }
        let Some(carriers) = self.carriers.as_ref().filter(|carriers| carriers.is_open()) else {
            return;
        };
        self.client.handle_timeout(now);
        while carriers.has_room() {
            match self.client.poll_transmit(now) {
                Some(datagram) => carriers.send(datagram),
                None => break,
            }
        }
        let least = if carriers.has_room() { 0.0 } else { FULL_SOCKET_MS };
        match self.client.poll_timeout() {
            None => self.timer = None,
            Some(due) if self.timer.as_ref().is_some_and(|(at, _)| *at <= due) => {}
            Some(due) => {
                let wait = (millis(due) - millis(now)).max(least);
                self.timer = Some((due, Timer::start(&self.on_timer, wait)));
            }
        }
    }
}

/// Delays unloading the page if that, or an interruption of its scripts, would lose unsent datagrams of a WebTransport
/// session. The driver is not borrowed during the delay.
fn stay_if_fragile<P: Protocol>(driver: &Weak<RefCell<Driver<P>>>) {
    let transport = driver.upgrade().and_then(|driver| driver.borrow().transport());
    if transport == Some(Transport::WebTransport) {
        stay();
    }
}

/// Changes a driver after a delay, unless the returned timer is dropped first.
fn after<P: Protocol>(
    driver: &Weak<RefCell<Driver<P>>>,
    ms: f64,
    work: fn(&mut Driver<P>),
) -> (Timer, Closure<dyn FnMut()>) {
    let driver = driver.clone();
    let on_due = Closure::new(move || change(&driver, work));
    (Timer::start(&on_due, ms), on_due)
}

/// Returns the event callback of carriers.
fn events<P: Protocol>(driver: &Weak<RefCell<Driver<P>>>) -> impl Fn(Kind, FromRelay) + Clone + use<P> {
    let driver = driver.clone();
    move |kind, event| change(&driver, |driver| driver.on_relay(kind, event))
}

/// Changes a driver that still exists, then wakes the tasks that wait for any event.
fn change<P: Protocol>(driver: &Weak<RefCell<Driver<P>>>, work: impl FnOnce(&mut Driver<P>)) {
    let Some(driver) = driver.upgrade() else {
        return;
    };
    let wakers = {
        let mut driver = driver.borrow_mut();
        work(&mut driver);
        driver.take_wakers()
    };
    wakers.into_iter().for_each(Waker::wake);
}
