//! What can be called, and who does what is called.

use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::codec::rabbit::{Pack, Unpack, pack, unpack};
use rakwire::endpoint::ConnectionId;
use rakwire::wire::WireError;

use super::schema::Schema;
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

/// What begins the work of a function whose answer comes later: by
/// [`RemoteCalls::answer`](super::RemoteCalls::answer) or [`RemoteCalls::refuse`](super::RemoteCalls::refuse), with the pending call.
pub trait LaterHandler<F: Function, C> {
    /// As [`Handler::is_allowed`].
    fn is_allowed(context: &C, caller: ConnectionId) -> bool;

    /// Begins what was asked for, and keeps the pending call. It runs while the peer waits, so it should be short.
    ///
    /// # Errors
    /// A [`Refusal`], if it is clear already that nothing comes of it.
    fn begin(context: &mut C, pending: PendingCall, arguments: F::Arguments<'_>) -> Result<(), Refusal>;
}

/// A call that is answered later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PendingCall {
    pub(super) number: u32,
    pub(super) caller: ConnectionId,
}

impl PendingCall {
    /// Whose call it is.
    #[must_use]
    pub const fn caller(self) -> ConnectionId {
        self.caller
    }
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

/// Runs a handler with packed arguments that is answered later.
type BeginPacked<C> = fn(&mut C, PendingCall, &[u8]) -> Result<(), Refusal>;

/// What runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run<C> {
    Rabbit(HandlePacked<C>),
    Bits(HandleBits<C>),
    Later(BeginPacked<C>),
}

/// What has come of a call at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// The length of the answer.
    Answer(usize),
    Later,
}

/// What is registered under a name. Several signal handlers may have one name.
#[derive(Debug)]
pub(super) struct Registered<C> {
    pub(super) name: &'static str,
    pub(super) order: Option<i32>,
    /// What callers with fingerprints must have; `None` if everything is accepted.
    pub(super) schema: Option<Schema>,
    pub(super) is_allowed: fn(&C, ConnectionId) -> bool,
    pub(super) run: Run<C>,
}

impl<C> Registered<C> {
    pub(super) fn new<F: Function, H: Handler<F, C>>(order: Option<i32>) -> Self {
        let schema = if order.is_some() {
            Schema::of_signal::<F::Arguments<'static>>()
        } else {
            Schema::of_function::<F::Arguments<'static>, F::Answer<'static>>()
        };
        Self { name: F::NAME, order, schema, is_allowed: H::is_allowed, run: Run::Rabbit(run::<C, F, H>) }
    }

    pub(super) fn later<F: Function, H: LaterHandler<F, C>>() -> Self {
        let (schema, run) = (
            Schema::of_function::<F::Arguments<'static>, F::Answer<'static>>(),
            Run::Later(begin::<C, F, H>),
        );
        Self { name: F::NAME, order: None, schema, is_allowed: H::is_allowed, run }
    }

    /// The arguments in a message, without a fingerprint.
    ///
    /// # Errors
    /// [`Refusal::OtherSchema`] if the caller has another one.
    pub(super) fn arguments<'m>(&self, arguments: &'m [u8]) -> Result<&'m [u8], Refusal> {
        let Some(own) = self.schema else { return Ok(arguments) };
        match Schema::split(self.name.as_bytes(), arguments) {
            (_, Some(schema)) if schema != own => Err(Refusal::OtherSchema),
            (arguments, _) => Ok(arguments),
        }
    }

    pub(super) const fn is_later(&self) -> bool {
        matches!(self.run, Run::Later(_))
    }

    /// Runs the handler, whose answer is at the front of the buffer then, or comes later.
    pub(super) fn run(
        &self,
        context: &mut C,
        pending: PendingCall,
        arguments: &[u8],
        answer: &mut [u8],
    ) -> Result<Ran, Refusal> {
        match self.run {
            Run::Rabbit(run) => run(context, pending.caller, arguments, answer).map(Ran::Answer),
            Run::Bits(handle) => {
                run_bits(handle, context, pending.caller, arguments, answer).map(Ran::Answer)
            }
            Run::Later(begin) => begin(context, pending, arguments).map(|()| Ran::Later),
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

/// Calls a handler that is answered later with packed arguments.
fn begin<C, F: Function, H: LaterHandler<F, C>>(
    context: &mut C,
    pending: PendingCall,
    arguments: &[u8],
) -> Result<(), Refusal> {
    H::begin(context, pending, unpack(arguments).map_err(|_| Refusal::BadArguments)?)
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
