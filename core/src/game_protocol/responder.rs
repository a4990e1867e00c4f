//! What a peer of the Game Protocol keeps beside its connections, and the answers to those that are not connected. Nothing is
//! kept of a source before its address is proved.

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

/// An acknowledgement that waits to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledgement {
    pub(crate) slot: u16,
    pub(crate) generation: u32,
    pub(crate) sequence: u16,
    pub(crate) chunk: u8,
}

/// What a peer keeps beside its connections.
#[derive(Debug)]
pub(crate) struct State<'a> {
    pub(super) responder: StatelessResponder,
    pub(super) acknowledgements: Ring<'a, Acknowledgement>,
    /// Where the sequences of new connections start.
    pub(super) first_sequence: u16,
}

impl<'a> State<'a> {
    /// The state of a new peer.
    #[inline(always)] // or it is copied
    pub(super) fn new(acknowledgements: Ring<'a, Acknowledgement>) -> Self {
        Self { responder: StatelessResponder::default(), acknowledgements, first_sequence: 0 }
    }

    /// Writes the next acknowledgement of a connection that still exists.
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
        Ring::Lent(&mut self.0)
    }

    #[cfg(feature = "alloc")]
    fn allocate(_connections: usize, blocks: usize) -> Ring<'static, Acknowledgement> {
        Ring::Owned { queue: alloc::collections::VecDeque::with_capacity(blocks), capacity: blocks }
    }
}

/// Others may connect to this peer (feature `server`).
pub(super) const SERVER: bool = cfg!(feature = "server");
/// Answers that wait to be sent; a further one pushes the oldest out.
const ANSWERS: usize = match (SERVER, cfg!(feature = "alloc")) {
    (true, true) => 256,
    (true, false) => 16,
    (false, _) => 1,
};
/// The bits of a salt that are fixed, and their value: no header looks like such a salt, and the pepper that a server
/// of this crate makes of it looks like no header either.
const SALT_MASK: u32 = 0xC000_0000;
const SALT_MARK: u32 = 0x4000_0000;

/// An answer to a peer without a connection.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// The peer must prove its address.
    Challenge(HandshakeWord),
    /// There is no place for it.
    End,
}

/// What the stateless side of a peer keeps: a few answers, whoever they are for.
#[derive(Debug, Default)]
pub(super) struct StatelessResponder {
    answers: BoundedQueue<(SocketAddr, Answer), ANSWERS>,
    limit: RateLimit,
    salts: u64,
}

/// The seasonings that prove an address at a time: the pepper is made such that the right answer depends on nothing but
/// these, so no salt is kept (docs/game-protocol.md#stateless-handshake).
fn seasonings(config: &Config, address: &SocketAddr, now: Instant) -> [HandshakeWord; 2] {
    cookie::live(&config.secret, address, now).map(HandshakeWord::repeatable)
}

/// Whether `answer` is what a client at `address` finds out from a challenge of this peer.
pub(super) fn is_proof(config: &Config, address: &SocketAddr, now: Instant, answer: HandshakeWord) -> bool {
    let [current, previous] = seasonings(config, address, now);
    (answer == current) | (answer == previous)
}

/// How many challenges a second there are.
pub(super) const fn challenge_rates(config: &Config) -> Rates {
    Rates { all: config.challenges_per_second, network: config.challenges_per_network, address: 0 }
}

impl StatelessResponder {
    /// Challenges a peer without a connection that sent `salt`, unless the limit of its network or of all is reached.
    /// `is_admitted` says so if this peer does not decide that alone.
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

    /// Tells a client that there is no place for it.
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

    /// Writes the next answer and returns where it goes.
    pub(super) fn poll_transmit(&mut self, writer: &mut Writer<'_>) -> Option<SocketAddr> {
        let (to, answer) = self.answers.pop()?;
        let written = match answer {
            Answer::Challenge(pepper) => pepper.write(writer),
            Answer::End => Header::End.write(writer),
        };
        written.ok().map(|()| to)
    }

    /// A salt that nobody can guess.
    pub(super) fn salt(&mut self, config: &Config) -> u32 {
        self.salts += 1;
        let mut hasher = SipHasher24::new_with_key(&config.salt_key);
        hasher.write_u64(self.salts);
        let random = u32::try_from(hasher.finish() >> 32).unwrap_or(0);
        random & !SALT_MASK | SALT_MARK
    }
}
