//! Reconnection: opens a new connection after one is lost, with exponential backoff.

use std::time::{Duration, Instant};

use rakwire::endpoint::Protocol;
use rakwire::raknet::{ConnectFailure, Refusal};

use crate::endpoint::{ConnectError, Connection};

/// The backoff between attempts to connect: randomized, and longer after each failure.
///
/// Each pause is twice the previous one, minus a random part of up to a half. The players of a restarted server
/// therefore do not all reconnect at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first pause. Default: 500 ms.
    pub initial: Duration,
    /// The longest pause. After a connection that lasted longer than this, the next pause is `initial` again. Default:
    /// 30 s.
    pub max: Duration,
    /// Number of consecutive failures after which [`Reconnect::next`] returns the error of a failed attempt; `None` for
    /// no limit. A connection that lasted at most `max` also counts as a failure. Default: `None`.
    pub attempts: Option<u32>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { initial: Duration::from_millis(500), max: Duration::from_secs(30), attempts: None }
    }
}

/// Opens one connection after another, with growing pauses while attempts fail.
///
/// To the server, each connection is a new player: messages in flight on the previous connection are not sent again.
///
/// ```
/// use rakwire_native::reconnect::{Reconnect, is_transient};
/// use rakwire_native::{Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let address = server.local_addr();
/// let mut connections = Reconnect::new(async || client.connect(address).await, is_transient);
/// let mut played = 0;
/// while played < 2 {
///     let connection = connections.next().await?;
///     // Plays until `recv` returns `None`; here the server ends it immediately.
///     server.accept().await.ok_or("the server is closed")?.disconnect().await;
///     while connection.recv().await.is_some() {}
///     played += 1;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Reconnect<F, R> {
    open: F,
    should_retry: R,
    /// The backoff between attempts.
    pub backoff: Backoff,
    /// Consecutive failed attempts, and connections that lasted at most [`Backoff::max`].
    failures: u32,
    opened_at: Option<Instant>,
}

impl<F, R> Reconnect<F, R> {
    /// Creates a reconnector that opens connections with `open`.
    ///
    /// `should_retry` returns true for an error after which another attempt may succeed, as [`is_transient`] does.
    pub fn new<P: Protocol, E>(open: F, should_retry: R) -> Self
    where
        F: AsyncFnMut() -> Result<Connection<P>, E>,
        R: FnMut(&E) -> bool,
    {
        Self { open, should_retry, backoff: Backoff::default(), failures: 0, opened_at: None }
    }

    /// Returns the next connection. The first attempt of the first call is made immediately.
    ///
    /// # Errors
    /// Returns the error of the last attempt if `should_retry` returns false for it, or the limit of attempts is
    /// reached.
    pub async fn next<P: Protocol, E>(&mut self) -> Result<Connection<P>, E>
    where
        F: AsyncFnMut() -> Result<Connection<P>, E>,
        R: FnMut(&E) -> bool,
    {
        if let Some(opened_at) = self.opened_at.take() {
            let is_stable = opened_at.elapsed() > self.backoff.max;
            self.failures = if is_stable { 0 } else { self.failures + 1 };
            tokio::time::sleep(self.backoff.after(self.failures)).await;
        }
        loop {
            let error = match (self.open)().await {
                Ok(connection) => {
                    self.opened_at = Some(Instant::now());
                    return Ok(connection);
                }
                Err(error) => error,
            };
            self.failures = self.failures.saturating_add(1);
            let is_over = self.backoff.attempts.is_some_and(|attempts| self.failures >= attempts);
            if is_over || !(self.should_retry)(&error) {
                self.failures = 0;
                return Err(error);
            }
            tokio::time::sleep(self.backoff.after(self.failures)).await;
        }
    }
}

impl Backoff {
    /// Returns the pause after this many consecutive failures.
    fn after(self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let longest = self.initial.saturating_mul(doubled).min(self.max);
        // Without entropy the pause is not randomized.
        let mut random = [0];
        let _ = getrandom::fill(&mut random);
        let [random] = random;
        longest - longest * u32::from(random) / 512
    }
}

/// Returns true if another attempt to connect over RakNet may succeed.
///
/// That is the case if the server did not answer, was full, or still has a connection with this address. Its
/// requirements, such as a password, do not change by themselves.
#[must_use]
pub fn is_transient(error: &ConnectError<ConnectFailure>) -> bool {
    use ConnectFailure::{Closed, HandshakeTimeout, NoAnswer, NoAnswerAfterIncompatible, Unreachable};
    if let ConnectError::Failed(ConnectFailure::Refused(refusal)) = error {
        return *refusal != Refusal::Banned;
    }
    let silent = matches!(
        error,
        ConnectError::Failed(
            NoAnswer | Unreachable | HandshakeTimeout | NoAnswerAfterIncompatible { .. } | Closed
        )
    );
    silent || matches!(error, ConnectError::AlreadyConnected | ConnectError::Disconnected)
}
