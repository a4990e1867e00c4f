//! Reads what arrives at a connection.

use std::io::{self, ErrorKind};

use rakwire::codec::frames;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::error::DisconnectReason;
use super::options::Framing;
use super::shared::{Queued, READ_BUFFER, Shared};

/// The memory that is taken for a message before any of it has arrived.
const ANNOUNCED: usize = 64 << 10;

/// Reads until the stream ends, and returns why it did.
pub(super) async fn read(
    reader: impl AsyncRead + Unpin,
    receive_queue: mpsc::UnboundedSender<Queued>,
    shared: &Shared,
) -> DisconnectReason {
    let mut reader = BufReader::with_capacity(READ_BUFFER, reader);
    loop {
        match read_message(&mut reader, &receive_queue, shared).await {
            Ok(true) => {}
            Ok(false) => return DisconnectReason::Remote,
            Err(reason) => return reason,
        }
    }
}

/// Reads a message and queues it; `false` if the stream ends before its first byte.
async fn read_message(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    receive_queue: &mpsc::UnboundedSender<Queued>,
    shared: &Shared,
) -> Result<bool, DisconnectReason> {
    let available = reader.fill_buf().await.map_err(|error| lost(&error))?.len();
    if available == 0 {
        return Ok(false);
    }
    let len = match shared.options.framing {
        Framing::Packets => announced_len(reader, shared).await?,
        Framing::Stream => available,
    };
    let room = room_for(len, shared).await;
    let mut bytes = Vec::with_capacity(len.min(ANNOUNCED));
    let read = reader.take(len as u64).read_to_end(&mut bytes).await.map_err(|error| lost(&error))?;
    if read < len {
        return Err(DisconnectReason::Lost(ErrorKind::UnexpectedEof));
    }
    shared.counters.messages_received.add(1);
    shared.counters.bytes_received.add(len as u64);
    match room {
        // Nobody receives any more if it cannot be queued.
        Some(room) => drop(receive_queue.send(Queued { bytes, room })),
        None => shared.counters.messages_dropped.add(1),
    }
    Ok(true)
}

/// The length of the message that begins here.
async fn announced_len(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    shared: &Shared,
) -> Result<usize, DisconnectReason> {
    let mut header = [0; frames::HEADER_LEN];
    reader.read_exact(&mut header).await.map_err(|error| lost(&error))?;
    let len = frames::message_len(header);
    if len > shared.options.max_message {
        return Err(DisconnectReason::MessageTooLong(len));
    }
    usize::try_from(len).map_err(|_| DisconnectReason::MessageTooLong(len))
}

/// Room in the queue, for which TCP lets the other side wait; `None` if this side closes the connection first.
async fn room_for(len: usize, shared: &Shared) -> Option<OwnedSemaphorePermit> {
    tokio::select! {
        biased;
        room = shared.receive_room.take(len) => room,
        () = shared.closing() => None,
    }
}

fn lost(error: &io::Error) -> DisconnectReason {
    DisconnectReason::Lost(error.kind())
}
