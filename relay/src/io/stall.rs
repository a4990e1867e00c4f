//! A connection whose other end has to read: one that stops in the middle of a response would keep it for ever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How fast a client has to read in the long run, in bytes per second: less than the slowest mobile network.
const RATE_MIN: u64 = 2 * 1024;

/// A connection that fails with [`io::ErrorKind::TimedOut`] when its other end does not read.
///
/// The time in which writes wait is counted. For HTTP written bytes give some of it back, so that reading a few bytes now
/// and then gains nothing. For a WebSocket, which drops what its client is too slow for, they give all of it back.
#[derive(Debug)]
pub(crate) struct WriteDeadline<S> {
    stream: S,
    /// The longest time in which writes may wait.
    max: Duration,
    /// How much of it is left.
    left: Duration,
    waiting: Option<Waiting>,
    is_websocket: Arc<AtomicBool>,
}

/// A write that waits for the other end.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    deadline: Pin<Box<Sleep>>,
}

impl<S> WriteDeadline<S> {
    pub(crate) const fn new(stream: S, max: Duration, is_websocket: Arc<AtomicBool>) -> Self {
        Self { stream, max, left: max, waiting: None, is_websocket }
    }

    /// A write went through.
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

    /// A write waits: an error if it has waited for too long.
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const MAX: Duration = Duration::from_secs(10);

    fn websocket(is_websocket: bool) -> Arc<AtomicBool> {
        Arc::new(AtomicBool::new(is_websocket))
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_read_fails_and_one_that_pauses_does_not() {
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
    async fn reading_a_little_now_and_then_gains_no_time() {
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
    async fn one_that_reads_fast_enough_gets_everything() {
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
    async fn a_websocket_may_be_slow_but_not_stand_still() {
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
