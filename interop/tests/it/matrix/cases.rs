//! The cells of the matrix, and their expected results.

use std::fmt;
use std::time::Duration;

use rakwire_native::Reliability;

use super::foreign::Peer;

/// The role of the foreign program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    Client,
}

pub(crate) const ROLES: [Role; 2] = [Role::Server, Role::Client];

/// The path between the two peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Clean,
    Lossy,
}

/// The messages that are sent and echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) reliability: Reliability,
    pub(crate) count: u32,
    pub(crate) size: usize,
    pub(crate) path: Path,
}

impl Case {
    const fn many(reliability: Reliability, path: Path) -> Self {
        Self { reliability, count: 10_000, size: 100, path }
    }

    const fn large(path: Path) -> Self {
        Self { reliability: Reliability::ReliableOrdered, count: 1, size: 1_000_000, path }
    }

    /// Every case, in the order of the table.
    pub(crate) fn all() -> Vec<Self> {
        use Reliability as R;
        let five =
            [R::Unreliable, R::UnreliableSequenced, R::Reliable, R::ReliableOrdered, R::ReliableSequenced];
        let receipts = [R::UnreliableWithReceipt, R::ReliableWithReceipt, R::ReliableOrderedWithReceipt];
        let clean = five.into_iter().chain(receipts).map(|one| Self::many(one, Path::Clean));
        let lossy = five.map(|one| Self::many(one, Path::Lossy));
        clean.chain([Self::large(Path::Clean)]).chain(lossy).chain([Self::large(Path::Lossy)]).collect()
    }

    pub(crate) const fn is_large(&self) -> bool {
        self.count == 1
    }

    /// Returns the reliability on the wire: receipts are local.
    pub(crate) const fn on_wire(&self) -> Reliability {
        match self.reliability {
            Reliability::UnreliableWithReceipt => Reliability::Unreliable,
            Reliability::ReliableWithReceipt => Reliability::Reliable,
            Reliability::ReliableOrderedWithReceipt => Reliability::ReliableOrdered,
            Reliability::Unreliable
            | Reliability::UnreliableSequenced
            | Reliability::Reliable
            | Reliability::ReliableOrdered
            | Reliability::ReliableSequenced => self.reliability,
        }
    }

    /// Returns true if messages may be lost without breaking a guarantee.
    pub(crate) const fn may_lose(&self) -> bool {
        let reliability = self.on_wire();
        reliability.is_sequenced() || !reliability.is_reliable()
    }

    /// Returns the number of messages that must be echoed for the cell to be meaningful.
    pub(crate) const fn least(&self) -> u32 {
        if self.may_lose() { self.count / 10 } else { self.count }
    }
}

/// Returns the name of a reliability for the foreign programs.
pub(crate) const fn name(reliability: Reliability) -> &'static str {
    match reliability {
        Reliability::Unreliable => "unreliable",
        Reliability::UnreliableSequenced => "unreliable-sequenced",
        Reliability::Reliable => "reliable",
        Reliability::ReliableOrdered => "reliable-ordered",
        Reliability::ReliableSequenced => "reliable-sequenced",
        Reliability::UnreliableWithReceipt => "unreliable-with-receipt",
        Reliability::ReliableWithReceipt => "reliable-with-receipt",
        Reliability::ReliableOrderedWithReceipt => "reliable-ordered-with-receipt",
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name(self.reliability).replace('-', " ");
        let what = if self.is_large() { "1 × 1 MB" } else { "10,000 × 100 B" };
        let path = match self.path {
            Path::Clean => "",
            Path::Lossy => ", 5 % loss",
        };
        write!(f, "{what}, {name}{path}")
    }
}

/// A cell of the matrix: a case with a foreign peer in one role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) peer: &'static Peer,
    pub(crate) role: Role,
    pub(crate) case: Case,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {:?}, {}", self.peer.name, self.role, self.case)
    }
}

/// The expectation for a cell before it is run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    Pass,
    /// The peer has no API for the case, for this reason.
    Impossible(&'static str),
    /// The peer fails in this way, always or occasionally.
    Limit {
        why: &'static str,
        symptom: &'static str,
        always: bool,
    },
}

impl Cell {
    /// Returns the time limit of the cell. A peer that is known to fail may also stall, which takes the whole
    /// limit.
    pub(crate) fn time_limit(&self) -> Duration {
        match self.expected() {
            Expected::Pass | Expected::Impossible(_) => Duration::from_secs(300),
            Expected::Limit { .. } => Duration::from_secs(60),
        }
    }

    /// Returns the reliability with which the peer's server echoes.
    pub(crate) fn echo(&self) -> Reliability {
        if self.peer.receipts { self.case.reliability } else { self.case.on_wire() }
    }

    /// The limits of the peers, as `interop/README.md` documents them. Every other cell must pass.
    pub(crate) fn expected(&self) -> Expected {
        let asks_receipts = self.role == Role::Client && self.case.reliability.has_receipt();
        if asks_receipts && !self.peer.receipts {
            return Expected::Impossible("its API has no receipts");
        }
        if self.peer.name == "python" && self.case.is_large() {
            return Expected::Limit {
                why: "reassembles split messages in arrival order",
                symptom: "the bytes of the message in another order",
                // Without loss the parts may or may not arrive in order.
                always: self.case.path == Path::Lossy,
            };
        }
        Expected::Pass
    }
}
