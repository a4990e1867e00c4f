//! The common methods of the classes of both protocols.

/// Defines the methods that both classes share, because `wasm_bindgen` does not support generic classes.
///
/// Methods that return an address return the address of a record, or 0 if there is no record. A record consists of four
/// 32-bit numbers and bytes; the last number is the length of the bytes. It is valid until the next call.
macro_rules! class {
    ($class:ident, $protocol:ty) => {
        #[wasm_bindgen]
        impl $class {
            /// Returns the address for 16 bytes and `length` bytes, for the next call that takes bytes; 0 if there is
            /// no memory.
            pub fn reserve(&mut self, length: u32) -> *const u8 {
                self.buffer.reserve(length as usize)
            }

            /// Starts to connect, with the password in the buffer. Returns 0, or the number of an error plus 1.
            pub fn connect(&mut self, length: u32, now: f64) -> u8 {
                self.client.set_password(self.buffer.read(length));
                match self.client.connect(instant(now)) {
                    Ok(()) => 0,
                    Err(cause) => connect_error(cause) + 1,
                }
            }

            /// Handles the received datagram in the buffer.
            pub fn handle(&mut self, length: u32, now: f64) {
                self.client.handle(instant(now), self.buffer.read(length));
            }

            /// Handles expired timeouts.
            #[wasm_bindgen(js_name = handleTimeout)]
            pub fn handle_timeout(&mut self, now: f64) {
                self.client.handle_timeout(instant(now));
            }

            /// Closes the connection once the reliable messages sent earlier are acknowledged.
            pub fn disconnect(&mut self, now: f64) {
                self.client.disconnect(instant(now));
            }

            /// Returns the address of the next datagram to send, or 0.
            #[wasm_bindgen(js_name = pollTransmit)]
            pub fn poll_transmit(&mut self, now: f64) -> *const u8 {
                let Some(datagram) = self.client.poll_transmit(instant(now)) else {
                    return core::ptr::null();
                };
                self.buffer.write([0; 3], datagram.len(), core::iter::once(datagram))
            }

            /// Returns the address of the next event, or 0.
            #[wasm_bindgen(js_name = pollEvent)]
            pub fn poll_event(&mut self) -> *const u8 {
                let Some(event) = self.client.poll_event() else { return core::ptr::null() };
                record::write(&event, &mut self.buffer)
            }

            /// Returns the address of the texts of reasons and errors.
            pub fn texts(&mut self) -> *const u8 {
                self.buffer.write_text(<$protocol>::TEXTS)
            }

            /// Returns the time of the next call of `handleTimeout` and `pollTransmit`, in milliseconds. A past time
            /// means now; infinity means never.
            #[wasm_bindgen(js_name = pollTimeout)]
            pub fn poll_timeout(&self) -> f64 {
                self.client.poll_timeout().map_or(f64::INFINITY, millis)
            }

            /// Returns true if the connection is closed and only queued events remain.
            #[wasm_bindgen(js_name = isOver)]
            pub fn is_over(&self) -> bool {
                self.client.is_over()
            }

            /// Queues the message in the buffer for sending. The delivery consists, from the lowest bit, of:
            ///
            /// - the reliability in three bits: 0 to 4 as on the wire, or 5 to 7 with a receipt;
            /// - the priority in two bits; 0 is the highest;
            /// - the channel.
            ///
            /// Returns the number of the message's receipt plus 1, 0 without a receipt, or -1 minus the number of an
            /// error.
            pub fn send(&mut self, length: u32, delivery: u32, now: f64) -> f64 {
                let Some(delivery) = <$protocol>::delivery(delivery) else {
                    return sent::<u32>(Err(INVALID_DELIVERY));
                };
                let result = self.client.send(instant(now), self.buffer.read(length), delivery);
                sent(result.map(|receipt| receipt.map(|receipt| receipt.0)).map_err(send_error))
            }

            /// Returns 1 if `send` would accept a message of this length now, 0 if it may later, or -1 minus the number
            /// of an error.
            #[wasm_bindgen(js_name = canSend)]
            pub fn can_send(&mut self, length: u32, delivery: u32) -> i32 {
                match <$protocol>::delivery(delivery) {
                    Some(delivery) => accepted(self.client.can_send(length as usize, delivery)),
                    None => -1 - i32::from(INVALID_DELIVERY),
                }
            }

            /// Returns the address of the counters as 64-bit numbers: the statistics of the connection, the bytes sent
            /// and received, and the number of drops for each reason.
            pub fn stats(&mut self) -> *const u8 {
                let longest = count(self.client.max_message_len().unwrap_or(0) as u64);
                let (connection, peer) = self.client.stats();
                let of_peer = [longest, count(peer.bytes_sent), count(peer.bytes_received)];
                let measures = <$protocol>::measure(&connection).into_iter().chain(of_peer);
                self.buffer.write_floats(measures.chain(peer.drops().map(|(_, times)| count(times))))
            }
        }
    };
}

pub(super) use class;
