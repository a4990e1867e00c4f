//! The clients of the soak.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rakwire_native::{Connection, Delivery, Endpoint, Options, id};

use crate::Totals;

/// The reliabilities of the messages. Echoes of the last two reliabilities arrive exactly once; echoes of the last
/// one also arrive in order.
const DELIVERIES: [Delivery; 4] =
    [Delivery::UNRELIABLE, Delivery::UNRELIABLE_SEQUENCED, Delivery::RELIABLE, Delivery::RELIABLE_ORDERED];

/// The maximum time until an echo arrives, far above any round trip over this lossy network on a slow machine.
const ECHO: Duration = Duration::from_secs(60);

/// Runs one session after another until the soak is over.
pub(crate) async fn run(server: SocketAddr, seed: u64, totals: Arc<Totals>) {
    let mut random = Random::new(seed);
    while !totals.is_over.load(Ordering::Relaxed) {
        match session(server, &mut random).await {
            Ok(echoes) => totals.echoes.fetch_add(echoes, Ordering::Relaxed),
            Err(error) => {
                println!("client {seed}: {error}");
                totals.broken.fetch_add(1, Ordering::Relaxed)
            }
        };
        totals.sessions.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) type SessionError = Box<dyn std::error::Error + Send + Sync>;

/// Connects, sends some messages, waits for the last ordered echo, and leaves.
pub(crate) async fn session(server: SocketAddr, random: &mut Random) -> Result<u64, SessionError> {
    let endpoint = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    let connection = endpoint.connect(server).await?;
    let count = 20 + random.below(200);
    let due = Mutex::new(Due::default());
    let sending = async {
        for number in 0..count {
            let delivery = match number + 1 == count {
                true => Delivery::RELIABLE_ORDERED,
                false => random.of(&DELIVERIES),
            };
            let longest = if random.below(50) == 0 { 100_000 } else { 1_200 };
            let message = message(number, random.below(longest));
            lock(&due).sent(number, delivery);
            connection.send(&message, delivery).await?;
            if random.below(8) == 0 {
                tokio::time::sleep(Duration::from_millis(random.below(40))).await;
            }
        }
        Ok::<(), rakwire_native::SendError>(())
    };
    let (sent, echoes) = tokio::join!(sending, receive(&connection, count, &due));
    sent?;
    let echoes = echoes?;
    // A third of the clients vanish without a disconnect, so the server must time them out.
    if random.below(3) > 0 {
        connection.disconnect().await;
    }
    Ok(echoes)
}

/// The numbers of the messages with an outstanding echo. RakNet resends the fragments of long unreliable messages,
/// so their echoes arrive like reliable ones. The number of a message determines its reliability.
#[derive(Debug, Default)]
struct Due {
    ordered: VecDeque<u64>,
    unordered: BTreeSet<u64>,
    unreliable: BTreeSet<u64>,
}

impl Due {
    fn sent(&mut self, number: u64, delivery: Delivery) {
        match delivery {
            Delivery::RELIABLE_ORDERED => self.ordered.push_back(number),
            Delivery::RELIABLE => drop(self.unordered.insert(number)),
            _ => drop(self.unreliable.insert(number)),
        }
    }

    /// Returns an error if the echo `number` is a duplicate or out of order.
    fn arrived(&mut self, number: u64) -> Result<(), String> {
        if self.ordered.front() == Some(&number) {
            self.ordered.pop_front();
        } else if !self.unordered.remove(&number) && !self.unreliable.remove(&number) {
            return Err(format!("the echo {number} is not due: {self:?}"));
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.ordered.is_empty() && self.unordered.is_empty()
    }
}

fn lock(due: &Mutex<Due>) -> MutexGuard<'_, Due> {
    due.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Receives echoes until all reliable messages have come back.
async fn receive(connection: &Connection, count: u64, due: &Mutex<Due>) -> Result<u64, String> {
    let (mut echoes, mut is_last) = (0, false);
    while !is_last || !lock(due).is_complete() {
        let echo = tokio::time::timeout(ECHO, connection.recv())
            .await
            .map_err(|_elapsed| format!("no echo for {ECHO:?}: {:?}", lock(due)))?
            .ok_or_else(|| format!("disconnected: {:?}", connection.closed_reason()))?;
        let number = number(&echo.bytes).ok_or("an echo with other bytes")?;
        echoes += 1;
        lock(due).arrived(number)?;
        is_last |= number + 1 == count;
    }
    Ok(echoes)
}

/// Creates a message: an id, the number, and padding that repeats the lowest byte of the number.
fn message(number: u64, padding: u64) -> Vec<u8> {
    let [low, ..] = number.to_le_bytes();
    let mut message = vec![id::USER];
    message.extend(number.to_le_bytes());
    message.resize(message.len() + usize::try_from(padding).unwrap_or_default(), low);
    message
}

/// Returns the number of a message, or `None` if any byte has changed.
fn number(message: &[u8]) -> Option<u64> {
    let (&id::USER, rest) = message.split_first()? else { return None };
    let (number, padding) = rest.split_first_chunk::<8>()?;
    let [low, ..] = *number;
    padding.iter().all(|&byte| byte == low).then(|| u64::from_le_bytes(*number))
}

/// A xorshift generator, which makes the sessions of a client different and all runs the same.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn of(&mut self, deliveries: &[Delivery; 4]) -> Delivery {
        deliveries[self.below(4) as usize % 4]
    }
}
