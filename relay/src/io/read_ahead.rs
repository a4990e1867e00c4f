//! Reading more than was asked for, into buffers that all connections of a thread share.
//!
//! A WebSocket reads in small pieces, because its own read buffer exists as long as its client. With this below it, most
//! of those pieces need no call of the system, and a client that is idle has no buffer here.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The size of a shared buffer. Whoever asks for a quarter of it or more reads without one.
const BUFFER: usize = 16 * 1024;

/// How many buffers a thread keeps for the next connection.
const SPARE_MAX: usize = 4;

thread_local! {
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ReadAhead<S> {
    stream: S,
    /// What was read and not yet asked for. There is something in it.
    ahead: Option<Ahead>,
}

#[derive(Debug)]
struct Ahead {
    buffer: Buffer,
    start: usize,
    end: usize,
}

/// A buffer that goes back to the thread in which it is dropped.
#[derive(Debug)]
struct Buffer(Box<[u8]>);

impl Buffer {
    fn take() -> Self {
        let spare = SPARE.with_borrow_mut(Vec::pop);
        Self(spare.unwrap_or_else(|| vec![0; BUFFER].into()))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        // A thread that ends needs no more buffers.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.push(bytes);
            }
        });
    }
}

impl Ahead {
    /// Hands over what fits; none if nothing is left.
    fn copy(mut self, to: &mut ReadBuf<'_>) -> Option<Self> {
        let count = to.remaining().min(self.end - self.start);
        to.put_slice(&self.buffer.0[self.start..self.start + count]);
        self.start += count;
        (self.start < self.end).then_some(self)
    }
}

impl<S> ReadAhead<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, ahead: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(ahead) = self.ahead.take() {
            self.ahead = ahead.copy(to);
            return Poll::Ready(Ok(()));
        }
        if to.remaining() >= BUFFER / 4 {
            return Pin::new(&mut self.stream).poll_read(context, to);
        }
        let mut buffer = Buffer::take();
        let mut read = ReadBuf::new(&mut buffer.0);
        let result = Pin::new(&mut self.stream).poll_read(context, &mut read);
        let end = read.filled().len();
        if result.is_ready() {
            self.ahead = Ahead { buffer, start: 0, end }.copy(to);
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAhead<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    fn spare() -> usize {
        SPARE.with_borrow(Vec::len)
    }

    #[tokio::test]
    async fn everything_arrives_in_order_however_it_is_asked_for() {
        let sent: Vec<u8> = (0..100_000_u32).map(|number| (number / 7) as u8).collect();
        let (mut ours, theirs) = duplex(40_000);
        let mut reader = ReadAhead::new(theirs);
        let expected = sent.clone();
        let writing = tokio::spawn(async move {
            ours.write_all(&sent).await.unwrap();
        });
        let mut received = Vec::new();
        for size in [1, 14, 300, 5_000, BUFFER, 2, 70].into_iter().cycle() {
            let mut part = vec![0; size];
            let count = reader.read(&mut part).await.unwrap();
            received.extend_from_slice(&part[..count]);
            if count == 0 {
                break;
            }
        }
        writing.await.unwrap();
        assert_eq!(received, expected);
    }

    #[tokio::test]
    async fn whoever_waits_has_no_buffer() {
        let (mut ours, theirs) = duplex(1_000);
        let mut reader = ReadAhead::new(theirs);
        ours.write_all(b"abc").await.unwrap();
        let mut byte = [0];
        let before = spare();
        for expected in b"abc" {
            assert_eq!(reader.read(&mut byte).await.unwrap(), 1);
            assert_eq!(byte, [*expected]);
        }
        assert!(reader.ahead.is_none());
        let waiting = futures_util::poll!(std::pin::pin!(reader.read(&mut byte)));
        assert!(waiting.is_pending() && reader.ahead.is_none());
        assert_eq!(spare(), before.max(1), "one buffer served all reads");
    }

    #[test]
    fn a_thread_keeps_few_buffers() {
        drop((0..2 * SPARE_MAX).map(|_| Buffer::take()).collect::<Vec<_>>());
        assert_eq!(spare(), SPARE_MAX);
    }
}
