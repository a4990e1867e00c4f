//! The state of a peer outside its connections, and responses to unconnected peers.
//!
//! No state is kept for a source address until it is validated.

use core::hash::Hasher;
use core::net::SocketAddr;

use heapless::Deque;
use siphasher::sip::SipHasher24;

use super::config::{Config, DropReason, GameProtocol};
use super::wire::{HandshakeWord, Header};
use crate::cookie;
use crate::cursor::Writer;
use crate::endpoint::{self, ConnectionTable, Occupant, PeerStats};
use crate::rate_limit::{RateLimit, Rates};
use crate::storage::{BoundedQueue, Ring};
use crate::time::Instant;

/// A queued acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledgement {
    pub(crate) slot: u16,
    pub(crate) generation: u32,
    pub(crate) sequence: u16,
    pub(crate) chunk: u8,
}

/// The state of a peer outside its connections.
#[derive(Debug)]
pub(crate) struct State<'a> {
    pub(super) responder: StatelessResponder,
    pub(super) acknowledgements: Ring<'a, Acknowledgement>,
    /// The first sequence of new connections.
    pub(super) first_sequence: u16,
}

impl<'a> State<'a> {
    /// Creates the state of a new peer.
    #[inline(always)] // avoids a copy of the value
    pub(super) fn new(acknowledgements: Ring<'a, Acknowledgement>) -> Self {
        Self { responder: StatelessResponder::default(), acknowledgements, first_sequence: 0 }
    }

    /// Writes the next queued acknowledgement for a connection that still exists.
    pub(super) fn poll_acknowledgement<C: Default + Occupant>(
        &mut self,
        connections: &ConnectionTable<'_, C>,
        writer: &mut Writer<'_>,
    ) -> Option<SocketAddr> {
        loop {
            let due = self.acknowledgements.pop()?;
            let slot = connections
                .slot(due.slot)
                .filter(|slot| slot.generation == due.generation && !slot.connection.is_over());
            if let Some(remote) = slot.and_then(|slot| slot.remote) {
                let header = Header::Acknowledgement { chunk: due.chunk, sequence: due.sequence };
                return header.write(writer).ok().map(|()| remote);
            }
        }
    }
}

impl endpoint::State<GameProtocol> for State<'_> {
    fn is_idle(&self) -> bool {
        self.acknowledgements.is_empty() && self.responder.is_idle()
    }
}

/// The memory of [`State`].
#[derive(Debug)]
pub(crate) struct Storage<const BLOCKS: usize>(Deque<Acknowledgement, BLOCKS>);

impl<const BLOCKS: usize> endpoint::Storage<GameProtocol> for Storage<BLOCKS> {
    const EMPTY: Self = Self(Deque::new());

    fn lend(&mut self) -> Ring<'_, Acknowledgement> {
        self.0.clear();
        Ring::Borrowed(&mut self.0)
    }

    #[cfg(feature = "alloc")]
    fn allocate(_connections: usize, blocks: usize) -> Ring<'static, Acknowledgement> {
        Ring::Owned { queue: alloc::collections::VecDeque::with_capacity(blocks), capacity: blocks }
    }
}

/// True if incoming connections are supported (feature `server`).
pub(super) const SERVER: bool = cfg!(feature = "server");
/// The capacity of the queue of responses; a further response replaces the oldest.
const ANSWERS: usize = match (SERVER, cfg!(feature = "alloc")) {
    (true, true) => 256,
    (true, false) => 16,
    (false, _) => 1,
};
/// The mask of the fixed bits of a salt; [`SALT_MARK`] is their value.
///
/// With these bits, neither the salt nor the pepper that a server of this crate derives from it looks like a packet
/// header.
const SALT_MASK: u32 = 0xC000_0000;
const SALT_MARK: u32 = 0x4000_0000;

/// A response to an unconnected peer.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// A challenge; the correct answer to it validates the peer's address.
    Challenge(HandshakeWord),
    /// A refusal: the server is full.
    End,
}

/// The stateless part of a peer: a short queue of responses.
#[derive(Debug, Default)]
pub(super) struct StatelessResponder {
    answers: BoundedQueue<(SocketAddr, Answer), ANSWERS>,
    limit: RateLimit,
    salts: u64,
}

/// Returns the two answers (salt XOR pepper) that validate an address at `now`.
///
/// The pepper is derived such that the correct answer does not depend on the salt, so the server stores no salt
/// (docs/game-protocol.md#stateless-handshake).
fn seasonings(config: &Config, address: &SocketAddr, now: Instant) -> [HandshakeWord; 2] {
    cookie::live(&config.secret, address, now).map(HandshakeWord::repeatable)
}

/// Returns true if `answer` is correct for a challenge of this peer to `address`.
pub(super) fn is_proof(config: &Config, address: &SocketAddr, now: Instant, answer: HandshakeWord) -> bool {
    let [current, previous] = seasonings(config, address, now);
    (answer == current) | (answer == previous)
}

/// Returns the rate limits of challenges.
pub(super) const fn challenge_rates(config: &Config) -> Rates {
    Rates { all: config.challenges_per_second, network: config.challenges_per_network, address: 0 }
}

impl StatelessResponder {
    /// Challenges an unconnected peer that sent `salt`, unless the rate of its network or the total rate is used up.
    ///
    /// If this peer shares admission with others, `is_admitted` replaces its own rate limit.
    pub(super) fn challenge(
        &mut self,
        config: &Config,
        stats: &mut PeerStats<DropReason>,
        now: Instant,
        to: SocketAddr,
        salt: HandshakeWord,
        is_admitted: Option<bool>,
    ) {
        let alone = || self.limit.admits(&config.secret, challenge_rates(config), now, to.ip());
        if !is_admitted.unwrap_or_else(alone) {
            stats.drop(DropReason::ChallengeLimit);
            return;
        }
        let [seasoning, _] = seasonings(config, &to, now);
        self.answer(stats, to, Answer::Challenge(salt.season(seasoning)));
    }

    /// Queues a refusal to a client.
    pub(super) fn reject(&mut self, stats: &mut PeerStats<DropReason>, to: SocketAddr) {
        self.answer(stats, to, Answer::End);
    }

    fn answer(&mut self, stats: &mut PeerStats<DropReason>, to: SocketAddr, answer: Answer) {
        if self.answers.is_full() {
            self.answers.pop();
            stats.drop(DropReason::AnswersFull);
        }
        self.answers.push((to, answer));
    }

    fn is_idle(&self) -> bool {
        self.answers.is_empty()
    }

    /// Writes the next queued response and returns its destination.
    pub(super) fn poll_transmit(&mut self, writer: &mut Writer<'_>) -> Option<SocketAddr> {
        let (to, answer) = self.answers.pop()?;
        let written = match answer {
            Answer::Challenge(pepper) => pepper.write(writer),
            Answer::End => Header::End.write(writer),
        };
        written.ok().map(|()| to)
    }

    /// Returns an unpredictable salt.
    pub(super) fn salt(&mut self, config: &Config) -> u32 {
        self.salts += 1;
        let mut hasher = SipHasher24::new_with_key(&config.salt_key);
        hasher.write_u64(self.salts);
        let random = u32::try_from(hasher.finish() >> 32).unwrap_or(0);
        random & !SALT_MASK | SALT_MARK
    }
}
