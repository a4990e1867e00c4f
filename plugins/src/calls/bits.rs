//! Functions and signals with arguments and answers as bit streams instead of Rabbit values.

use core::time::Duration;

use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::endpoint::{ConnectionId, Protocol};
use rakwire::wire::WireError;

use super::function::{HandleBits, Registered, Run};
use super::{CallError, CallFailure, CallId, Finished, RegisterError, RemoteCalls, is_name};

/// Returns the bit stream that `write` produces, stored at the start of a buffer.
pub(super) fn written<'b>(
    buffer: &'b mut [u8],
    name: &str,
    write: impl FnOnce(&mut BitStreamWriter<'_>) -> Result<(), WireError>,
) -> Result<&'b [u8], CallError> {
    if !is_name(name) {
        return Err(CallError::BadName);
    }
    let mut writer = BitStreamWriter::new(buffer);
    write(&mut writer).map_err(|_| CallError::TooLong)?;
    Ok(writer.finish())
}

/// Functions and signals with bit streams.
///
/// They share names, slots and limits with functions and signals in the Rabbit encoding. Both peers must agree which
/// of the two encodings a name uses.
///
/// ```
/// use core::time::Duration;
/// use rakwire::endpoint::ConnectionId;
/// use rakwire::raknet::{Delivery, RakNet};
/// use rakwire_plugins::calls::{CallError, CallId, RegisterError, RemoteCalls};
///
/// type Calls<C> = RemoteCalls<RakNet, C, 4, 16, 256>;
///
/// /// At the server, which steers a ship; a heading takes 10 bits.
/// fn offer(calls: &mut Calls<u32>) -> Result<(), RegisterError> {
///     calls.register_bits("steer", |_heading, _caller| true, |heading, _caller, arguments, answer| {
///         *heading = arguments.bits().bits(10)? as u32;
///         Ok(answer.write(true)?)
///     })
/// }
///
/// /// At a client. `Finished::answer_bits` reads its answer.
/// fn steer(calls: &mut Calls<()>, server: ConnectionId) -> Result<CallId, CallError> {
///     let delivery = Delivery::RELIABLE_ORDERED;
///     calls.call_bits(server, "steer", |arguments| arguments.bits().bits(512, 10), Duration::from_secs(5), delivery)
/// }
/// # let mut calls = Calls::new(0);
/// # offer(&mut calls)?;
/// # let _ = steer;
/// # Ok::<(), RegisterError>(())
/// ```
impl<P: Protocol, C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize>
    RemoteCalls<P, C, FUNCTIONS, CALLS, BYTES>
{
    /// Registers a function with bit streams, like [`register`](Self::register). `is_allowed` runs before the
    /// arguments are read.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register_bits(
        &mut self,
        name: &'static str,
        is_allowed: fn(&C, ConnectionId) -> bool,
        handle: HandleBits<C>,
    ) -> Result<(), RegisterError> {
        self.register_function(Registered {
            name,
            order: None,
            schema: None,
            is_allowed,
            run: Run::Bits(handle),
        })
    }

    /// Connects a handler of bit streams to a signal, like [`connect`](Self::connect).
    ///
    /// # Errors
    /// [`RegisterError::BadName`] if the name is empty or too long, [`RegisterError::Full`] if the capacity is reached.
    pub fn connect_bits(
        &mut self,
        name: &'static str,
        order: i32,
        is_allowed: fn(&C, ConnectionId) -> bool,
        handle: HandleBits<C>,
    ) -> Result<(), RegisterError> {
        self.insert(Registered { name, order: Some(order), schema: None, is_allowed, run: Run::Bits(handle) })
    }

    /// Calls a function like [`call`](Self::call), with the bit stream that `write` produces. [`Finished::answer_bits`]
    /// returns its answer.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call_bits(
        &mut self,
        to: ConnectionId,
        name: &str,
        write: impl FnOnce(&mut BitStreamWriter<'_>) -> Result<(), WireError>,
        timeout: Duration,
        delivery: P::Delivery,
    ) -> Result<CallId, CallError> {
        let mut buffer = [0; BYTES];
        let arguments = written(&mut buffer, name, write)?;
        self.begin(to, name, arguments, timeout, delivery)
    }

    /// Sends a signal like [`signal`](Self::signal), with the bit stream that `write` produces.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn signal_bits(
        &mut self,
        to: ConnectionId,
        name: &str,
        write: impl FnOnce(&mut BitStreamWriter<'_>) -> Result<(), WireError>,
        delivery: P::Delivery,
    ) -> Result<(), CallError> {
        let mut buffer = [0; BYTES];
        let arguments = written(&mut buffer, name, write)?;
        self.give(to, name, arguments, delivery)
    }
}

impl<const BYTES: usize> Finished<BYTES> {
    /// Returns the bit stream that the function answered.
    ///
    /// # Errors
    /// Returns the reason if there is no answer.
    pub fn answer_bits(&self) -> Result<BitStreamReader<'_>, CallFailure> {
        self.outcome.as_ref().map(|bytes| BitStreamReader::new(bytes)).map_err(|failure| *failure)
    }
}
