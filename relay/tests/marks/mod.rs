//! Bytes by which the relay and game servers know something, in datagrams of those that must not write them, and what is done with them
//! by each transport and in each direction. The tests of the transports read this table.

/// The transports, in the order of the rows.
const TRANSPORTS: [&str; 4] = ["WebSocket", "WebTransport", "data channels", "front"];

/// What is done with a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Passes,
    /// It is dropped, and counted as a forged header.
    Forged,
    /// It is dropped, and counted as one with bytes that are reserved.
    Reserved,
    /// It is a control message, which the client may send.
    Control,
}

use Fate::{Control, Forged, Passes, Reserved};

/// A datagram with a mark.
pub(crate) struct Mark {
    pub(crate) name: &'static str,
    pub(crate) datagram: Vec<u8>,
    /// Whether the server reads headers of the PROXY protocol.
    pub(crate) reads_headers: bool,
    to_server: [Fate; 4],
    to_client: [Fate; 4],
}

impl Mark {
    /// What is done with it if the client sends it by this transport.
    pub(crate) fn to_server(&self, transport: &str) -> Fate {
        self.to_server[column(transport)]
    }

    /// What is done with it if the game server sends it.
    pub(crate) fn to_client(&self, transport: &str) -> Fate {
        self.to_client[column(transport)]
    }
}

fn column(transport: &str) -> usize {
    TRANSPORTS.iter().position(|known| *known == transport).unwrap()
}

/// The PROXY protocol, version 2: 192.0.2.1:1 to 127.0.0.1:1 by UDP.
const HEADER: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0C\xC0\0\x02\x01\x7F\0\0\x01\0\x01\0\x01";
const SIGNATURE: usize = 12;

/// A pong of RakNet with an advertisement.
const PONG: &[u8] = b"\x1C\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x05\0\xFF\xFF\0\xFE\xFE\xFE\xFE\xFD\xFD\xFD\xFD\x12\x34\x56\x78\0\x06MCPE;a";

/// Where its text begins, behind the length.
const PONG_TEXT: usize = 35;

const ALL_PASS: [Fate; 4] = [Passes; 4];
const ALL_FORGED: [Fate; 4] = [Forged; 4];
/// Datagrams carry the control messages of WebTransport alone; the others have text frames, a channel or none.
const RESERVED: [Fate; 4] = [Passes, Reserved, Passes, Passes];

/// Every mark.
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
