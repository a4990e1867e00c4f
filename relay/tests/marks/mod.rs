//! Marks are bytes that the relay or game servers interpret. The table contains datagrams whose senders are not allowed
//! to write their mark. It has the outcome of each datagram by transport and direction. The tests of all transports use
//! the table.

/// The transports, in the order of the columns of each row.
const TRANSPORTS: [&str; 4] = ["WebSocket", "WebTransport", "data channels", "front"];

/// The outcome of a datagram with a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MarkOutcome {
    Passes,
    /// The datagram is dropped, and counted as a forged header.
    Forged,
    /// The datagram is dropped, and counted as reserved bytes.
    Reserved,
    /// The datagram is a control message, which the client may send.
    Control,
}

use MarkOutcome::{Control, Forged, Passes, Reserved};

/// A datagram with a mark.
pub(crate) struct Mark {
    pub(crate) name: &'static str,
    pub(crate) datagram: Vec<u8>,
    /// True if the server reads PROXY protocol headers.
    pub(crate) reads_headers: bool,
    to_server: [MarkOutcome; 4],
    to_client: [MarkOutcome; 4],
}

impl Mark {
    /// Returns the outcome if the client sends the datagram on this transport.
    pub(crate) fn to_server(&self, transport: &str) -> MarkOutcome {
        self.to_server[column(transport)]
    }

    /// Returns the outcome if the game server sends the datagram to a client on this transport.
    pub(crate) fn to_client(&self, transport: &str) -> MarkOutcome {
        self.to_client[column(transport)]
    }
}

fn column(transport: &str) -> usize {
    TRANSPORTS.iter().position(|known| *known == transport).unwrap()
}

/// A header of PROXY protocol version 2: 192.0.2.1:1 to 127.0.0.1:1 over UDP.
const HEADER: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0C\xC0\0\x02\x01\x7F\0\0\x01\0\x01\0\x01";
const SIGNATURE: usize = 12;

/// A pong of RakNet with an advertisement.
const PONG: &[u8] = b"\x1C\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x05\0\xFF\xFF\0\xFE\xFE\xFE\xFE\xFD\xFD\xFD\xFD\x12\x34\x56\x78\0\x06MCPE;a";

/// The position of the pong's text, after its length.
const PONG_TEXT: usize = 35;

const ALL_PASS: [MarkOutcome; 4] = [Passes; 4];
const ALL_FORGED: [MarkOutcome; 4] = [Forged; 4];
/// Only WebTransport carries control messages as datagrams. The others use text frames, a separate channel, or none.
const RESERVED: [MarkOutcome; 4] = [Passes, Reserved, Passes, Passes];

/// Returns every mark.
pub(crate) fn marks() -> Vec<Mark> {
    let mark = |name, datagram: &[u8], reads_headers, to_server, to_client| Mark {
        name,
        datagram: datagram.to_vec(),
        reads_headers,
        to_server,
        to_client,
    };
    let header = [HEADER, b"payload"].concat();
    let unframed = [&PONG[..PONG_TEXT - 2], &PONG[PONG_TEXT..]].concat();
    let request = [Passes, Control, Passes, Passes];
    vec![
        mark("a header that names another address", &header, true, ALL_FORGED, ALL_PASS),
        mark("a header without payload", HEADER, true, ALL_FORGED, ALL_PASS),
        mark("the signature of a header", &HEADER[..SIGNATURE], true, ALL_FORGED, ALL_PASS),
        mark("a part of the signature", &HEADER[..SIGNATURE - 1], true, ALL_PASS, ALL_PASS),
        mark("a header behind its first byte", &header[1..], true, ALL_PASS, ALL_PASS),
        mark("a header for a server that reads none", &header, false, ALL_PASS, ALL_PASS),
        mark("a flow", br#"rakwire:{"type":"flow","resume":"evil"}"#, true, ALL_PASS, RESERVED),
        mark("a request for the flow", br#"rakwire:{"type":"flow"}"#, true, request, RESERVED),
        mark("a drain", br#"rakwire:{"type":"draining","left_ms":1}"#, true, ALL_PASS, RESERVED),
        mark("a close", br#"rakwire:{"type":"close","code":4403}"#, true, ALL_PASS, RESERVED),
        mark("a redirect", br#"rakwire:{"type":"redirect","to":"wss://evil"}"#, true, ALL_PASS, RESERVED),
        mark("the mark of control messages", b"rakwire:", true, ALL_PASS, RESERVED),
        mark("a text without a mark", br#"{"type":"close","code":4403}"#, true, ALL_PASS, ALL_PASS),
        mark("a request without a mark", br#"{"type":"flow"}"#, true, ALL_PASS, ALL_PASS),
        mark("a pong", PONG, true, ALL_PASS, ALL_PASS),
        mark("a pong without the length of its text", &unframed, true, ALL_PASS, ALL_PASS),
    ]
}
