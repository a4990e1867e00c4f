//! Connections as streams and sinks.

use std::future::poll_fn;
use std::pin::Pin;

use futures_core::Stream;
use futures_sink::Sink;
use rakwire::endpoint::{Capacity, SendError};

use super::by_both_protocols;
use super::subject::{Subject, client, join, numbered, server};
use crate::support::DEADLINE;

by_both_protocols!(
    a_sink_waits_for_memory_and_closing_it_ends_the_stream,
    a_closed_connection_accepts_no_message
);

async fn a_sink_waits_for_memory_and_closing_it_ends_the_stream<P: Subject>() {
    const MESSAGES: usize = 300;
    let server = server::<P>(|_| {}).await;
    let client = client::<P>(|options| {
        options.capacity = Capacity { connections: 1, blocks: 64, block_size: 512 };
        P::set_close_timeout(&mut options.config, DEADLINE);
    })
    .await;
    let (here, there) = join(&client, &server).await;
    let (mut sink, mut messages) = (here.message_sink(), there.messages());
    drop((here, there));
    let sending = tokio::spawn(async move {
        for number in 0..MESSAGES {
            poll_fn(|cx| Pin::new(&mut sink).poll_ready(cx)).await?;
            Pin::new(&mut sink).start_send((numbered(400, number), P::RELIABLE))?;
        }
        poll_fn(|cx| Pin::new(&mut sink).poll_flush(cx)).await?;
        poll_fn(|cx| Pin::new(&mut sink).poll_close(cx)).await
    });
    let mut received = Vec::new();
    while let Some(message) = poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await {
        received.push(message.bytes);
    }
    if !P::IS_ORDERED {
        received.sort_unstable_by_key(|bytes| bytes[1..5].to_vec());
    }
    assert!(received.into_iter().eq((0..MESSAGES).map(|number| numbered(400, number))));
    assert_eq!(sending.await.expect("no panic"), Ok(()));
}

async fn a_closed_connection_accepts_no_message<P: Subject>() {
    let (server, client) = (server::<P>(|_| {}).await, client::<P>(|_| {}).await);
    let (here, _there) = join(&client, &server).await;
    let mut sink = here.message_sink();
    here.disconnect().await;
    let sent = Pin::new(&mut sink).start_send(([0x90], P::RELIABLE));
    assert_eq!(sent, Err(SendError::NotConnected));
}
