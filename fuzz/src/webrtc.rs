//! The part of the relay's data channels that handles datagrams from arbitrary sources.

#[path = "../../relay/src/webrtc/counters.rs"]
#[allow(dead_code, reason = "the relay uses the rest")]
mod counters;

#[path = "../../relay/src/webrtc/stun.rs"]
mod stun;

#[path = "../../relay/src/webrtc/validated.rs"]
mod validated;

#[path = "../../relay/src/webrtc/endpoint.rs"]
mod endpoint;

pub(crate) use counters::{WebRtcCounters, WebRtcDropReason};
pub(crate) use endpoint::{DatagramEvent, Endpoint};
pub(crate) use stun::{DatagramKind, Fingerprint};
