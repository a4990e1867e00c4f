//! The application decides which clients to admit.

use std::time::Duration;

use rakwire::endpoint::SendError;
use rakwire_native::endpoint::{ConnectError, Endpoint, Incoming};

use super::by_both_protocols;
use super::subject::{Subject, client, join, message, receive, server, until};
use crate::support::DEADLINE;

by_both_protocols!(
    no_client_is_admitted_before_the_application_decides,
    a_refused_client_is_notified,
    an_ignored_client_gets_no_reply,
    clients_beyond_the_backlog_are_dropped,
    a_closed_endpoint_admits_no_waiting_client,
);

async fn deferring<P: Subject>(backlog: usize) -> Endpoint<P> {
    server::<P>(|options| {
        options.defer_incoming = true;
        options.backlog = backlog;
    })
    .await
}

async fn impatient<P: Subject>() -> Endpoint<P> {
    client::<P>(|options| P::set_timeout(&mut options.config, Duration::from_millis(500))).await
}

async fn no_client_is_admitted_before_the_application_decides<P: Subject>() {
    let (server, client) = (deferring::<P>(8).await, client::<P>(|_| {}).await);
    let accept = async {
        let incoming = server.incoming().await.expect("a client");
        assert_eq!(incoming.remote(), client.local_addr());
        assert_eq!(server.stats().connections, 0);
        incoming.accept();
    };
    let ((here, there), ()) = tokio::join!(join(&client, &server), accept);
    here.send(&message(10, 0), P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, message(10, 0));
}

/// Waits until the client receives the refusal. A Game Protocol client may consider itself connected before that.
async fn learns_that_it_is_refused<P: Subject>(client: &Endpoint<P>, server: &Endpoint<P>) {
    match client.connect(server.local_addr()).await {
        Err(error) => assert_ne!(error, ConnectError::Failed(P::NO_ANSWER)),
        Ok(connection) => assert_eq!(connection.closed().await, P::REMOTE),
    }
}

async fn a_refused_client_is_notified<P: Subject>() {
    let (server, client) = (deferring::<P>(8).await, client::<P>(|_| {}).await);
    // Dropping an `Incoming` refuses it.
    let ways: [fn(Incoming<P>); 2] = [Incoming::refuse, drop];
    for decide in ways {
        // A Game Protocol client repeats its request until it receives the decision.
        let decide_each = async {
            while let Some(incoming) = server.incoming().await {
                decide(incoming);
            }
        };
        let learns = tokio::time::timeout(DEADLINE, learns_that_it_is_refused(&client, &server));
        tokio::select! {
            learnt = learns => learnt.expect("a result before the timeout"),
            () = decide_each => panic!("the endpoint is closed"),
        }
    }
    assert_eq!(server.stats().connections, 0);
}

async fn an_ignored_client_gets_no_reply<P: Subject>() {
    let (server, client) = (deferring::<P>(8).await, impatient::<P>().await);
    let ignoring = server.clone();
    let ignoring = tokio::spawn(async move {
        while let Some(incoming) = ignoring.incoming().await {
            incoming.ignore();
        }
    });
    match client.connect(server.local_addr()).await {
        Err(error) => assert_eq!(error, ConnectError::Failed(P::STUCK)),
        Ok(connection) => {
            // A Game Protocol client considers itself connected once it has received the challenge.
            let sent = connection.send(&message(10, 0), P::RELIABLE).await;
            assert!(matches!(sent, Ok(_) | Err(SendError::NotConnected)), "{sent:?}");
            let end = tokio::time::timeout(DEADLINE, connection.closed()).await;
            assert_eq!(end.expect("a result before the timeout"), P::LOST);
        }
    }
    assert_eq!(server.stats().connections, 0);
    server.close().await;
    ignoring.await.expect("no panic");
}

async fn clients_beyond_the_backlog_are_dropped<P: Subject>() {
    let server = deferring::<P>(1).await;
    let (one, two) = (client::<P>(|_| {}).await, client::<P>(|_| {}).await);
    let address = server.local_addr();
    let first = tokio::spawn(async move { one.connect(address).await });
    let incoming = server.incoming().await.expect("the first");
    let second = tokio::spawn(async move { two.connect(address).await });
    until("the backlog rejects the second connection", || server.stats().backlog_full > 0).await;
    incoming.accept();
    let there = server.accept().await.expect("the first");
    let here = first.await.expect("no panic").expect("a connection");
    here.send(&message(10, 0), P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, message(10, 0));
    second.abort();
}

async fn a_closed_endpoint_admits_no_waiting_client<P: Subject>() {
    let (server, client) = (deferring::<P>(8).await, client::<P>(|_| {}).await);
    let address = server.local_addr();
    let attempt = tokio::spawn(async move { client.connect(address).await });
    let incoming = server.incoming().await.expect("a client");
    server.close().await;
    incoming.accept();
    assert!(server.incoming().await.is_none());
    assert_eq!(server.stats().connections, 0);
    attempt.abort();
}
