//! Reconnection after a connection is lost.

use std::time::Duration;

use rakwire::raknet::{RakNet, Refusal};
use rakwire_native::reconnect::{Backoff, Reconnect, is_transient};
use rakwire_native::{ConnectError, ConnectFailure};

use crate::endpoint::subject::{client, server};

const SHORT: Backoff =
    Backoff { initial: Duration::from_millis(1), max: Duration::from_millis(4), attempts: Some(5) };

#[tokio::test]
async fn only_attempts_that_may_succeed_are_repeated() {
    let (server, client) = (server::<RakNet>(|_| {}).await, client::<RakNet>(|_| {}).await);
    let address = server.local_addr();
    for (failure, expected) in [
        (ConnectFailure::NoAnswer, 3),
        (ConnectFailure::Refused(Refusal::NoFreeIncomingConnections), 3),
        (ConnectFailure::Refused(Refusal::Banned), 1),
        (ConnectFailure::InvalidPassword, 1),
    ] {
        let mut attempts = 0;
        let open = async || {
            attempts += 1;
            if attempts < 3 { Err(ConnectError::Failed(failure)) } else { client.connect(address).await }
        };
        let mut connections = Reconnect::new(open, is_transient);
        connections.backoff = SHORT;
        let opened = connections.next().await;
        assert_eq!((attempts, opened.is_ok()), (expected, expected == 3), "{failure}");
        if let Ok(connection) = opened {
            connection.disconnect().await;
        }
    }
}

#[tokio::test]
async fn the_number_of_reconnect_attempts_is_bounded() {
    let mut attempts = 0;
    let open = async || {
        attempts += 1;
        let failed: Result<rakwire_native::Connection, _> =
            Err(ConnectError::Failed(ConnectFailure::NoAnswer));
        failed
    };
    let mut connections = Reconnect::new(open, is_transient);
    connections.backoff = SHORT;
    assert!(connections.next().await.is_err());
    assert_eq!(attempts, 5);
}
