//! Events as plain JavaScript objects.

use rakwire::raknet::{
    ConnectFailure, Delivery, Direction, DisconnectReason, Event, Message, Outcome, Progress, Refusal,
};
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

impl PeerEvent {
    /// The object for an event; nothing for one that this peer cannot have.
    pub(super) fn describe(event: &Event<'_>) -> Option<Self> {
        Some(match event {
            Event::Connected { .. } => Self::of("connected"),
            Event::ConnectFailed { reason, .. } => {
                Self::ending("failed", failure_code(*reason), &reason.to_string())
            }
            Event::Disconnected { reason, .. } => {
                Self::ending("ended", ending_code(*reason), &reason.to_string())
            }
            Event::Message { delivery, message, .. } => Self::message(*delivery, message),
            Event::Receipt { receipt, outcome, .. } => Self::receipt(receipt.0, *outcome),
            Event::Progress { progress, .. } => Self::progress(*progress),
            Event::Pong { .. } | _ => return None,
        })
    }

    pub(super) fn of(kind: &str) -> Self {
        let event = Self::new();
        event.set_kind(kind);
        event
    }

    pub(super) fn ending(kind: &str, code: &str, words: &str) -> Self {
        let event = Self::of(kind);
        event.set_code(code);
        event.set_words(words);
        event
    }

    fn message(delivery: Delivery, message: &Message<'_>) -> Self {
        let bytes = Bytes::gather(message.len(), message.chunks());
        Self::of_message(bytes, delivery.reliability as u8, delivery.channel.number())
    }

    pub(super) fn of_message(bytes: Bytes, reliability: u8, channel: u8) -> Self {
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

fn failure_code(reason: ConnectFailure) -> &'static str {
    match reason {
        ConnectFailure::NoAnswer => "no-answer",
        ConnectFailure::Refused(refusal) => refusal_code(refusal),
        ConnectFailure::IncompatibleProtocol { .. } => "incompatible-protocol",
        ConnectFailure::SecurityRequired => "security-required",
        ConnectFailure::InvalidPassword => "invalid-password",
        ConnectFailure::Closed => "closed-by-server",
        ConnectFailure::Cancelled => "cancelled",
        _ => "failed",
    }
}

fn refusal_code(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::AttemptFailed => "failed",
        Refusal::AlreadyConnected => "already-connected",
        Refusal::NoFreeIncomingConnections => "server-full",
        Refusal::Banned => "banned",
        Refusal::RecentlyConnected => "recently-connected",
    }
}

fn ending_code(reason: DisconnectReason) -> &'static str {
    match reason {
        DisconnectReason::Local => "local",
        DisconnectReason::Remote => "remote",
        DisconnectReason::Lost => "lost",
        DisconnectReason::MessageTooLarge => "message-too-large",
        DisconnectReason::ReceiveMemory => "receive-memory",
        _ => "ended",
    }
}
