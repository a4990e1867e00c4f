//! What can be called.

use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::endpoint::ConnectionId;
use rakwire::wire::WireError;

/// Whether a peer may call something. It is asked before the arguments are looked at.
pub type IsAllowed<C> = fn(&C, ConnectionId) -> bool;

/// Does what a call or a signal asks for. It runs while the peer waits, so it should be short. An error says that the arguments
/// are not those of the function.
pub type Handle<C> = fn(&mut C, ConnectionId, &mut BitStreamReader<'_>) -> Result<(), WireError>;

/// The same of a function that answers. When it fails, the caller is told that there is no such function: the original has no
/// other error.
pub type HandleAnswered<C> =
    fn(&mut C, ConnectionId, &mut BitStreamReader<'_>, &mut BitStreamWriter<'_>) -> Result<(), WireError>;

/// What runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run<C> {
    Function(Handle<C>),
    Answered(HandleAnswered<C>),
    /// With its order.
    Slot(i32, Handle<C>),
}

/// What is registered under a name. Several slots may have one name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registered<C> {
    pub(super) name: &'static str,
    pub(super) is_allowed: IsAllowed<C>,
    pub(super) run: Run<C>,
}

impl<C> Registered<C> {
    /// Whether the other one cannot be registered beside this one.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        let is_same_kind = match (&self.run, &other.run) {
            (Run::Function(_), Run::Function(_)) | (Run::Answered(_), Run::Answered(_)) => true,
            (Run::Function(_) | Run::Answered(_) | Run::Slot(..), _) => false,
        };
        is_same_kind && self.name == other.name
    }

    /// Whether both are slots, and the other one runs before this one.
    pub(super) fn runs_after(&self, other: &Self) -> bool {
        match (&self.run, &other.run) {
            (Run::Slot(order, _), Run::Slot(of_other, _)) => order < of_other,
            (Run::Function(_) | Run::Answered(_) | Run::Slot(..), _) => false,
        }
    }
}
