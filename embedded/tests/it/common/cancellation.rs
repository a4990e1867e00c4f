//! Dropping a future early loses no message and leaves no state behind.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rakwire::endpoint::SendError;
use rakwire_embassy::ConnectError;

use crate::support::{
    REMOTE, Tested, Wire, bytes, connected, end, give_up, in_order, join, message, number, pair, run, until,
};

pub(crate) fn a_cancelled_recv_takes_no_message<P: Tested>() {
    run(async {
        let (_client, _server, here, there) = connected::<P>(Wire::losing(0)).await;
        for number in 0..50 {
            assert!(give_up(there.recv()));
            let arrived = || there.stats().map_or(0, |stats| P::received(&stats));
            let before = arrived();
            here.send(&message(number, 20), P::RELIABLE).await.expect("an open connection");
            until(|| arrived() > before).await;
            let received = there.recv().await.expect("a message");
            assert_eq!(bytes(&received), message(number, 20));
        }
    });
}

pub(crate) fn a_cancelled_send_sends_nothing<P: Tested>() {
    run(async {
        let (_client, _server, here, there) = connected::<P>(Wire::losing(0)).await;
        let mut sent = 0;
        while here.try_send(&message(sent, 100), P::RELIABLE).is_ok() {
            sent += 1;
        }
        assert!(give_up(here.send(&message(999, 100), P::RELIABLE)));
        here.send(&message(sent, 100), P::RELIABLE).await.expect("space after acknowledgements");
        let mut numbers = Vec::new();
        while numbers.len() <= sent as usize {
            let received = there.recv().await.expect("a message");
            assert_eq!(bytes(&received), message(number(&received), 100));
            numbers.push(number(&received));
        }
        assert_eq!(in_order::<P>(numbers), (0..=sent).collect::<Vec<_>>());
        assert!(there.try_recv().is_none());
    });
}

pub(crate) fn a_cancelled_attempt_frees_its_slot<P: Tested>() {
    run(async {
        let (client, server) = pair::<P>(Wire::losing(0));
        for _ in 0..5 {
            // If the slot of the dropped attempt stayed occupied, the next attempt would never succeed.
            until(|| give_up(client.handle.connect(server.address))).await;
        }
        assert!(give_up(server.handle.accept()));
        let (opened, accepted) = tokio::join!(join(&client, server.address), server.handle.accept());
        assert!(give_up(server.handle.accept()));
        assert_eq!(accepted.remote().ip(), client.address.ip());
        let full = client.handle.connect(([10, 0, 0, 9], 1).into()).await.expect_err("no second slot");
        assert!(matches!(full, ConnectError::NotStarted(_)), "{full}");
        drop(opened);
        assert!(accepted.recv().await.is_none());
        assert_eq!(end(&accepted), REMOTE);
    });
}

pub(crate) fn a_cancelled_disconnect_still_completes<P: Tested>() {
    run(async {
        let (_client, _server, here, there) = connected::<P>(Wire::losing(0)).await;
        here.send(&message(2, 9), P::RELIABLE).await.expect("an open connection");
        // `disconnect` waits until the message has arrived, so it is still pending.
        assert!(give_up(here.disconnect()));
        assert_eq!(here.send(&message(0, 9), P::RELIABLE).await, Err(SendError::NotConnected));
        assert_eq!(bytes(&there.recv().await.expect("a message")), message(2, 9));
        assert!(there.recv().await.is_none());
        assert_eq!(end(&there), REMOTE);
    });
}

pub(crate) fn a_connection_closes_when_its_last_reference_is_dropped<P: Tested>() {
    run(async {
        let (_client, server, here, there) = connected::<P>(Wire::losing(0)).await;
        let reader = here.clone();
        drop(here);
        reader.send(&message(1, 9), P::RELIABLE).await.expect("an open connection");
        assert_eq!(bytes(&there.recv().await.expect("a message")), message(1, 9));
        drop(reader);
        assert!(there.recv().await.is_none());
        drop(there);
        until(|| server.handle.blocks_available() == 48).await;
    });
}

pub(crate) fn a_borrowed_message_stays_valid_while_the_network_runs<P: Tested>() {
    run(async {
        let (_client, _server, here, there) = connected::<P>(Wire::losing(0)).await;
        here.send(&message(0, 1_000), P::RELIABLE).await.expect("an open connection");
        let first = there.recv().await.expect("a message");
        for number in 1..5 {
            here.send(&message(number, 30), P::RELIABLE).await.expect("an open connection");
        }
        // No task receives another message while this one is borrowed ...
        assert!(there.try_recv().is_none());
        there.send(&message(9, 9), P::RELIABLE).await.expect("an open connection");
        assert_eq!(bytes(&here.recv().await.expect("a message")), message(9, 9));
        // ... and the message stays intact even after the connection is closed.
        here.disconnect().await;
        assert_eq!(bytes(&first), message(0, 1_000));
        drop(first);
        let mut numbers = Vec::new();
        while let Some(received) = there.recv().await {
            assert_eq!(bytes(&received), message(number(&received), 30));
            numbers.push(number(&received));
        }
        assert_eq!(in_order::<P>(numbers), [1, 2, 3, 4]);
    });
}

pub(crate) fn a_connection_survives_a_temporary_network_failure<P: Tested>() {
    run(async {
        let wire = Wire::losing(0);
        let loss = wire.loss_percent.clone();
        let (_client, _server, here, there) = connected::<P>(wire).await;
        loss.set(100);
        here.send(&message(1, 9), P::RELIABLE).await.expect("an open connection");
        until(|| here.stats().is_some_and(|stats| P::lost(&stats) > 1)).await;
        loss.set(0);
        assert_eq!(bytes(&there.recv().await.expect("a message")), message(1, 9));
    });
}

pub(crate) fn calls_after_a_disconnect_report_the_disconnect<P: Tested>() {
    run(async {
        let (_client, _server, here, there) = connected::<P>(Wire::losing(0)).await;
        here.disconnect().await;
        assert!(there.recv().await.is_none());
        let mut future = pin!(there.recv());
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(None)));
        until(|| there.stats().is_none()).await;
        assert_eq!(there.send(&message(0, 9), P::RELIABLE).await, Err(SendError::NotConnected));
    });
}
