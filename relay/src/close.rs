//! The reasons for closing a client's connection: the WebSocket close code and its text.

use rakwire_udp::printable;

use crate::addresses::TargetName;
use crate::flow::FlowEnd;

/// A control frame has at most 125 bytes, two of which hold the code (RFC 6455 section 5.5).
const TEXT_MAX: usize = 123;

/// The text of close code 4403 for banned addresses. rakwire's clients recognize it, to distinguish a ban from a
/// refused origin.
pub(crate) const BANNED: &str = "this address is banned";

/// The number of bytes of an unknown name that are echoed to the client. The limit leaves space for the rest of the
/// text.
const ECHO_MAX: usize = 40;

/// The reason why a client's connection was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CloseReason {
    MissingTarget,
    UnknownTarget {
        requested: String,
        offered: Vec<TargetName>,
    },
    TooManyClients {
        max: usize,
    },
    /// The UDP socket cannot be opened.
    NoSocket,
    Flow(FlowEnd),
    /// The client resumed its flow on another connection, so this one is closed.
    Resumed,
    TokenRefused(&'static str),
    AddressLimit(&'static str),
    /// The client may not connect, for any request.
    Forbidden(&'static str),
}

counted! {
    /// The kinds of closes that are counted.
    pub enum CloseKind {
        /// The request named no target (4400).
        MissingTarget,
        /// The request named a target that is not configured (4404).
        UnknownTarget,
        /// The relay had its maximum number of clients (1013).
        TooManyClients,
        /// The client had no valid token (4401).
        TokenRefused,
        /// The client's address or prefix had reached its maximum number of clients, or its rate of new clients (4429).
        AddressLimit,
        /// The origin of the client's page may not connect, or the client's address is banned (4403).
        Forbidden,
        /// The client sent text (1003).
        TextMessage,
        /// The client sent a message above the limit (1009).
        MessageTooBig,
        /// The client violated the protocol of its transport (1002).
        ProtocolViolation,
        /// No datagram arrived in either direction for the idle timeout (4408).
        Idle,
        /// The client answered no pings, or acknowledged no data (4408).
        Unresponsive,
        /// The relay was stopped (1001).
        ShuttingDown,
        /// The operator ended the flow (4410).
        Kicked,
        /// The UDP socket failed permanently (1011).
        UdpFailed,
        /// The network reported that nothing listens on the game server's port, and the client had requested to be
        /// closed in that case (4502).
        ServerUnreachable,
        /// The client began the handshake of a protocol other than the target's (4406).
        WrongProtocol,
        /// The client closed its connection.
        ClientClosed,
        /// The client's connection was lost without a close.
        ClientVanished,
        /// The client resumed its flow on another connection before this one was lost (4409).
        Resumed,
    }
}

impl CloseKind {
    /// Returns the WebSocket close code, or `None` if the client has already left.
    #[must_use]
    pub const fn code(self) -> Option<u16> {
        match self {
            Self::MissingTarget => Some(4400),
            Self::UnknownTarget => Some(4404),
            Self::TooManyClients => Some(1013),
            Self::TokenRefused => Some(4401),
            Self::AddressLimit => Some(4429),
            Self::Forbidden => Some(4403),
            Self::TextMessage => Some(1003),
            Self::MessageTooBig => Some(1009),
            Self::ProtocolViolation => Some(1002),
            Self::Idle | Self::Unresponsive => Some(4408),
            Self::ShuttingDown => Some(1001),
            Self::Kicked => Some(4410),
            Self::UdpFailed => Some(1011),
            Self::ServerUnreachable => Some(4502),
            Self::WrongProtocol => Some(4406),
            Self::Resumed => Some(4409),
            Self::ClientClosed | Self::ClientVanished => None,
        }
    }
}

impl CloseReason {
    /// Returns the kind of close under which this reason is counted.
    pub(crate) const fn kind(&self) -> CloseKind {
        match self {
            Self::MissingTarget => CloseKind::MissingTarget,
            Self::UnknownTarget { .. } => CloseKind::UnknownTarget,
            Self::TooManyClients { .. } => CloseKind::TooManyClients,
            Self::NoSocket => CloseKind::UdpFailed,
            Self::Flow(end) => kind_of(end),
            Self::Resumed => CloseKind::Resumed,
            Self::TokenRefused(_) => CloseKind::TokenRefused,
            Self::AddressLimit(_) => CloseKind::AddressLimit,
            Self::Forbidden(_) => CloseKind::Forbidden,
        }
    }

    /// Returns the reason as one of a few fixed texts, which contain nothing of the request.
    pub(crate) const fn class(&self) -> &'static str {
        match self {
            Self::TokenRefused(text) | Self::AddressLimit(text) | Self::Forbidden(text) => text,
            Self::MissingTarget => "no target given",
            Self::UnknownTarget { .. } => "unknown target",
            Self::TooManyClients { .. } => "this relay has reached its maximum of clients",
            Self::NoSocket => "the UDP socket to the game server cannot be opened",
            Self::Flow(_) | Self::Resumed => "closed before its first datagram",
        }
    }

    /// Returns the text of the close frame, at most [`TEXT_MAX`] bytes.
    pub(crate) fn text(&self) -> String {
        shorten(self.sentence(), TEXT_MAX)
    }

    fn sentence(&self) -> String {
        match self {
            Self::MissingTarget => "no target given; connect to /ws?target=NAME".to_owned(),
            Self::UnknownTarget { requested, offered } => {
                let requested = shorten(printable(requested), ECHO_MAX);
                let offered: Vec<&str> = offered.iter().map(TargetName::as_str).collect();
                format!("unknown target '{requested}'; this relay offers: {}", offered.join(", "))
            }
            Self::TooManyClients { max } => {
                format!("this relay has reached its maximum of {max} clients; try again later")
            }
            Self::NoSocket => "UDP socket to the game server failed".to_owned(),
            Self::Flow(end) => sentence_of(end),
            Self::Resumed => "resumed by another connection".to_owned(),
            Self::TokenRefused(text) | Self::AddressLimit(text) | Self::Forbidden(text) => (*text).to_owned(),
        }
    }
}

const fn kind_of(end: &FlowEnd) -> CloseKind {
    match end {
        FlowEnd::TextMessage => CloseKind::TextMessage,
        FlowEnd::MessageTooBig { .. } => CloseKind::MessageTooBig,
        FlowEnd::ProtocolViolation => CloseKind::ProtocolViolation,
        FlowEnd::Idle(_) => CloseKind::Idle,
        FlowEnd::Unresponsive(_) => CloseKind::Unresponsive,
        FlowEnd::ShuttingDown => CloseKind::ShuttingDown,
        FlowEnd::Kicked => CloseKind::Kicked,
        FlowEnd::Banned => CloseKind::Forbidden,
        FlowEnd::UdpFailed => CloseKind::UdpFailed,
        FlowEnd::ServerUnreachable => CloseKind::ServerUnreachable,
        FlowEnd::WrongProtocol(_) => CloseKind::WrongProtocol,
        FlowEnd::ClientClosed => CloseKind::ClientClosed,
        FlowEnd::ClientVanished => CloseKind::ClientVanished,
    }
}

fn sentence_of(end: &FlowEnd) -> String {
    match end {
        FlowEnd::TextMessage => "text message; only binary messages are relayed".to_owned(),
        FlowEnd::MessageTooBig { len, max } => {
            format!("message of {len} bytes; a datagram carries at most {max}")
        }
        FlowEnd::ProtocolViolation => "broken frame".to_owned(),
        FlowEnd::Idle(time) => format!("nothing sent or received for {time:?}"),
        FlowEnd::Unresponsive(time) => format!("no answer for {time:?}"),
        FlowEnd::ShuttingDown => "relay is shutting down".to_owned(),
        FlowEnd::Kicked => "ended by the operator of the relay".to_owned(),
        FlowEnd::Banned => BANNED.to_owned(),
        FlowEnd::UdpFailed => "UDP socket to the game server failed".to_owned(),
        FlowEnd::ServerUnreachable => {
            "the game server cannot be reached: nothing listens on its port".to_owned()
        }
        FlowEnd::WrongProtocol(kind) => format!("the game server of this target uses {kind}"),
        FlowEnd::ClientClosed => "closed by the client".to_owned(),
        FlowEnd::ClientVanished => "connection to the client lost".to_owned(),
    }
}

/// Truncates `text` to at most `max` bytes at a character boundary.
fn shorten(mut text: String, max: usize) -> String {
    const MARK: char = '…';
    if text.len() > max {
        let room = max.saturating_sub(MARK.len_utf8());
        let cut = (0..=room).rev().find(|&index| text.is_char_boundary(index));
        text.truncate(cut.unwrap_or(0));
        text.push(MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(requested: &str, offered: &[&str]) -> String {
        let offered = offered.iter().map(|name| name.parse().unwrap()).collect();
        CloseReason::UnknownTarget { requested: requested.to_owned(), offered }.text()
    }

    #[test]
    fn the_text_for_an_unknown_target_lists_the_targets() {
        assert_eq!(unknown("x", &["game"]), "unknown target 'x'; this relay offers: game");
        assert_eq!(unknown("x", &["a", "b"]), "unknown target 'x'; this relay offers: a, b");
    }

    #[test]
    fn the_text_for_an_unknown_target_fits_a_close_frame() {
        for character in ['a', 'é', '€', '😀', '\n', '\'', '\u{202e}'] {
            for count in 0..200 {
                let requested: String = std::iter::repeat_n(character, count).collect();
                let text =
                    unknown(&requested, &["game", "a-rather-long-name-of-a-second-server-that-does-not-fit"]);
                assert!(text.len() <= TEXT_MAX, "{} bytes for {count} of {character:?}", text.len());
                assert!(text.contains("this relay offers: game"), "{text}");
            }
        }
    }

    #[test]
    fn control_characters_of_a_client_are_not_echoed() {
        assert_eq!(
            unknown("a\n\u{1b}[2J", &["game"]),
            "unknown target 'a\\n\\u{1b}[2J'; this relay offers: game"
        );
        assert_eq!(
            unknown("\u{202e}it's", &["game"]),
            "unknown target '\\u{202e}it's'; this relay offers: game"
        );
    }

    #[test]
    fn truncation_respects_character_boundaries() {
        assert_eq!(shorten("123456".to_owned(), 6), "123456");
        assert_eq!(shorten("1234567".to_owned(), 6), "123…");
        assert_eq!(shorten("12€€".to_owned(), 7), "12…");
    }

    #[test]
    fn close_kinds_are_listed_in_the_order_of_their_values() {
        for (index, kind) in CloseKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }
}
