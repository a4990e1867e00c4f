//! What can be called, and who does what is called.

use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::codec::rabbit::{Pack, Unpack, pack, unpack};
use rakwire::endpoint::ConnectionId;
use rakwire::wire::WireError;

use super::wire::Refusal;

/// A function or a signal as both peers know it: its name, and the types of what is passed. The module has an example.
pub trait Function {
    /// The name, 1 to [`MAX_NAME`](super::MAX_NAME) bytes.
    const NAME: &'static str;
    /// What it is called with.
    type Arguments<'a>: Pack + Unpack<'a>;
    /// What it answers; `()` of a signal.
    type Answer<'a>: Pack + Unpack<'a>;
}

/// What does the work when a function is called or a signal is given. `C` is what the application lets it work on.
pub trait Handler<F: Function, C> {
    /// Whether a peer may call this. It is asked before the arguments are looked at.
    fn is_allowed(context: &C, caller: ConnectionId) -> bool;

    /// Does what was asked for. It runs while the peer waits, so it should be short.
    ///
    /// # Errors
    /// A [`Refusal`], by custom [`Refusal::Failed`] with a code. The caller learns of it, except of that of a signal.
    fn handle<'c>(
        context: &'c mut C,
        caller: ConnectionId,
        arguments: F::Arguments<'_>,
    ) -> Result<F::Answer<'c>, Refusal>;
}

/// Reads the arguments of a call or a signal, does what it asks for, and writes the answer; what it writes for a signal goes
/// nowhere. It runs while the peer waits, so it should be short. [`WireError::NoRoom`] becomes [`Refusal::AnswerTooLong`], any other
/// error [`Refusal::BadArguments`], by whichever of both it is: what the writer refuses of an answer is better mapped to
/// [`Refusal::Failed`].
pub type HandleBits<C> =
    fn(&mut C, ConnectionId, &mut BitStreamReader<'_>, &mut BitStreamWriter<'_>) -> Result<(), Refusal>;

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Self {
        if error == WireError::NoRoom { Self::AnswerTooLong } else { Self::BadArguments }
    }
}

/// Runs a handler with packed arguments, and gives the length of its packed answer.
type HandlePacked<C> = fn(&mut C, ConnectionId, &[u8], &mut [u8]) -> Result<usize, Refusal>;

/// What runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run<C> {
    Rabbit(HandlePacked<C>),
    Bits(HandleBits<C>),
}

/// What is registered under a name. Several signal handlers may have one name.
#[derive(Debug)]
pub(super) struct Registered<C> {
    pub(super) name: &'static str,
    pub(super) order: Option<i32>,
    pub(super) is_allowed: fn(&C, ConnectionId) -> bool,
    pub(super) run: Run<C>,
}

impl<C> Registered<C> {
    pub(super) const fn new<F: Function, H: Handler<F, C>>(order: Option<i32>) -> Self {
        Self { name: F::NAME, order, is_allowed: H::is_allowed, run: Run::Rabbit(run::<C, F, H>) }
    }

    /// Runs the handler, and gives the length of its answer at the front of the buffer.
    pub(super) fn run(
        &self,
        context: &mut C,
        caller: ConnectionId,
        arguments: &[u8],
        answer: &mut [u8],
    ) -> Result<usize, Refusal> {
        match self.run {
            Run::Rabbit(run) => run(context, caller, arguments, answer),
            Run::Bits(handle) => run_bits(handle, context, caller, arguments, answer),
        }
    }
}

/// Calls a handler with packed arguments, and packs its answer to the front of a buffer.
fn run<C, F: Function, H: Handler<F, C>>(
    context: &mut C,
    caller: ConnectionId,
    arguments: &[u8],
    answer: &mut [u8],
) -> Result<usize, Refusal> {
    let arguments = unpack(arguments).map_err(|_| Refusal::BadArguments)?;
    let value = H::handle(context, caller, arguments)?;
    pack(&value, answer).map(<[u8]>::len).map_err(|_| Refusal::AnswerTooLong)
}

/// Calls a handler of bit streams, and gives the length of its answer.
fn run_bits<C>(
    handle: HandleBits<C>,
    context: &mut C,
    caller: ConnectionId,
    arguments: &[u8],
    answer: &mut [u8],
) -> Result<usize, Refusal> {
    let mut writer = BitStreamWriter::new(answer);
    handle(context, caller, &mut BitStreamReader::new(arguments), &mut writer)?;
    Ok(writer.finish().len())
}
