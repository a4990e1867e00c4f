//! The class `GamePeer`.

use rakwire::game_protocol::{ConnectError, ConnectFailure, DisconnectReason, Event, Reliability, SendError};
use wasm_bindgen::prelude::*;

use super::bytes::Bytes;
use super::error::error;
use super::event::PeerEvent;
use super::panic::report_panics;
use super::stats::PeerStats;
use crate::client::{instant, millis};
use crate::game_client::GameClient;

/// The numbers by which JavaScript knows the reliabilities of both protocols.
const UNRELIABLE: u8 = 0;
const RELIABLE: u8 = 2;

/// One connection of the Game Protocol to one server, with the calls of `Peer`.
#[wasm_bindgen]
#[derive(Debug)]
pub struct GamePeer {
    client: GameClient,
}

#[wasm_bindgen]
impl GamePeer {
    /// A peer that is not connected, from 32 bytes of `crypto.getRandomValues`.
    ///
    /// # Errors
    /// `bad-entropy` when there are not 32 bytes.
    #[wasm_bindgen(constructor)]
    pub fn new(entropy: &[u8]) -> Result<Self, JsValue> {
        report_panics();
        let entropy = entropy.try_into().map_err(|_| error("bad-entropy", "32 random bytes are needed"))?;
        Ok(Self { client: GameClient::new(entropy) })
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// `already-connected` when it was called before.
    pub fn connect(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64) -> Result<(), JsValue> {
        let connected = self.client.connect(instant(now_ms));
        connected.map_err(|cause: ConnectError| error("already-connected", &cause.to_string()))
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

    /// Takes a message for sending: reliability 0 (unreliable) or 2 (reliable); channel and priority mean nothing here.
    ///
    /// # Errors
    /// An `Error` whose `code` says why nothing was taken.
    pub fn send(
        &mut self,
        message: &[u8],
        reliability: u8,
        _channel: u8,
        _priority: u8,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
    ) -> Result<(), JsValue> {
        let reliability = match reliability {
            UNRELIABLE => Reliability::Unreliable,
            RELIABLE => Reliability::Reliable,
            _ => {
                return Err(error(
                    "bad-reliability",
                    "the Game Protocol has unreliable and reliable messages",
                ));
            }
        };
        self.client.send(instant(now_ms), message, reliability).map_err(send_error)
    }

    /// Ends the connection once what was sent reliably has arrived.
    pub fn disconnect(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64) {
        self.client.disconnect(instant(now_ms));
    }

    /// The next datagram to send, if any.
    #[wasm_bindgen(js_name = pollTransmit)]
    pub fn poll_transmit(&mut self, #[wasm_bindgen(js_name = nowMs)] now_ms: f64) -> Option<Bytes> {
        let datagram = self.client.poll_transmit(instant(now_ms))?;
        Some(Bytes::gather(datagram.len(), core::iter::once(datagram)))
    }

    /// What happened next, if anything.
    #[wasm_bindgen(js_name = pollEvent)]
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        describe(&self.client.poll_event()?)
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
        PeerStats::describe_game(&connection, peer)
    }
}

fn describe(event: &Event<'_>) -> Option<PeerEvent> {
    Some(match event {
        Event::Connected { .. } => PeerEvent::of("connected"),
        Event::ConnectFailed { reason, .. } => {
            let code = match reason {
                ConnectFailure::NoAnswer => "no-answer",
                ConnectFailure::Cancelled => "cancelled",
                _ => "failed",
            };
            PeerEvent::ending("failed", code, &reason.to_string())
        }
        Event::Disconnected { reason, .. } => {
            let code = match reason {
                DisconnectReason::Local => "local",
                DisconnectReason::Remote => "remote",
                DisconnectReason::Lost => "lost",
                DisconnectReason::MessageTooLarge => "message-too-large",
                DisconnectReason::MessageUnfinished => "message-unfinished",
                _ => "ended",
            };
            PeerEvent::ending("ended", code, &reason.to_string())
        }
        Event::Message { reliability, message, .. } => {
            let number = if reliability.is_reliable() { RELIABLE } else { UNRELIABLE };
            PeerEvent::of_message(Bytes::gather(message.len(), message.chunks()), number, 0)
        }
        _ => return None,
    })
}

fn send_error(cause: SendError) -> JsValue {
    let code = match cause {
        SendError::NotConnected => "not-connected",
        SendError::Empty => "empty-message",
        SendError::TooLong | SendError::NeverFits => "too-long",
        SendError::QuotaExceeded | SendError::PoolExhausted => "queue-full",
        _ => "not-sent",
    };
    error(code, &cause.to_string())
}
