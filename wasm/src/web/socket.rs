//! The WebSocket to the relay and its callbacks.

use js_sys::{ArrayBuffer, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{BinaryType, CloseEvent, MessageEvent, WebSocket};

use super::error::RelayClose;

/// The limit for bytes in the buffer of the WebSocket, where datagrams only get older.
const MAX_BUFFERED: u32 = 64 * 1024;

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
        let on_close = Closure::new(move |event: CloseEvent| {
            on_event(FromRelay::Closed(RelayClose { code: event.code(), reason: event.reason() }));
        });
        socket.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        Ok(Self { socket, _on_open: on_open, _on_message: on_message, _on_close: on_close })
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
        let _ = self.socket.close();
    }
}
