//! Registered functions and slots.

use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::endpoint::ConnectionId;
use rakwire::wire::WireError;

/// Returns true if a peer may call a function. Called before the arguments are read.
pub type IsAllowed<C> = fn(&C, ConnectionId) -> bool;

/// Handles a call or a signal. The peer is blocked while the handler runs, so the handler must be short. An error
/// means that the arguments are invalid.
pub type Handle<C> = fn(&mut C, ConnectionId, &mut BitStreamReader<'_>) -> Result<(), WireError>;

/// Handles a call of a function with an answer. On an error, the caller receives the error for an unknown function,
/// because RPC4 has no other error.
pub type HandleAnswered<C> =
    fn(&mut C, ConnectionId, &mut BitStreamReader<'_>, &mut BitStreamWriter<'_>) -> Result<(), WireError>;

/// The kinds of handlers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run<C> {
    Function(Handle<C>),
    Answered(HandleAnswered<C>),
    /// A slot and its order.
    Slot(i32, Handle<C>),
}

/// A handler and its name. Several slots may have the same name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registered<C> {
    pub(super) name: &'static str,
    pub(super) is_allowed: IsAllowed<C>,
    pub(super) run: Run<C>,
}

impl<C> Registered<C> {
    /// Returns true if `other` cannot be registered together with this handler.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        let is_same_kind = match (&self.run, &other.run) {
            (Run::Function(_), Run::Function(_)) | (Run::Answered(_), Run::Answered(_)) => true,
            (Run::Function(_) | Run::Answered(_) | Run::Slot(..), _) => false,
        };
        is_same_kind && self.name == other.name
    }

    /// Returns true if both handlers are slots and `other` runs first.
    pub(super) fn runs_after(&self, other: &Self) -> bool {
        match (&self.run, &other.run) {
            (Run::Slot(order, _), Run::Slot(of_other, _)) => order < of_other,
            (Run::Function(_) | Run::Answered(_) | Run::Slot(..), _) => false,
        }
    }
}
