//! Runs one cell: sends messages to a peer and back, and checks that they arrive as their reliability guarantees.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rakwire_native::{Connection, Delivery, Endpoint, Message, Options, Reliability};
use tokio::time::{Instant, timeout};

use super::cases::{Case, Cell, Path};
use super::proxy::Proxy;

/// The maximum number of unanswered messages.
const WINDOW: u32 = 256;
/// The time without messages after which unanswered messages count as lost, if their reliability allows losses.
const STALL: Duration = Duration::from_millis(300);
/// The time without messages after which the exchange stops, if enough have arrived.
const SILENCE: Duration = Duration::from_secs(1);
/// The time without messages after which the exchange stops even if too few have arrived. It is long, because messages
/// may be late on a busy machine.
const LONG_SILENCE: Duration = Duration::from_secs(60);
/// The poll interval.
const LOOK: Duration = Duration::from_millis(20);

/// Builds message `number`, like the foreign programs.
fn message(number: u32, size: usize) -> Vec<u8> {
    let mut message = vec![0xFE];
    message.extend(number.to_be_bytes());
    message.extend((5..size).map(|at| (31 * number as usize + 7 * at + 13 * (at / 256)) as u8));
    message
}

fn number_of(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?))
}

/// The received messages, checked against the guarantees of their reliability.
struct Arrived {
    case: Case,
    seen: Vec<bool>,
    count: u32,
    /// The number after that of the newest message.
    next: u32,
    /// Messages below this number are no longer in flight: lost messages count as answered after a while.
    answered: u32,
    sent: u32,
    last: Instant,
}

impl Arrived {
    fn new(case: Case) -> Self {
        let seen = vec![false; case.count as usize];
        Self { case, seen, count: 0, next: 0, answered: 0, sent: 0, last: Instant::now() }
    }

    fn take(&mut self, received: &Message) -> Result<(), String> {
        let (case, bytes) = (self.case, &received.bytes);
        if received.delivery.reliability != case.on_wire() {
            return Err(format!("it came {:?}", received.delivery.reliability));
        }
        if bytes.len() != case.size {
            return Err(format!("{} bytes instead of {}", bytes.len(), case.size));
        }
        let number = if case.on_wire() == Reliability::ReliableOrdered {
            self.next
        } else {
            number_of(bytes).ok_or("too short")?
        };
        let expected = message(number, case.size);
        if *bytes != expected {
            let sorted = |bytes: &[u8]| {
                let mut sorted = bytes.to_vec();
                sorted.sort_unstable();
                sorted
            };
            let permuted = sorted(bytes) == sorted(&expected);
            let what =
                if permuted { "the bytes of the message in another order" } else { "other bytes or order" };
            return Err(format!("message {number}: {what}"));
        }
        let seen = self.seen.get_mut(number as usize).ok_or("a message that was not sent")?;
        if std::mem::replace(seen, true) {
            return Err(format!("message {number} twice"));
        }
        if case.on_wire().is_sequenced() && number < self.next {
            return Err(format!("message {number} after {}", self.next));
        }
        self.count += 1;
        self.next = self.next.max(number + 1);
        self.answered = self.answered.max(self.next);
        self.last = Instant::now();
        Ok(())
    }

    /// Returns true if another message may be sent. Lost messages count as answered, because the window would otherwise
    /// stay closed.
    fn has_room(&mut self) -> bool {
        let may_lose = self.case.may_lose();
        if may_lose && self.answered < self.sent && self.last.elapsed() > STALL {
            self.answered = self.sent;
            self.last = Instant::now();
        }
        self.sent - if may_lose { self.answered } else { self.count } < WINDOW
    }

    fn is_done(&self) -> bool {
        let silence = if self.verdict().is_ok() { SILENCE } else { LONG_SILENCE };
        let silent = self.last.elapsed() > silence;
        self.count == self.case.count || self.case.may_lose() && self.sent == self.case.count && silent
    }

    /// Checks that enough messages arrived, and the newest if its reliability guarantees delivery.
    fn verdict(&self) -> Result<(), String> {
        let case = self.case;
        if self.count < case.least() {
            return Err(format!("only {} of {} messages", self.count, case.count));
        }
        let newest = self.seen.last() == Some(&true);
        if case.on_wire() == Reliability::ReliableSequenced && !newest {
            return Err("the newest message did not arrive".to_owned());
        }
        Ok(())
    }
}

async fn endpoint(max_incoming: u16, change: impl FnOnce(&mut Options)) -> Result<Endpoint, String> {
    let mut options = Options::server(max_incoming).map_err(|error| error.to_string())?;
    change(&mut options);
    Endpoint::bind("127.0.0.1:0", options).await.map_err(|error| error.to_string())
}

async fn proxy(cell: Cell, server: std::net::SocketAddr, seed: u64) -> Result<Option<Proxy>, String> {
    match cell.case.path {
        Path::Clean => Ok(None),
        Path::Lossy => Proxy::start(server, seed).await.map(Some).map_err(|error| error.to_string()),
    }
}

/// Runs our client with a foreign server.
pub(crate) async fn with_server(cell: Cell, seed: u64) -> Result<(), String> {
    let starting = tokio::task::spawn_blocking(move || cell.peer.serve(cell.echo()));
    let server = starting.await.map_err(|error| error.to_string())??;
    let proxy = proxy(cell, server.address, seed).await?;
    let address = proxy.as_ref().map_or(server.address, |proxy| proxy.address);
    let client = endpoint(0, |options| options.config.protocol_version = cell.peer.protocol).await?;
    let connection = client.connect(address).await.map_err(|error| error.to_string())?;
    let result = exchange(&connection, cell.case).await;
    // The disconnection notification is not awaited: over a lossy path it may take seconds.
    drop(connection);
    result
}

fn lock(arrived: &Mutex<Arrived>) -> MutexGuard<'_, Arrived> {
    arrived.lock().expect("no thread panicked while it held the lock")
}

/// Sends everything and receives the echoes.
async fn exchange(connection: &Connection, case: Case) -> Result<(), String> {
    let arrived = Mutex::new(Arrived::new(case));
    let arrived = || lock(&arrived);
    let send = async {
        for number in 0..case.count {
            while !arrived().has_room() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let sent = connection.send(&message(number, case.size), Delivery::new(case.reliability)).await;
            sent.map_err(|error| error.to_string())?;
            arrived().sent += 1;
        }
        Ok(())
    };
    let receive = async {
        while !arrived().is_done() {
            match timeout(LOOK, connection.recv()).await {
                Ok(Some(received)) => arrived().take(&received)?,
                Ok(None) => return Err(format!("the end: {:?}", connection.closed_reason())),
                Err(_) => {}
            }
        }
        Ok(())
    };
    tokio::try_join!(send, receive)?;
    arrived().verdict()
}

/// Runs a foreign client with our server.
pub(crate) async fn with_client(cell: Cell, seed: u64) -> Result<(), String> {
    let case = cell.case;
    let server = endpoint(8, |options| options.config.cookies = cell.peer.cookies).await?;
    let proxy = proxy(cell, server.local_addr(), seed).await?;
    let address = proxy.as_ref().map_or_else(|| server.local_addr(), |proxy| proxy.address);
    let mut client = tokio::task::spawn_blocking(move || cell.peer.connect(address, cell));
    let mut arrived = Arrived::new(case);
    let verdict = tokio::select! {
        ended = &mut client => ended,
        refused = echo(&server, &mut arrived) => {
            refused?;
            client.await
        }
    };
    let verdict = verdict.map_err(|error| error.to_string())??;
    if let Some(error) = verdict["error"].as_str() {
        return Err(format!("it says: {error}, after {}", verdict["echoed"]));
    }
    if verdict["echoed"].as_u64().is_none_or(|echoed| echoed < case.least().into()) {
        return Err(format!("it says: {verdict}"));
    }
    arrived.verdict()
}

/// Echoes everything until the client disconnects. Over a lossy path its notification may be lost.
async fn echo(server: &Endpoint, arrived: &mut Arrived) -> Result<(), String> {
    let connection = server.accept().await.ok_or("the endpoint is closed")?;
    while let Some(received) = connection.recv().await {
        arrived.take(&received)?;
        // Fails if the client has already disconnected; only the client's verdict counts.
        let _ = connection.send(&received.bytes, Delivery::new(arrived.case.reliability)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(reliability: Reliability, numbers: &[u32]) -> Result<Arrived, String> {
        let mut arrived = Arrived::new(Case { reliability, count: 10, size: 100, path: Path::Clean });
        for number in numbers {
            let bytes = message(*number, 100);
            arrived.take(&Message { bytes, delivery: Delivery::new(reliability) })?;
        }
        Ok(arrived)
    }

    #[test]
    fn every_broken_guarantee_is_detected() {
        use Reliability::{Reliable, ReliableOrdered, ReliableSequenced, Unreliable, UnreliableSequenced};
        for (reliability, numbers) in [
            (Unreliable, &[1, 0, 1][..]),
            (Unreliable, &[10]),
            (Reliable, &[0, 0]),
            (ReliableOrdered, &[1]),
            (UnreliableSequenced, &[1, 0]),
            (ReliableSequenced, &[1, 0]),
        ] {
            assert!(arrived(reliability, numbers).is_err(), "{reliability:?} {numbers:?}");
        }
        let newest_missing = arrived(ReliableSequenced, &[0, 1, 8]).expect("increasing numbers are valid");
        assert!(newest_missing.verdict().is_err());
        let one_missing = arrived(Reliable, &[9, 8, 7, 6, 5, 4, 3, 2, 1]).expect("any order is valid");
        assert!(one_missing.verdict().is_err());
        assert_eq!(arrived(Reliable, &[9, 0, 8, 1, 7, 2, 6, 3, 5, 4]).and_then(|all| all.verdict()), Ok(()));
    }

    #[test]
    fn reordered_bytes_other_bytes_and_another_delivery_have_different_errors() {
        let mut arrived = arrived(Reliability::ReliableOrdered, &[]).expect("an empty list is valid");
        let mut bytes = message(0, 100);
        bytes[10..].reverse();
        let received = Message { bytes, delivery: Delivery::RELIABLE_ORDERED };
        assert!(arrived.take(&received).is_err_and(|error| error.contains("in another order")));
        let received = Message { bytes: vec![0xFE; 100], delivery: Delivery::RELIABLE_ORDERED };
        assert!(arrived.take(&received).is_err_and(|error| error.contains("other bytes")));
        let received = Message { bytes: message(0, 100), delivery: Delivery::RELIABLE };
        assert!(arrived.take(&received).is_err_and(|error| error.contains("came")));
    }
}
