//! Data channels of WebRTC without signalling, without IO (`docs/webrtc.md`).
//!
//! A page that knows the fingerprint of the relay's certificate, its address and its port knows all that a session
//! description says, and makes both descriptions itself. `Endpoint` answers its connectivity checks, keeps nothing of it before it has
//! answered one of the relay's, and tells which datagrams belong to which `Session`. A session is DTLS, within it SCTP, and within
//! that two data channels: one for control messages and one for datagrams.

mod certificate;
mod counters;
mod endpoint;
mod fingerprint;
mod kind;
mod request;
mod session;
mod stun;
mod validated;

pub(crate) use self::certificate::{Certificate, CertificateError};
pub use self::counters::{WebRtcCounters, WebRtcDropReason, WebRtcSnapshot};
pub(crate) use self::endpoint::{DatagramEvent, Endpoint};
pub use self::fingerprint::Fingerprint;
pub(crate) use self::kind::DatagramKind;
pub(crate) use self::request::{NoRequest, OpenRequest, close_message};
pub(crate) use self::session::{
    ACKNOWLEDGEMENT_TIMEOUT, HANDSHAKE_TIMEOUT, Session, SessionEvent, SessionSettings,
};

#[cfg(test)]
pub(crate) use self::session::tests::{Version, client};
#[cfg(test)]
pub(crate) use self::stun::Password;
#[cfg(test)]
pub(crate) use self::stun::tests::{check, page_answer, username};
pub(crate) use self::validated::ChallengeKey;
