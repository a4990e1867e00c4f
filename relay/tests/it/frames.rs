//! WebSocket frames of hostile or unusual clients.

use rakwire_relay::CloseKind;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::support::{Client, Running, Server, config, open_with_header};

const BINARY: OpCode = OpCode::Data(Data::Binary);
const CONTINUE: OpCode = OpCode::Data(Data::Continue);

async fn send_part(client: &mut Client, opcode: OpCode, payload: &[u8], is_last: bool) {
    client.message(Message::Frame(Frame::message(payload.to_vec(), opcode, is_last))).await;
}

#[tokio::test]
async fn a_fragmented_message_is_one_datagram() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let mut client = relay.client().await;
    send_part(&mut client, BINARY, b"one ", false).await;
    for part in [&b"data"[..], b"", b"gram"] {
        send_part(&mut client, CONTINUE, part, false).await;
    }
    send_part(&mut client, CONTINUE, b"", true).await;
    client.send(b"next").await;
    assert_eq!(server.receive().await.0, b"one datagram");
    assert_eq!(server.receive().await.0, b"next");
}

#[tokio::test]
async fn the_total_length_of_fragments_is_limited() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut client = relay.client().await;
    send_part(&mut client, BINARY, &[0; 1000], false).await;
    send_part(&mut client, CONTINUE, &[0; 1000], true).await;
    let (code, text) = client.closed().await;
    assert_eq!((code, text.as_str()), (1009, "message of 2000 bytes; a datagram carries at most 1472"));

    // An endless message is rejected as soon as it exceeds the maximum length.
    let mut client = relay.client().await;
    send_part(&mut client, BINARY, &[0; 1000], false).await;
    for _ in 0..70 {
        send_part(&mut client, CONTINUE, &[0; 1000], false).await;
    }
    assert_eq!(client.closed().await.0, 1009);
    assert_eq!(relay.snapshot().closes(CloseKind::MessageTooBig), 2);
}

#[tokio::test]
async fn fragments_out_of_order_are_refused() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut continued = relay.client().await;
    send_part(&mut continued, CONTINUE, b"of nothing", true).await;
    assert_eq!(continued.closed().await.0, 1002);
    let mut restarted = relay.client().await;
    send_part(&mut restarted, BINARY, b"first", false).await;
    send_part(&mut restarted, BINARY, b"second", true).await;
    assert_eq!(restarted.closed().await.0, 1002);
}

#[tokio::test]
async fn unmasked_frames_are_refused() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut client = relay.client().await;
    client.tcp().write_all(&[0x82, 0x01, 0x00]).await.unwrap();
    assert_eq!(client.closed().await.0, 1002);
}

/// A few compressed bytes can expand to megabytes, and compressing secrets together with chosen text reveals them.
#[tokio::test]
async fn websocket_compression_is_disabled() {
    let relay = Running::start(config(Server::echo().await)).await;
    let offer = ("sec-websocket-extensions", "permessage-deflate; client_max_window_bits");
    let (mut client, response) = open_with_header(relay.address, "/ws?target=game", offer).await;
    assert!(response.headers().get("sec-websocket-extensions").is_none());
    // A binary frame with the compression bit.
    client.tcp().write_all(&[0xC2, 0x81, 0, 0, 0, 0, 7]).await.unwrap();
    assert_eq!(client.closed().await.0, 1002);
}
