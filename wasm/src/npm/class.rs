//! What the classes of both protocols have in common.

/// Defines the methods of a class that are the same for both protocols; `$names` are the words for what happens, and
/// `$measure` makes numbers of the statistics. `wasm_bindgen` takes no generic class.
macro_rules! class {
    ($class:ident, $names:expr, $measure:expr) => {
        #[wasm_bindgen]
        impl $class {
            /// Begins to connect.
            ///
            /// # Errors
            /// `already-connected` when it was called before, `bad-option` when the password is too long, `no-memory` when
            /// the memory is too small for it.
            pub fn connect(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64) -> Result<(), JsValue> {
                self.client.connect(instant(now_ms)).map_err(connect_error)
            }

            /// Takes a datagram that arrived.
            pub fn handle(&mut self, datagram: &[u8], #[wasm_bindgen(js_name = nowMs)] now_ms: f64) {
                self.client.handle(instant(now_ms), datagram);
            }

            /// Does what is due.
            #[wasm_bindgen(js_name = handleTimeout)]
            pub fn handle_timeout(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64) {
                self.client.handle_timeout(instant(now_ms));
            }

            /// Ends the connection once what was sent reliably has arrived.
            pub fn disconnect(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64) {
                self.client.disconnect(instant(now_ms));
            }

            /// The next datagram to send, if any.
            #[wasm_bindgen(js_name = pollTransmit)]
            pub fn poll_transmit(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64) -> Option<Bytes> {
                self.client.poll_transmit(instant(now_ms)).map(Bytes::copy)
            }

            /// What happened next, if anything.
            #[wasm_bindgen(js_name = pollEvent)]
            pub fn poll_event(&mut self) -> Option<PeerEvent> {
                PeerEvent::describe(&self.client.poll_event()?, &$names)
            }

            /// When `handleTimeout` and `pollTransmit` want to be called next, in milliseconds; a time gone by means now.
            #[wasm_bindgen(js_name = pollTimeout)]
            pub fn poll_timeout(&self) -> Option<f64> {
                self.client.poll_timeout().map(millis)
            }

            /// Whether the connection is over, so that no more can come than the events that wait already.
            #[wasm_bindgen(getter, js_name = isOver)]
            pub fn is_over(&self) -> bool {
                self.client.is_over()
            }

            /// The counters.
            pub fn stats(&self) -> PeerStats {
                let (connection, peer) = self.client.stats();
                PeerStats::describe(&$measure(&connection), peer)
            }
        }
    };
}

pub(super) use class;
