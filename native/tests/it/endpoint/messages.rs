//! Messages, their memory, and applications that read slowly.

use rakwire::endpoint::{Capacity, SendError};
use rakwire_native::game_protocol::GameProtocol;

use super::by_both_protocols;
use super::subject::{
    Subject, client, deliver_unreliable, echo_all, has_no_messages, join, message, numbered, receive,
    receive_all, server, until,
};
use crate::support::DEADLINE;

by_both_protocols!(
    messages_of_all_sizes_arrive_in_both_directions,
    many_connections_exchange_messages_simultaneously,
    a_broadcast_reaches_all_but_one,
    a_message_right_after_the_handshake_arrives,
    a_slow_reader_loses_no_message_and_blocks_no_other_connection,
    reliable_messages_survive_an_application_that_does_not_read,
    try_send_fails_while_the_memory_is_full,
    send_vec_waits_until_the_memory_has_space,
);

async fn messages_of_all_sizes_arrive_in_both_directions<P: Subject>() {
    let (server, client) = (server::<P>(|_| {}).await, client::<P>(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    for (number, length) in [1, 504, 505, 50_000, P::LARGE].into_iter().enumerate() {
        for (from, to) in [(&here, &there), (&there, &here)] {
            from.send(&message(length, number), P::RELIABLE).await.expect("an open connection");
            let received = receive(to).await;
            assert!(received.bytes == message(length, number), "{length} bytes");
            assert_eq!(received.delivery, P::RELIABLE);
        }
    }
    assert_eq!(here.send(&[], P::RELIABLE).await, Err(SendError::Empty));
    assert_eq!((here.remote(), there.remote()), (server.local_addr(), client.local_addr()));
    assert_eq!(P::messages(&here.stats().expect("an open connection")), (5, 5));
    let received = deliver_unreliable(&here, &there, &message(5, 0), P::UNRELIABLE).await;
    assert_eq!(received.delivery, P::UNRELIABLE);
    // The memory of delivered messages is freed.
    until("all memory is free", || has_no_messages(&client)).await;
}

async fn a_broadcast_reaches_all_but_one<P: Subject>() {
    let server = server::<P>(|_| {}).await;
    assert_eq!(server.broadcast(b"\x90nobody", P::RELIABLE).sent, 0);
    let clients = [client::<P>(|_| {}).await, client::<P>(|_| {}).await];
    let (one, at_server) = join(&clients[0], &server).await;
    let (other, _kept) = join(&clients[1], &server).await;
    let but_one = server.broadcast_except(at_server.id(), b"\x90others", P::RELIABLE);
    assert_eq!((but_one.sent, but_one.refused.len()), (1, 0));
    assert_eq!(receive(&other).await.bytes, b"\x90others");
    let all = server.broadcast(b"\x90all", P::RELIABLE);
    assert_eq!((all.sent, all.refused.len()), (2, 0));
    for connection in [&one, &other] {
        assert_eq!(receive(connection).await.bytes, b"\x90all");
    }
}

async fn many_connections_exchange_messages_simultaneously<P: Subject>() {
    let server = echo_all(server::<P>(|_| {}).await);
    let address = server.local_addr();
    let clients: Vec<_> = (0..100)
        .map(|number| {
            tokio::spawn(async move {
                let client = client::<P>(|options| {
                    options.capacity = Capacity { connections: 1, blocks: 256, block_size: 512 };
                })
                .await;
                let connection = client.connect(address).await.expect("a connection");
                for round in 0..20 {
                    let sent = message(50 + round, number);
                    connection.send(&sent, P::RELIABLE).await.expect("an open connection");
                    assert_eq!(receive(&connection).await.bytes, sent);
                }
                client.close().await;
                assert_eq!(connection.closed_reason(), Some(P::LOCAL));
            })
        })
        .collect();
    for client in clients {
        client.await.expect("every echo");
    }
    until("every connection is over", || server.stats().connections == 0).await;
    assert!(has_no_messages(&server));
}

/// The endpoint handles handshake datagrams later than others. A datagram that follows one must be queued behind it;
/// otherwise an unreliable message would be lost.
async fn a_message_right_after_the_handshake_arrives<P: Subject>() {
    let server = server::<P>(|_| {}).await;
    for number in 0..20 {
        let client = client::<P>(|options| P::set_unreliable_timeout(&mut options.config, DEADLINE)).await;
        let here = client.connect(server.local_addr()).await.expect("a connection");
        here.send(&message(10, number), P::UNRELIABLE).await.expect("an open connection");
        let there = server.accept().await.expect("the same connection");
        assert_eq!(receive(&there).await.bytes, message(10, number));
    }
}

async fn a_slow_reader_loses_no_message_and_blocks_no_other_connection<P: Subject>() {
    const MESSAGES: usize = 3_000;
    let server = server::<P>(|options| options.receive_queue = 64 << 10).await;
    let client = client::<P>(|options| {
        options.capacity = Capacity { connections: 2, blocks: 1_024, block_size: 512 };
    })
    .await;
    let (slow, reader) = join(&client, &server).await;
    let other = super::subject::client::<P>(|_| {}).await;
    let (quick, quick_reader) = join(&other, &server).await;

    let sender = tokio::spawn(async move {
        for number in 0..MESSAGES {
            slow.send(&numbered(1_000, number), P::RELIABLE).await.expect("an open connection");
        }
        slow
    });
    until("the queue is full", || server.stats().receive_queue_full > 0).await;
    assert!(!sender.is_finished(), "3 MB exceed all queues");
    // The application does not read the first connection. The second one works.
    quick.send(&message(10, 0), P::RELIABLE).await.expect("an open connection");
    receive(&quick_reader).await;
    // The paused connection can still send.
    reader.send(&message(10, 1), P::RELIABLE).await.expect("an open connection");

    receive_all(&reader, 1_000, MESSAGES).await;
    let slow = sender.await.expect("everything was sent");
    assert_eq!(receive(&slow).await.bytes, message(10, 1));
}

async fn reliable_messages_survive_an_application_that_does_not_read<P: Subject>() {
    let server = server::<P>(|options| options.receive_queue = 10_000).await;
    let client = client::<P>(|options| options.receive_queue = 10_000).await;
    let (here, there) = join(&client, &server).await;
    for number in 0..300 {
        here.send(&numbered(200, number), P::RELIABLE).await.expect("an open connection");
    }
    until("a datagram is refused", || server.stats().receive_queue_full > 0).await;
    receive_all(&there, 200, 300).await;
}

async fn try_send_fails_while_the_memory_is_full<P: Subject>() {
    let server = server::<P>(|options| options.receive_queue = 1).await;
    let client = client::<P>(|options| {
        options.capacity = Capacity { connections: 1, blocks: 64, block_size: 512 };
    })
    .await;
    let (here, there) = join(&client, &server).await;
    let mut sent = 0;
    until("the memory is full", || {
        let result = here.try_send(&numbered(400, sent), P::RELIABLE);
        sent += usize::from(result.is_ok());
        result == Err(SendError::QuotaExceeded)
    })
    .await;
    receive_all(&there, 400, sent).await;
}

/// The memory holds only a few of these messages.
async fn send_vec_waits_until_the_memory_has_space<P: Subject>() {
    const LENGTH: usize = 100_000;
    const MESSAGES: usize = 8;
    let server = server::<P>(|_| {}).await;
    let client = client::<P>(|options| {
        options.capacity = Capacity { connections: 1, blocks: 640, block_size: 512 };
    })
    .await;
    let (here, there) = join(&client, &server).await;
    let mut refused = message(LENGTH, 0);
    until("the memory is full", || {
        let mut next = message(LENGTH, 0);
        let sent = here.try_send_vec(&mut next, P::RELIABLE);
        assert_eq!(next.is_empty(), sent.is_ok());
        refused = next;
        sent == Err(SendError::QuotaExceeded)
    })
    .await;
    assert!(refused == message(LENGTH, 0), "the message stays with the caller");
    let sender = tokio::spawn(async move {
        for number in 1..=MESSAGES {
            here.send_vec(message(LENGTH, number), P::RELIABLE).await.expect("an open connection");
        }
        here
    });
    let mut number = 0;
    while number < MESSAGES {
        let received = receive(&there).await;
        number = (0..=MESSAGES)
            .find(|number| received.bytes == message(LENGTH, *number))
            .expect("one that was sent");
    }
    let _here = sender.await.expect("everything was sent");
    until("all memory is free", || has_no_messages(&client)).await;
}

/// The longest message of the Game Protocol has 256 chunks.
#[tokio::test]
async fn a_message_with_too_many_chunks_is_refused() {
    let (server, client) = (server::<GameProtocol>(|_| {}).await, client(|_| {}).await);
    let (here, _there) = join(&client, &server).await;
    let sent = here.send(&[0; GameProtocol::LARGE + 1], GameProtocol::RELIABLE).await;
    assert_eq!(sent, Err(SendError::TooLong));
}
