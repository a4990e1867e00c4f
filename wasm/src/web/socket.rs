//! The WebSocket to the relay and its callbacks.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::{ArrayBuffer, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{BinaryType, CloseEvent, Event, MessageEvent, WebSocket};

use super::browser::after_task;
use super::error::RelayClose;

/// The limit for bytes in the buffer of the WebSocket, where datagrams only get older.
const MAX_BUFFERED: u32 = 64 * 1024;

/// The close code of a connection that was lost (RFC 6455 section 7.4.1).
const LOST: u16 = 1006;

/// An event of the WebSocket.
pub(super) enum FromRelay {
    Open,
    Datagram(Vec<u8>),
    Closed(RelayClose),
}

/// An open or opening WebSocket. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Socket {
    socket: WebSocket,
    _on_open: Closure<dyn FnMut()>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_close: Closure<dyn FnMut(CloseEvent)>,
    _on_error: Closure<dyn FnMut(Event)>,
}

impl Socket {
    pub(super) fn open(url: &str, on_event: impl Fn(FromRelay) + Clone + 'static) -> Result<Self, JsValue> {
        let socket = WebSocket::new(url)?;
        socket.set_binary_type(BinaryType::Arraybuffer);
        let notify = on_event.clone();
        let on_open = Closure::new(move || notify(FromRelay::Open));
        let notify = on_event.clone();
        let on_message = Closure::new(move |event: MessageEvent| {
            if let Ok(buffer) = event.data().dyn_into::<ArrayBuffer>() {
                notify(FromRelay::Datagram(Uint8Array::new(&buffer).to_vec()));
            }
        });
        let end = ending(on_event);
        let at_error = end.clone();
        let on_close = Closure::new(move |event: CloseEvent| end(event.code(), event.reason()));
        // A close event, which has more details, follows by the standard, but not where the policy of the page forbids the URL.
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

    pub(super) fn is_open(&self) -> bool {
        self.socket.ready_state() == WebSocket::OPEN
    }

    pub(super) fn has_room(&self) -> bool {
        self.socket.buffered_amount() < MAX_BUFFERED
    }

    /// Sends a datagram. A closing socket drops it, like a loss.
    pub(super) fn send(&self, datagram: &[u8]) {
        let _ = self.socket.send_with_u8_array(datagram);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        self.socket.set_onerror(None);
        let _ = self.socket.close();
    }
}

/// Reports the first end of a WebSocket. Some runtimes have the code 0 for one that was never open.
fn ending(on_event: impl Fn(FromRelay) + Clone + 'static) -> impl Fn(u16, String) + Clone + 'static {
    let has_ended = Rc::new(Cell::new(false));
    move |code, reason| {
        if !has_ended.replace(true) {
            let code = if code == 0 { LOST } else { code };
            on_event(FromRelay::Closed(RelayClose { code, reason }));
        }
    }
}
