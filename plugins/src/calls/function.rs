//! Functions and signals that can be called, and their handlers.

use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::codec::rabbit::{Pack, Unpack, pack, unpack};
use rakwire::endpoint::ConnectionId;
use rakwire::wire::WireError;

use super::schema::Schema;
use super::wire::Refusal;

/// The interface of a function or a signal, shared by both peers: its name and its types. The module documentation has
/// an example.
pub trait Function {
    /// The name, 1 to [`MAX_NAME`](super::MAX_NAME) bytes.
    const NAME: &'static str;
    /// The type of the arguments.
    type Arguments<'a>: Pack + Unpack<'a>;
    /// The type of the answer; `()` for a signal.
    type Answer<'a>: Pack + Unpack<'a>;
}

/// The handler of a function or a signal. `C` is the context that the application provides.
pub trait Handler<F: Function, C> {
    /// Returns true if `caller` may call this function. Called before the arguments are decoded.
    fn is_allowed(context: &C, caller: ConnectionId) -> bool;

    /// Handles a call or a signal. The peer is blocked while the handler runs, so the handler must be short.
    ///
    /// # Errors
    /// Returns a [`Refusal`], by convention [`Refusal::Failed`] with a code. The refusal is sent to the caller of a
    /// function, but not to the sender of a signal.
    fn handle<'c>(
        context: &'c mut C,
        caller: ConnectionId,
        arguments: F::Arguments<'_>,
    ) -> Result<F::Answer<'c>, Refusal>;
}

/// The handler of a function that is answered later.
///
/// The application answers the pending call with [`RemoteCalls::answer`](super::RemoteCalls::answer) or
/// [`RemoteCalls::refuse`](super::RemoteCalls::refuse).
pub trait DeferredHandler<F: Function, C> {
    /// Returns true if `caller` may call this function, like [`Handler::is_allowed`].
    fn is_allowed(context: &C, caller: ConnectionId) -> bool;

    /// Starts to handle a call, which stays pending. The peer is blocked while the handler runs, so the handler must
    /// be short.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if the call can be refused immediately.
    fn begin(context: &mut C, pending: PendingCall, arguments: F::Arguments<'_>) -> Result<(), Refusal>;
}

/// A call that is answered later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PendingCall {
    pub(super) number: u32,
    pub(super) caller: ConnectionId,
}

impl PendingCall {
    /// Returns the connection of the caller.
    #[must_use]
    pub const fn caller(self) -> ConnectionId {
        self.caller
    }
}

/// Reads the arguments of a call or signal, handles it, and writes the answer, which is ignored for a signal. The
/// peer is blocked while the function runs, so the function must be short. The error [`WireError::NoRoom`] becomes
/// [`Refusal::AnswerTooLong`], and any other error [`Refusal::BadArguments`]. Map other errors of the writer to
/// [`Refusal::Failed`].
pub type HandleBits<C> =
    fn(&mut C, ConnectionId, &mut BitStreamReader<'_>, &mut BitStreamWriter<'_>) -> Result<(), Refusal>;

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Self {
        if error == WireError::NoRoom { Self::AnswerTooLong } else { Self::BadArguments }
    }
}

/// Runs a handler with encoded arguments, and returns the length of its encoded answer.
type HandlePacked<C> = fn(&mut C, ConnectionId, &[u8], &mut [u8]) -> Result<usize, Refusal>;

/// Runs a deferred handler with encoded arguments.
type BeginPacked<C> = fn(&mut C, PendingCall, &[u8]) -> Result<(), Refusal>;

/// The kinds of handlers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run<C> {
    Rabbit(HandlePacked<C>),
    Bits(HandleBits<C>),
    Later(BeginPacked<C>),
}

/// The immediate result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// The length of the answer, in bytes.
    Answer(usize),
    Later,
}

/// A handler and its name. Several signal handlers may share a name.
#[derive(Debug)]
pub(super) struct Registered<C> {
    pub(super) name: &'static str,
    pub(super) order: Option<i32>,
    /// The expected fingerprint of callers that send one; `None` accepts every fingerprint.
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

    pub(super) fn later<F: Function, H: DeferredHandler<F, C>>() -> Self {
        let (schema, run) = (
            Schema::of_function::<F::Arguments<'static>, F::Answer<'static>>(),
            Run::Later(begin::<C, F, H>),
        );
        Self { name: F::NAME, order: None, schema, is_allowed: H::is_allowed, run }
    }

    /// Returns the arguments of a message without their fingerprint.
    ///
    /// Returns [`Refusal::SchemaMismatch`] if the caller sent a different fingerprint.
    pub(super) fn arguments<'m>(&self, arguments: &'m [u8]) -> Result<&'m [u8], Refusal> {
        let Some(own) = self.schema else { return Ok(arguments) };
        match Schema::split(self.name.as_bytes(), arguments) {
            (_, Some(schema)) if schema != own => Err(Refusal::SchemaMismatch),
            (arguments, _) => Ok(arguments),
        }
    }

    pub(super) const fn is_later(&self) -> bool {
        matches!(self.run, Run::Later(_))
    }

    /// Runs the handler. An immediate answer is written to the start of the buffer.
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

/// Runs a handler with encoded arguments, and encodes its answer at the start of a buffer.
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

/// Runs a deferred handler with encoded arguments.
fn begin<C, F: Function, H: DeferredHandler<F, C>>(
    context: &mut C,
    pending: PendingCall,
    arguments: &[u8],
) -> Result<(), Refusal> {
    H::begin(context, pending, unpack(arguments).map_err(|_| Refusal::BadArguments)?)
}

/// Runs a handler of bit streams, and returns the length of its answer.
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
