//! Writes what a connection sends.

use std::io;
use std::time::Duration;

use rakwire::codec::frames;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::error::DisconnectReason;
use super::options::Framing;
use super::shared::{Queued, Shared};

/// How much leaves in one call, if messages are short.
const BATCH: usize = 64 << 10;

/// Writes what is queued, until nothing more can be queued, and says so to the other side.
pub(super) async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut send_queue: mpsc::UnboundedReceiver<Queued>,
    shared: &Shared,
) -> Result<(), DisconnectReason> {
    let limit = shared.options.timeout;
    let header = match shared.options.framing {
        Framing::Packets => frames::HEADER_LEN,
        Framing::Stream => 0,
    };
    while let Some(first) = send_queue.recv().await {
        // The room of the messages is free once they are written.
        let (mut bytes, mut rooms, mut messages) = (first.bytes, vec![first.room], 1);
        while bytes.len() < BATCH {
            let Ok(Queued { bytes: next, room }) = send_queue.try_recv() else { break };
            bytes.extend_from_slice(&next);
            rooms.push(room);
            messages += 1;
        }
        write_all(&mut writer, &bytes, limit).await?;
        shared.counters.messages_sent.add(messages);
        shared.counters.bytes_sent.add(bytes.len() as u64 - messages * header as u64);
        drop(rooms);
    }
    progress(limit, writer.shutdown()).await
}

/// Writes all bytes, each call within the time limit.
async fn write_all(
    writer: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    limit: Duration,
) -> Result<(), DisconnectReason> {
    while !bytes.is_empty() {
        let written = progress(limit, writer.write(bytes)).await?;
        if written == 0 {
            return Err(DisconnectReason::Lost(io::ErrorKind::WriteZero));
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    // TLS keeps back what the system has not taken.
    progress(limit, writer.flush()).await
}

async fn progress<T>(
    limit: Duration,
    call: impl Future<Output = io::Result<T>>,
) -> Result<T, DisconnectReason> {
    let result = timeout(limit, call).await.map_err(|_| DisconnectReason::TimedOut)?;
    result.map_err(|error| DisconnectReason::Lost(error.kind()))
}
