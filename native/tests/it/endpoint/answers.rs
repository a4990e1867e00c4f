//! On a single-threaded runtime, a reply is sent inline by the task that queues it.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::subject::{Subject, client, message, receive, server, until};

/// Maximum time until an inline reply arrives.
const AT_ONCE: Duration = Duration::from_secs(2);
const ROUNDS: usize = 100;
const ANSWERS: [usize; 3] = [100, 101, 102];

/// Starts a client in a runtime of its own. The client sends a request for each permission that it receives, and
/// reports the lengths of the replies.
fn ask<P: Subject>(server: SocketAddr, mut may_request: UnboundedReceiver<()>) -> Mutex<Receiver<usize>> {
    let (reply_lengths, answers) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let connection = client::<P>(|_| {}).await.connect(server).await.expect("a connection");
            while may_request.recv().await.is_some() {
                connection.send(&message(20, 0), P::RELIABLE).await.expect("an open connection");
                for _ in ANSWERS {
                    let _ = reply_lengths.send(receive(&connection).await.bytes.len());
                }
            }
        });
    });
    Mutex::new(answers)
}

/// While the test waits for the client, it occupies the only thread of the server's runtime, so the driver cannot
/// run.
async fn a_reply_is_sent_without_the_driver<P: Subject>() {
    let server = server::<P>(|_| {}).await;
    let (go, may_request) = unbounded_channel();
    let answers = ask::<P>(server.local_addr(), may_request);
    let connection = server.accept().await.expect("a connection");
    let mut direct = 0;
    for _ in 0..ROUNDS {
        go.send(()).expect("the client waits");
        receive(&connection).await;
        let before = server.stats().peer.datagrams_sent;
        for length in ANSWERS {
            connection.try_send(&message(length, 0), P::RELIABLE).expect("space for a message");
        }
        let sent = server.stats().peer.datagrams_sent - before;
        assert!(sent <= 2, "an acknowledgement and a message");
        let mut others = ANSWERS.len();
        // A request may arrive together with other datagrams, and the datagram sent inline is not always the reply.
        if sent > 0 && answers.lock().expect("no panic").recv_timeout(AT_ONCE) == Ok(ANSWERS[0]) {
            others -= 1;
            direct += 1;
        }
        for _ in 0..others {
            until("an answer arrives", || answers.lock().expect("no panic").try_recv().is_ok()).await;
        }
    }
    assert!(direct > ROUNDS / 4, "{direct} of {ROUNDS}");
}

#[tokio::test]
async fn a_raknet_reply_is_sent_without_the_driver() {
    // `block_on` polls its own future after the driver, so the test runs in a spawned task.
    tokio::spawn(a_reply_is_sent_without_the_driver::<RakNet>()).await.expect("no panic");
}

#[tokio::test]
async fn a_game_protocol_reply_is_sent_without_the_driver() {
    // `block_on` polls its own future after the driver, so the test runs in a spawned task.
    tokio::spawn(a_reply_is_sent_without_the_driver::<GameProtocol>()).await.expect("no panic");
}
