//! The control messages to clients, and the secret by which a flow is resumed.

use std::fmt;
use std::fmt::Write;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use super::counters::{Direction, DropReason};

/// The WebSocket subprotocol of clients that want control messages.
pub const FLOW_PROTOCOL: &str = "rakwire.relay.1";

/// The one control message that a client sends: it asks for the message `flow`.
pub const FLOW_REQUEST: &str = r#"{"type":"flow"}"#;

/// What a control message begins with on a transport that has nothing but datagrams.
pub const CONTROL_PREFIX: &[u8] = b"rakwire:";

/// What a client has to know to resume its flow: 128 random bits. Debug output does not show them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Secret([u8; Self::LEN]);

impl Secret {
    const LEN: usize = 16;

    /// A secret of these bytes, which nobody must be able to guess.
    #[must_use]
    pub const fn new(random: [u8; 16]) -> Self {
        Self(random)
    }
}

/// 22 characters of base64url without padding.
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl FromStr for Secret {
    type Err = SecretSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; Self::LEN];
        // The buffer has no room for what follows a longer text.
        match URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
            Ok(Self::LEN) => Ok(Self(bytes)),
            Ok(_) | Err(_) => Err(SecretSyntaxError),
        }
    }
}

/// A text that is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a secret of a flow has 22 characters of base64url")]
pub struct SecretSyntaxError;

/// The first message to a client: its flow, and how to resume it.
pub(super) fn flow_message(
    secret: &Secret,
    resume_within: Duration,
    resumed: bool,
    max_datagram: usize,
) -> String {
    let within = resume_within.as_millis();
    // No part of it needs to be escaped.
    format!(
        r#"{{"type":"flow","resume":"{secret}","resume_within_ms":{within},"resumed":{resumed},"max_datagram":{max_datagram}}}"#
    )
}

/// The relay is about to end, and with it the flow after this time.
pub(super) fn draining_message(left: Duration) -> String {
    format!(r#"{{"type":"draining","left_ms":{}}}"#, left.as_millis())
}

/// What was dropped since the start of the flow, by direction and reason; only reasons that occurred.
pub(super) fn drops_message(count: impl Fn(DropReason) -> u64) -> String {
    let mut text = r#"{"type":"drops""#.to_owned();
    for (name, direction) in [("to_client", Direction::ToClient), ("to_server", Direction::ToServer)] {
        let reasons = DropReason::ALL.into_iter().filter(|reason| reason.direction() == direction);
        let counts = reasons.map(|reason| (reason.name(), count(reason))).filter(|(_, count)| *count > 0);
        let counts: Vec<String> = counts.map(|(name, count)| format!(r#""{name}":{count}"#)).collect();
        // Writing to a string does not fail.
        let _ = write!(text, r#","{name}":{{{}}}"#, counts.join(","));
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_it_is_written() {
        let secret = Secret::new([0xfb; 16]);
        assert_eq!(secret.to_string(), "-_v7-_v7-_v7-_v7-_v7-w");
        assert_eq!(secret.to_string().parse(), Ok(secret));
        for text in ["", "AA", "-_v7-_v7-_v7-_v7-_v7-", "-_v7-_v7-_v7-_v7-_v7-w==", "+/v7-_v7-_v7-_v7-_v7-w"]
        {
            assert_eq!(text.parse::<Secret>(), Err(SecretSyntaxError), "{text}");
        }
        assert_eq!("A".repeat(23).parse::<Secret>(), Err(SecretSyntaxError));
        assert_eq!("A".repeat(10_000).parse::<Secret>(), Err(SecretSyntaxError));
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn messages_have_the_documented_form() {
        assert_eq!(
            flow_message(&Secret::new([0; 16]), Duration::from_secs(30), false, 1472),
            r#"{"type":"flow","resume":"AAAAAAAAAAAAAAAAAAAAAA","resume_within_ms":30000,"resumed":false,"max_datagram":1472}"#
        );
        let counts =
            [(DropReason::ClientTooOld, 12), (DropReason::ClientQueueFull, 3), (DropReason::RateLimited, 1)];
        let count = |reason| counts.iter().find(|(found, _)| *found == reason).map_or(0, |(_, count)| *count);
        assert_eq!(
            drops_message(count),
            r#"{"type":"drops","to_client":{"queue_full":3,"too_old":12},"to_server":{"rate_limited":1}}"#
        );
        assert_eq!(draining_message(Duration::from_millis(4_999)), r#"{"type":"draining","left_ms":4999}"#);
        assert_eq!(drops_message(|_| 0), r#"{"type":"drops","to_client":{},"to_server":{}}"#);
    }
}
