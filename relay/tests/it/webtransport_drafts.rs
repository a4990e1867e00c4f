//! Clients that follow different drafts of WebTransport over HTTP/3.

use quinn::ConnectionError;
use web_transport_proto::{Setting, Settings, VarInt};

use crate::support::{Running, Server, eventually};
use crate::webtransport::{Session, config, end_of};

/// The numeric settings of a client, and the protocol token of its request.
struct Dialect {
    name: &'static str,
    settings: &'static [(u32, u32)],
    token: &'static str,
}

const DIALECTS: [Dialect; 6] = [
    Dialect {
        name: "Chromium 156",
        settings: &[(0x1, 65_536), (0x6, 16_384), (0x7, 100), (0x33, 1), (0xff_d277, 1), (0x2b60_3742, 1)],
        token: "webtransport",
    },
    Dialect {
        name: "Firefox 153",
        settings: &[(0x1, 65_536), (0x7, 20), (0x8, 1), (0x33, 1), (0xff_d277, 1), (0x2b60_3742, 1)],
        token: "webtransport",
    },
    Dialect { name: "draft 7", settings: &[(0x33, 1), (0xc671_706a, 1)], token: "webtransport" },
    Dialect {
        name: "drafts 13 and 14, which Safari 26 follows",
        settings: &[(0x33, 1), (0x14e9_cd29, 1)],
        token: "webtransport",
    },
    Dialect { name: "drafts 15 and 16", settings: &[(0x33, 1), (0x2c7c_f000, 1)], token: "webtransport-h3" },
    Dialect {
        name: "a client without a setting of its own",
        settings: &[(0x33, 1)],
        token: "webtransport-h3",
    },
];

fn settings(pairs: &[(u32, u32)]) -> Settings {
    let mut settings = Settings::default();
    for (id, value) in pairs {
        settings.insert(Setting(VarInt::from_u32(*id)), VarInt::from_u32(*value));
    }
    settings
}

/// Encodes a request for a session with the target `game`, without Huffman coding. Method and scheme are in QPACK's
/// static table (RFC 9204).
fn request(host: &str, token: &str) -> Vec<u8> {
    fn string(text: &str) -> Vec<u8> {
        [&[u8::try_from(text.len()).expect("the text is short")], text.as_bytes()].concat()
    }
    let fields = [
        b"\x00\x00\xcf\xd7".to_vec(),
        [b"\x50", &string(host)[..]].concat(),
        [b"\x51", &string("/wt?target=game")[..]].concat(),
        [b"\x27\x02:protocol", &string(token)[..]].concat(),
    ]
    .concat();
    // A HEADERS frame with a two-byte length.
    let [high, low] = u16::try_from(fields.len()).expect("the text is short").to_be_bytes();
    [&[0x01, 0x40 | high, low], &fields[..]].concat()
}

#[tokio::test]
async fn webtransport_clients_of_every_draft_exchange_datagrams() {
    let relay = Running::start(config(Server::echo().await)).await;
    for Dialect { name, settings: pairs, token } in DIALECTS {
        let session = Session::open_with(relay.address, &settings(pairs), |host| request(host, token)).await;
        let session = session.unwrap_or_else(|status| panic!("{name}: {status}"));
        session.echoes().await;
    }
    assert_eq!(relay.snapshot().handshakes_failed, 0);
}

/// Datagrams may be sent only to peers that have announced support (RFC 9297).
#[tokio::test]
async fn clients_without_datagram_support_are_refused() {
    let relay = Running::start(config(Server::echo().await)).await;
    // The relay closes the connection without a response.
    let end = end_of(relay.address, &settings(&[(0x2c7c_f000, 1)])).await;
    let ConnectionError::ApplicationClosed(close) = end else { panic!("{end}") };
    assert_eq!((close.error_code.into_inner(), &close.reason[..]), (0, &[][..]));
    eventually("the failed handshake is counted", || relay.snapshot().handshakes_failed == 1).await;
}

/// Streams may arrive in any order, with and without bytes, of known and unknown kinds (RFC 9114 section 6.2).
#[tokio::test]
async fn the_control_stream_may_arrive_after_others() {
    const QPACK_ENCODER: &[u8] = &[0x02];
    const QPACK_DECODER: &[u8] = &[0x03];
    const RESERVED: &[u8] = &[0x21, 7, 7, 7];

    let relay = Running::start(config(Server::echo().await)).await;
    for streams in
        [&[QPACK_ENCODER][..], &[QPACK_DECODER, QPACK_ENCODER], &[&[]], &[RESERVED, &[], QPACK_DECODER]]
    {
        let session = Session::open_behind(relay.address, streams).await;
        session.unwrap_or_else(|status| panic!("{streams:?}: {status}")).echoes().await;
    }
    assert_eq!(relay.snapshot().handshakes_failed, 0);
}
