//! The messages of the control channel that are not those of every flow: what a client asks for, and why it is closed.

use serde::Deserialize;
use serde_json::json;
use thiserror::Error;

/// The longest first message of a client, in bytes. A token has a few hundred.
const LONGEST: usize = 8 * 1024;

/// What a client asks for in its first message, `{"type":"open","target":"game"}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct OpenRequest {
    #[serde(rename = "type")]
    kind: String,
    /// The name of the target.
    pub(crate) target: Option<String>,
    /// A signed token, if the relay demands one.
    pub(crate) token: Option<SecretText>,
    /// The secret of an earlier flow.
    pub(crate) resume: Option<SecretText>,
    /// If it is there, the flow opens with the first datagram.
    pub(crate) defer: Option<String>,
    /// What happens if the game server is unreachable.
    pub(crate) unreachable: Option<String>,
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct SecretText(pub(crate) String);

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretText")
    }
}

/// The first message of a client is not a request for a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the first control message has to be a JSON object with the type 'open'")]
pub(crate) struct NoRequest;

impl OpenRequest {
    /// Reads the first message. Members that are not known are ignored.
    pub(crate) fn read(message: &[u8]) -> Result<Self, NoRequest> {
        if message.len() > LONGEST {
            return Err(NoRequest);
        }
        let request: Self = serde_json::from_slice(message).map_err(|_| NoRequest)?;
        if request.kind == "open" { Ok(request) } else { Err(NoRequest) }
    }
}

/// The last message to a client, with the code and the text that a WebSocket would be closed with.
pub(crate) fn close_message(code: u16, reason: &str) -> String {
    json!({ "type": "close", "code": code, "reason": reason }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_target_and_may_have_a_token_and_a_secret() {
        let message = br#"{"type":"open","target":"game","token":"a.b.c","resume":"xyz","later":1}"#;
        let request = OpenRequest::read(message).unwrap();
        assert_eq!(request.target.as_deref(), Some("game"));
        assert_eq!((request.token.unwrap().0, request.resume.unwrap().0), ("a.b.c".into(), "xyz".into()));
        let request = OpenRequest::read(br#"{"type":"open"}"#).unwrap();
        assert_eq!((request.target, request.token, request.resume), (None, None, None));
    }

    #[test]
    fn other_messages_are_refused() {
        let long = format!(r#"{{"type":"open","target":"{}"}}"#, "a".repeat(LONGEST));
        let deep = "[".repeat(LONGEST);
        for message in
            ["", "{}", "[]", r#"{"type":"flow"}"#, r#"{"type":"open","target":1}"#, "\u{0}", &long, &deep]
        {
            assert_eq!(OpenRequest::read(message.as_bytes()), Err(NoRequest), "{message:.20}");
        }
        assert_eq!(OpenRequest::read(&[0xff; 9]), Err(NoRequest));
    }

    #[test]
    fn secrets_are_not_shown_and_texts_are_escaped() {
        let request = OpenRequest::read(br#"{"type":"open","token":"hidden","resume":"hidden"}"#).unwrap();
        assert!(!format!("{request:?}").contains("hidden"));
        let message: serde_json::Value = serde_json::from_str(&close_message(4404, "no '\"'")).unwrap();
        assert_eq!(message, serde_json::json!({ "type": "close", "code": 4404, "reason": "no '\"'" }));
    }
}
