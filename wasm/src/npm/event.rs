//! Events as plain JavaScript objects.

use core::fmt::Display;

use rakwire::endpoint::{Direction, Event, Outcome, Progress, Protocol};
use wasm_bindgen::prelude::*;

use super::bytes::Bytes;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export type PeerEvent =
  | { kind: "connected" }
  | { kind: "failed"; code: string; words: string }
  | { kind: "ended"; code: string; words: string }
  | { kind: "message"; bytes: Uint8Array; reliability: number; channel: number }
  | { kind: "receipt"; receipt: number; outcome: "acknowledged" | "lost" }
  | { kind: "progress"; direction: "sending" | "receiving"; message: number; done: number; parts: number };
"#;

#[wasm_bindgen]
extern "C" {
    /// What happened, as a plain object.
    #[wasm_bindgen(js_name = Object, typescript_type = "PeerEvent")]
    #[derive(Debug)]
    pub type PeerEvent;

    #[wasm_bindgen(constructor, js_class = "Object")]
    fn new() -> PeerEvent;

    #[wasm_bindgen(method, setter, structural)]
    fn set_kind(this: &PeerEvent, kind: &str);
    #[wasm_bindgen(method, setter, structural)]
    fn set_code(this: &PeerEvent, code: &str);
    #[wasm_bindgen(method, setter, structural)]
    fn set_words(this: &PeerEvent, words: &str);
    #[wasm_bindgen(method, setter, structural)]
    fn set_bytes(this: &PeerEvent, bytes: Bytes);
    #[wasm_bindgen(method, setter, structural)]
    fn set_reliability(this: &PeerEvent, reliability: u8);
    #[wasm_bindgen(method, setter, structural)]
    fn set_channel(this: &PeerEvent, channel: u8);
    #[wasm_bindgen(method, setter, structural)]
    fn set_receipt(this: &PeerEvent, receipt: u32);
    #[wasm_bindgen(method, setter, structural)]
    fn set_outcome(this: &PeerEvent, outcome: &str);
    #[wasm_bindgen(method, setter, structural)]
    fn set_direction(this: &PeerEvent, direction: &str);
    #[wasm_bindgen(method, setter, structural)]
    fn set_message(this: &PeerEvent, message: u16);
    #[wasm_bindgen(method, setter, structural)]
    fn set_done(this: &PeerEvent, done: u32);
    #[wasm_bindgen(method, setter, structural)]
    fn set_parts(this: &PeerEvent, parts: u32);
}

/// The names and numbers by which JavaScript knows what differs between the protocols.
pub(super) struct Names<P: Protocol> {
    /// The code of a connection that could not be opened.
    pub(super) failure: fn(P::ConnectFailure) -> &'static str,
    /// The code of a connection that ended.
    pub(super) end: fn(P::DisconnectReason) -> &'static str,
    /// The numbers of a reliability and a channel.
    pub(super) delivery: fn(P::Delivery) -> (u8, u8),
}

impl PeerEvent {
    /// The object for an event; nothing for one that this peer cannot have.
    pub(super) fn describe<P: Protocol>(event: &Event<'_, P>, names: &Names<P>) -> Option<Self> {
        Some(match event {
            Event::Connected { .. } => Self::of("connected"),
            Event::ConnectFailed { reason, .. } => Self::end("failed", (names.failure)(*reason), reason),
            Event::Disconnected { reason, .. } => Self::end("ended", (names.end)(*reason), reason),
            Event::Message { delivery, message, .. } => {
                let bytes = Bytes::gather(message.len(), message.chunks());
                Self::message(bytes, (names.delivery)(*delivery))
            }
            Event::Receipt { receipt, outcome, .. } => Self::receipt(receipt.0, *outcome),
            Event::Progress { progress, .. } => Self::progress(*progress),
            Event::Pong { .. } | _ => return None,
        })
    }

    fn of(kind: &str) -> Self {
        let event = Self::new();
        event.set_kind(kind);
        event
    }

    fn end(kind: &str, code: &str, reason: &dyn Display) -> Self {
        let event = Self::of(kind);
        event.set_code(code);
        event.set_words(&reason.to_string());
        event
    }

    fn message(bytes: Bytes, (reliability, channel): (u8, u8)) -> Self {
        let event = Self::of("message");
        event.set_bytes(bytes);
        event.set_reliability(reliability);
        event.set_channel(channel);
        event
    }

    fn receipt(number: u32, outcome: Outcome) -> Self {
        let event = Self::of("receipt");
        event.set_receipt(number);
        event.set_outcome(match outcome {
            Outcome::Acknowledged => "acknowledged",
            Outcome::Lost => "lost",
        });
        event
    }

    fn progress(progress: Progress) -> Self {
        let event = Self::of("progress");
        event.set_direction(match progress.direction {
            Direction::Sending => "sending",
            Direction::Receiving => "receiving",
        });
        event.set_message(progress.message);
        event.set_done(progress.done);
        event.set_parts(progress.parts);
        event
    }
}
