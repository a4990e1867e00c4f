//! TCP connections of clients: socket options, read-ahead, and a deadline for blocked writes.
//!
//! A WebSocket reads in small pieces, because its read buffer exists for as long as its client. Larger buffers below it
//! save most of the system calls. All connections of a thread share them, and an idle client holds none. A peer that
//! stops reading in the middle of a response would hold a connection forever, so writes have a deadline.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};
use tracing::debug;

/// The size of a shared buffer in bytes. Reads of a quarter of it or more bypass it.
const BUFFER: usize = 16 * 1024;

/// The maximum number of spare buffers per thread.
const SPARE_MAX: usize = 4;

thread_local! {
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Reads more than requested, into buffers that all connections of a thread share.
///
/// A WebSocket reads in small pieces, because its own read buffer exists for as long as its client. This layer below it
/// saves most of the system calls, and an idle client holds no buffer.
#[derive(Debug)]
pub(crate) struct ReadAhead<S> {
    stream: S,
    /// Data that was read ahead; never empty.
    ahead: Option<Ahead>,
}

#[derive(Debug)]
struct Ahead {
    buffer: Buffer,
    start: usize,
    end: usize,
}

/// A buffer that is returned to the pool of the thread in which it is dropped.
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
        // An exiting thread has no pool.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.push(bytes);
            }
        });
    }
}

impl Ahead {
    /// Copies as many bytes as fit. Returns `None` once no data is left.
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

/// The minimum average reading rate of a client in bytes per second, below that of the slowest mobile network.
const RATE_MIN: u64 = 2 * 1024;

/// A connection that fails with [`io::ErrorKind::TimedOut`] if its peer does not read.
///
/// The time during which writes are blocked is counted. With HTTP, each written byte gives back a part of it, so that a
/// client gains nothing by reading a few bytes now and then. With a WebSocket, any progress gives back all of it,
/// because a flow drops datagrams for slow clients.
#[derive(Debug)]
pub(crate) struct WriteDeadline<S> {
    stream: S,
    /// The total time for which writes may be blocked.
    max: Duration,
    /// The part of `max` that remains.
    left: Duration,
    waiting: Option<Waiting>,
    is_websocket: Arc<AtomicBool>,
}

/// A write that is blocked by the peer.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    deadline: Pin<Box<Sleep>>,
}

impl<S> WriteDeadline<S> {
    pub(crate) const fn new(stream: S, max: Duration, is_websocket: Arc<AtomicBool>) -> Self {
        Self { stream, max, left: max, waiting: None, is_websocket }
    }

    /// Records the progress of a write.
    fn progress(&mut self, bytes: usize) {
        if let Some(waiting) = self.waiting.take() {
            self.left = self.left.saturating_sub(waiting.since.elapsed());
        }
        if bytes > 0 && self.is_websocket.load(Ordering::Relaxed) {
            self.left = self.max;
        }
        let gained = Duration::from_millis((bytes as u64).saturating_mul(1000) / RATE_MIN);
        self.left = self.left.saturating_add(gained).min(self.max);
    }

    /// Registers a blocked write. Returns an error once writes have been blocked for too long.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let left = self.left;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Waiting { since: Instant::now(), deadline: Box::pin(sleep(left)) });
        ready!(waiting.deadline.as_mut().poll(context));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))
    }

    fn finish<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        match written {
            Poll::Pending => self.wait(context).map(Err),
            Poll::Ready(Ok(value)) => {
                self.progress(bytes(&value));
                Poll::Ready(Ok(value))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteDeadline<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.finish(context, written, |written| *written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.finish(context, written, |written| *written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.finish(context, flushed, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.finish(context, shut, |()| 0)
    }
}

/// The maximum number of unsent bytes in the socket's send buffer for a client.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_MAX: u32 = 32 * 1024;

/// Sets the options of an accepted connection. If that fails, the connection is slower but works.
pub(crate) fn tune(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true).and_then(|()| limit_unsent(stream)) {
        debug!(%error, "cannot set socket options");
    }
}

/// Limits the unsent bytes in the socket's send buffer. Otherwise it holds megabytes of outdated datagrams for a slow
/// client, which can no longer be dropped there.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn limit_unsent(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_MAX)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn limit_unsent(_: &TcpStream) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    fn spare() -> usize {
        SPARE.with_borrow(Vec::len)
    }

    #[tokio::test]
    async fn read_ahead_preserves_the_order_for_any_read_size() {
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
    async fn idle_readers_hold_no_buffer() {
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
    fn a_thread_keeps_few_spare_buffers() {
        drop((0..2 * SPARE_MAX).map(|_| Buffer::take()).collect::<Vec<_>>());
        assert_eq!(spare(), SPARE_MAX);
    }

    const MAX: Duration = Duration::from_secs(10);

    fn websocket(is_websocket: bool) -> Arc<AtomicBool> {
        Arc::new(AtomicBool::new(is_websocket))
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_deadline_expires_for_a_stalled_peer_but_not_for_a_pausing_peer() {
        let (ours, mut theirs) = duplex(1024);
        let mut ours = WriteDeadline::new(ours, MAX, websocket(false));
        ours.write_all(&[0; 1024]).await.unwrap();
        let reading = tokio::spawn(async move {
            sleep(MAX / 2).await;
            theirs.read_exact(&mut [0; 1024]).await.unwrap();
            theirs
        });
        ours.write_all(&[0; 1024]).await.unwrap();
        let _theirs = reading.await.unwrap();
        assert_eq!(ours.write_all(&[0; 1]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn occasional_reads_do_not_extend_the_deadline() {
        let (ours, mut theirs) = duplex(64);
        let mut ours = WriteDeadline::new(ours, MAX, websocket(false));
        tokio::spawn(async move {
            loop {
                sleep(Duration::from_secs(1)).await;
                theirs.read_exact(&mut [0; 64]).await.unwrap();
            }
        });
        let started = Instant::now();
        assert_eq!(ours.write_all(&[0; 1_000_000]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() < MAX * 2, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_enough_reader_receives_all_data() {
        let (ours, mut theirs) = duplex(4096);
        let mut ours = WriteDeadline::new(ours, MAX, websocket(false));
        tokio::spawn(async move {
            loop {
                sleep(Duration::from_secs(1)).await;
                theirs.read_exact(&mut [0; 4096]).await.unwrap();
            }
        });
        ours.write_all(&[0; 1_000_000]).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_websocket_may_be_slow_but_not_stalled() {
        let (ours, mut theirs) = duplex(64);
        let mut ours = WriteDeadline::new(ours, MAX, websocket(true));
        let reading = tokio::spawn(async move {
            for _ in 0..100 {
                sleep(MAX / 2).await;
                theirs.read_exact(&mut [0; 64]).await.unwrap();
            }
            theirs
        });
        ours.write_all(&[0; 101 * 64]).await.unwrap();
        let _theirs = reading.await.unwrap();
        assert_eq!(ours.write_all(&[0; 1]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
