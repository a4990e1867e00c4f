//! The WebSocket to the relay and its callbacks.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use js_sys::{ArrayBuffer, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{AbortController, BinaryType, CloseEvent, Event, MessageEvent, Url, WebSocket};

use super::announced::{PROTOCOL, ask};
use super::browser::after_task;
use super::error::{LOST, RelayClose};

/// The maximum number of bytes in the buffer of the WebSocket. The protocol's congestion control can no longer delay
/// these bytes.
pub(super) const MAX_BUFFERED: u32 = 64 * 1024;

/// The default path of the WebSocket. If another path cannot be opened, the path in the relay's announcement is tried.
const PATH: &str = "/ws";

/// An event of a carrier.
pub(super) enum FromRelay {
    Open,
    Datagram(Vec<u8>),
    /// A control message.
    Control(String),
    Closed(RelayClose),
}

/// An open or opening WebSocket of a relay. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Socket {
    /// The WebSocket at the caller's path, or at the announced path.
    current: Rc<RefCell<Option<Opened>>>,
    giving_up: AbortController,
}

impl Socket {
    pub(super) fn open(relay: &Url, on_event: impl Fn(FromRelay) + Clone + 'static) -> Result<Self, JsValue> {
        let current = Rc::new(RefCell::new(None));
        let socket = Self { current: Rc::clone(&current), giving_up: AbortController::new()? };
        let opened = if relay.pathname().ends_with(PATH) {
            Opened::new(&relay.href(), on_event)?
        } else {
            let seeking = Seeking {
                relay: relay.clone(),
                giving_up: socket.giving_up.clone(),
                current: Rc::downgrade(&current),
            };
            let was_open = Rc::new(Cell::new(false));
            let on_first = move |event| {
                if let FromRelay::Closed(close) = &event
                    && close.code == LOST
                    && !was_open.get()
                {
                    spawn_local(seeking.clone().run(close.clone(), on_event.clone()));
                } else {
                    was_open.set(true);
                    on_event(event);
                }
            };
            Opened::new(&relay.href(), on_first)?
        };
        *current.borrow_mut() = Some(opened);
        Ok(socket)
    }

    pub(super) fn is_open(&self) -> bool {
        self.current.borrow().as_ref().is_some_and(|opened| opened.socket.ready_state() == WebSocket::OPEN)
    }

    pub(super) fn has_room(&self) -> bool {
        self.current.borrow().as_ref().is_some_and(|opened| opened.socket.buffered_amount() < MAX_BUFFERED)
    }

    /// Sends a datagram. A closing socket drops it like a lost datagram.
    pub(super) fn send(&self, datagram: &[u8]) {
        if let Some(opened) = &*self.current.borrow() {
            let _ = opened.socket.send_with_u8_array(datagram);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.giving_up.abort();
    }
}

/// The attempt at the announced path, after the WebSocket could not be opened at the caller's path.
#[derive(Clone)]
struct Seeking {
    relay: Url,
    giving_up: AbortController,
    current: Weak<RefCell<Option<Opened>>>,
}

impl Seeking {
    async fn run(self, close: RelayClose, on_event: impl Fn(FromRelay) + Clone + 'static) {
        let announced = ask(&self.relay, &self.giving_up).await;
        let Some(current) = self.current.upgrade() else { return };
        let opened =
            announced.websocket_url(&self.relay).and_then(|url| Opened::new(&url, on_event.clone()).ok());
        if opened.is_none() {
            on_event(FromRelay::Closed(announced.refused.unwrap_or(close)));
        } else {
            *current.borrow_mut() = opened;
        }
    }
}

/// A WebSocket and its callbacks.
#[derive(Debug)]
struct Opened {
    socket: WebSocket,
    _on_open: Closure<dyn FnMut()>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_close: Closure<dyn FnMut(CloseEvent)>,
    _on_error: Closure<dyn FnMut(Event)>,
}

impl Opened {
    fn new(url: &str, on_event: impl Fn(FromRelay) + Clone + 'static) -> Result<Self, JsValue> {
        let socket = WebSocket::new_with_str(url, PROTOCOL)?;
        socket.set_binary_type(BinaryType::Arraybuffer);
        let notify = on_event.clone();
        let on_open = Closure::new(move || notify(FromRelay::Open));
        let notify = on_event.clone();
        let on_message = Closure::new(move |event: MessageEvent| {
            if let Ok(buffer) = event.data().dyn_into::<ArrayBuffer>() {
                notify(FromRelay::Datagram(Uint8Array::new(&buffer).to_vec()));
            } else if let Some(text) = event.data().as_string() {
                notify(FromRelay::Control(text));
            }
        });
        let end = ending(on_event);
        let at_error = end.clone();
        let on_close = Closure::new(move |event: CloseEvent| end(event.code(), event.reason()));
        // By the standard, a close event with more details follows an error event. It is missing if the content
        // security policy of the page forbids the URL.
        let on_error = Closure::new(move |_: Event| {
            let end = at_error.clone();
            after_task(move || end(LOST, String::new()));
        });
        socket.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        socket.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        Ok(Self {
            socket,
            _on_open: on_open,
            _on_message: on_message,
            _on_close: on_close,
            _on_error: on_error,
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        self.socket.set_onerror(None);
        let _ = self.socket.close();
    }
}

/// Returns a function that reports the first close of a WebSocket. Converts the code 0, which some runtimes report for
/// a WebSocket that never opened.
fn ending(on_event: impl Fn(FromRelay) + Clone + 'static) -> impl Fn(u16, String) + Clone + 'static {
    let has_ended = Rc::new(Cell::new(false));
    move |code, reason| {
        if !has_ended.replace(true) {
            let code = if code == 0 { LOST } else { code };
            on_event(FromRelay::Closed(RelayClose { code, reason }));
        }
    }
}
