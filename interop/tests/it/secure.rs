//! A second implementation of secure connections, written in Python from `docs/secure.md` alone.

use std::path::Path;

use rakwire_native::secure::{ServerIdentity, StaticKey};
use rakwire_native::{Endpoint, Options};

use crate::support::{peer, run, text};

#[test]
fn an_independent_implementation_agrees_with_the_test_vectors() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/secure.json");
    let arguments = ["vectors", vectors.to_str().expect("a path in UTF-8")];
    let output = run(&peer("secure"), &arguments).expect("the program starts");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// Starts a server that requires security, and returns the text of its key.
async fn server() -> (Endpoint, String) {
    let mut identity = ServerIdentity::new(StaticKey::from_bytes([0x5E; 32]));
    identity.requires_security = true;
    let key = identity.public().to_string();
    let mut options = Options::server(8).expect("entropy");
    options.secure().expect("entropy").server = Some(identity);
    (Endpoint::bind("127.0.0.1:0", options).await.expect("a free port"), key)
}

async fn echo(with_identity: bool) {
    let (server, key) = server().await;
    let address = server.local_addr().to_string();
    let program = tokio::task::spawn_blocking(move || {
        let identity: &[&str] = if with_identity { &["--identity"] } else { &[] };
        run(&peer("secure"), &[&["connect", &address, &key], identity].concat())
    });
    let echoing = tokio::spawn(async move {
        let connection = server.accept().await.expect("an open endpoint");
        while let Some(message) = connection.recv().await {
            // Fails if the client has already disconnected; only the client's verdict counts.
            let _ = connection.send(&message.bytes, message.delivery).await;
        }
    });
    let output = program.await.expect("the task does not panic").expect("the program starts");
    echoing.abort();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let epoch = u8::from(with_identity);
    assert_eq!(text(&output.stdout).trim(), format!("20 messages came back, in epoch {epoch}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_independent_client_connects_to_our_secure_server() {
    echo(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_independent_client_presents_an_identity() {
    echo(true).await;
}
