//! RPC4: remote calls and signals that are compatible with C++ RakNet's plugin of that name.
//!
//! Use it if some peers use that plugin. Between rakwire peers, [`RemoteCalls`](super::RemoteCalls) has more
//! features. Arguments and answers are bit streams in a format of the handler's choice. As in `RemoteCalls`,
//! a peer can call only registered functions, and only if their handler allows it. `docs/plugins/calls.md`
//! describes the messages.
//!
//! ```
//! use rakwire::endpoint::PluginHost;
//! use rakwire::raknet::RakNet;
//! use rakwire_plugins::calls::rpc4::Rpc4;
//!
//! // At the server: 4 functions and slots, 16 calls at a time, messages of up to 256 bytes.
//! let mut rpc4 = Rpc4::<u32, 4, 16, 256>::new(100);
//! rpc4.register_answered("Buy", |_coins, _caller| true, |coins, _caller, arguments, answer| {
//!     let price: u32 = arguments.read()?;
//!     *coins = coins.saturating_sub(price);
//!     answer.write(*coins)
//! })?;
//! let mut host = PluginHost::<_, 1>::new();
//! host.attach::<RakNet>(rpc4)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod registered;
mod wire;

use core::time::Duration;

use heapless::{Deque, Vec};
use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire::endpoint::{ConnectionId, MessageIds, MessageSender, Plugin, SendError, Verdict};
use rakwire::raknet::{Delivery, DisconnectReason, RakNet};
use rakwire::wire::WireError;
use rakwire::{Chunks, Instant};

use self::registered::{Registered, Run};
use super::bits::written;
use super::queue::{Queued, SendQueue};
use super::{CallError, CallFailure, CallStats, MAX_NAME, Refusal, RegisterError, is_name};
use crate::bytes;

pub use self::registered::{Handle, HandleAnswered, IsAllowed};
pub use self::wire::{ERROR_ID, MESSAGE_ID, Message};

/// The mark of a queued message that is a call with an answer.
const ANSWERED: Option<u32> = Some(0);

/// The result of a call with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<const BYTES: usize> {
    /// The peer that was called.
    pub from: ConnectionId,
    /// The bit stream of the answer, or the reason why there is none.
    pub outcome: Result<Vec<u8, BYTES>, CallFailure>,
}

/// A call with an answer. It keeps its slot after a timeout, because answers have no number by which a late answer
/// could be recognised.
#[derive(Clone, Debug)]
struct OpenCall {
    to: ConnectionId,
    name: Vec<u8, MAX_NAME>,
    timeout: Duration,
    /// Set at the first attempt to send the call.
    deadline: Option<Instant>,
    is_given_up: bool,
}

/// The RPC4 plugin. `C` is the context of the handlers.
///
/// - `FUNCTIONS` is the maximum number of functions and slots.
/// - `CALLS` is the maximum number of answered calls in progress, of queued messages, and of queued answers.
///   One caller may use half of them.
/// - `BYTES` is the maximum message length.
///
/// The module documentation has an example.
#[derive(Debug)]
pub struct Rpc4<C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize> {
    /// The context of the handlers.
    pub context: C,
    registered: Vec<Registered<C>, FUNCTIONS>,
    open: Vec<OpenCall, CALLS>,
    finished: Deque<Answer<BYTES>, CALLS>,
    unknown: Deque<(ConnectionId, Vec<u8, MAX_NAME>), CALLS>,
    outgoing: SendQueue<RakNet, CALLS, BYTES>,
    answers: SendQueue<RakNet, CALLS, BYTES>,
    stats: CallStats,
}

impl<C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize> Rpc4<C, FUNCTIONS, CALLS, BYTES> {
    /// Creates a plugin without functions.
    #[must_use]
    pub fn new(context: C) -> Self {
        Self {
            context,
            registered: Vec::new(),
            open: Vec::new(),
            finished: Deque::new(),
            unknown: Deque::new(),
            outgoing: SendQueue::new(),
            answers: SendQueue::new(),
            stats: CallStats::default(),
        }
    }

    /// Registers a function without an answer: `RegisterFunction` in C++ RakNet.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register(
        &mut self,
        name: &'static str,
        is_allowed: IsAllowed<C>,
        handle: Handle<C>,
    ) -> Result<(), RegisterError> {
        self.insert(Registered { name, is_allowed, run: Run::Function(handle) })
    }

    /// Registers a function with an answer: `RegisterBlockingFunction` in C++ RakNet. A function without an
    /// answer may have the same name.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register_answered(
        &mut self,
        name: &'static str,
        is_allowed: IsAllowed<C>,
        handle: HandleAnswered<C>,
    ) -> Result<(), RegisterError> {
        self.insert(Registered { name, is_allowed, run: Run::Answered(handle) })
    }

    /// Connects a slot to a signal: `RegisterSlot` in C++ RakNet. Slots run in descending `order`. Slots with the same
    /// `order` run in the order in which they were connected.
    ///
    /// # Errors
    /// [`RegisterError::BadName`] if the name is empty or too long, [`RegisterError::Full`] if the capacity is reached.
    pub fn connect(
        &mut self,
        name: &'static str,
        order: i32,
        is_allowed: IsAllowed<C>,
        handle: Handle<C>,
    ) -> Result<(), RegisterError> {
        self.insert(Registered { name, is_allowed, run: Run::Slot(order, handle) })
    }

    fn insert(&mut self, registered: Registered<C>) -> Result<(), RegisterError> {
        if !is_name(registered.name) {
            return Err(RegisterError::BadName);
        }
        if self.registered.iter().any(|other| other.excludes(&registered)) {
            return Err(RegisterError::NameTaken);
        }
        let at = self.registered.iter().position(|other| other.runs_after(&registered));
        self.registered
            .insert(at.unwrap_or(self.registered.len()), registered)
            .map_err(|_| RegisterError::Full)
    }

    /// Unregisters the functions and slots with a name. Returns false if there were none.
    pub fn unregister(&mut self, name: &str) -> bool {
        let before = self.registered.len();
        self.registered.retain(|other| other.name != name);
        self.registered.len() < before
    }

    /// Calls a function that has no answer: `Call` in C++ RakNet. If the remote peer does not know the
    /// function, [`poll_unknown`](Self::poll_unknown) returns its name.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(
        &mut self,
        to: ConnectionId,
        name: &str,
        write: impl FnOnce(&mut BitStreamWriter<'_>) -> Result<(), WireError>,
        delivery: Delivery,
    ) -> Result<(), CallError> {
        let mut buffer = [0; BYTES];
        let arguments = written(&mut buffer, name, write)?;
        let message = Message::Call { name: name.as_bytes(), is_answered: false, arguments };
        self.enqueue(to, delivery, None, &message)
    }

    /// Calls a function that has an answer: `CallBlocking` in C++ RakNet, without blocking.
    ///
    /// [`poll_answer`](Self::poll_answer) returns the result within `timeout`, which starts at the first
    /// attempt to send the call.
    ///
    /// Answers have no number, so only one call to each peer can be in progress. After a timeout its slot
    /// stays occupied until the answer arrives or the connection closes.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call_answered(
        &mut self,
        to: ConnectionId,
        name: &str,
        write: impl FnOnce(&mut BitStreamWriter<'_>) -> Result<(), WireError>,
        timeout: Duration,
    ) -> Result<(), CallError> {
        let is_open = self.open.iter().any(|open| open.to == to);
        if is_open || self.open.len() + self.finished.len() >= CALLS {
            return Err(CallError::TooManyCalls);
        }
        let mut buffer = [0; BYTES];
        let arguments = written(&mut buffer, name, write)?;
        let message = Message::Call { name: name.as_bytes(), is_answered: true, arguments };
        self.enqueue(to, Delivery::RELIABLE_ORDERED, ANSWERED, &message)?;
        let name = Vec::from_slice(name.as_bytes()).map_err(|_| CallError::BadName)?;
        let open = OpenCall { to, name, timeout, deadline: None, is_given_up: false };
        self.open.push(open).map_err(|_| CallError::TooManyCalls)
    }

    /// Sends a signal to a remote peer: `Signal` in C++ RakNet.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn signal(
        &mut self,
        to: ConnectionId,
        name: &str,
        write: impl FnOnce(&mut BitStreamWriter<'_>) -> Result<(), WireError>,
        delivery: Delivery,
    ) -> Result<(), CallError> {
        let mut buffer = [0; BYTES];
        let arguments = written(&mut buffer, name, write)?;
        self.enqueue(to, delivery, None, &Message::Signal { name: name.as_bytes(), arguments })
    }

    fn enqueue(
        &mut self,
        to: ConnectionId,
        delivery: Delivery,
        call: Option<u32>,
        message: &Message<'_>,
    ) -> Result<(), CallError> {
        let bytes = encoded(message).ok_or(CallError::TooLong)?;
        let is_queued = self.outgoing.push(Queued { to, delivery, call, bytes });
        is_queued.then_some(()).ok_or(CallError::TooManyCalls)
    }

    /// Returns the next result of a call with an answer.
    pub fn poll_answer(&mut self) -> Option<Answer<BYTES>> {
        self.finished.pop_front()
    }

    /// Returns the name of a function that a remote peer does not know or does not let this one call. Only
    /// the last name of each peer is kept.
    pub fn poll_unknown(&mut self) -> Option<(ConnectionId, Vec<u8, MAX_NAME>)> {
        self.unknown.pop_front()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> CallStats {
        self.stats
    }

    /// Finishes the call to a peer. Returns false if no call is in progress.
    fn finish(&mut self, from: ConnectionId, outcome: Result<&[u8], CallFailure>) -> bool {
        let Some(at) = self.open.iter().position(|open| open.to == from) else { return false };
        if self.open.swap_remove(at).is_given_up {
            return true;
        }
        let outcome = outcome.and_then(|bytes| Vec::from_slice(bytes).map_err(|_| CallFailure::BadAnswer));
        // This cannot fail: finished and open calls together never exceed the capacity.
        let _ = self.finished.push_back(Answer { from, outcome });
        true
    }

    fn on_answer(&mut self, from: ConnectionId, answer: &[u8]) {
        if !self.finish(from, Ok(answer)) {
            self.stats.unexpected = self.stats.unexpected.saturating_add(1);
        }
    }

    fn on_unknown(&mut self, from: ConnectionId, name: &[u8]) {
        if self.open.iter().any(|open| open.to == from && open.name == name) {
            self.finish(from, Err(CallFailure::Refused(Refusal::Unknown)));
            return;
        }
        for _ in 0..self.unknown.len() {
            let Some(other) = self.unknown.pop_front() else { break };
            if other.0 != from {
                // This cannot fail: the entry was just removed from this queue.
                let _ = self.unknown.push_back(other);
            }
        }
        if self.unknown.is_full() {
            self.unknown.pop_front();
        }
        let _ = Vec::from_slice(name).map(|name| self.unknown.push_back((from, name)));
    }

    fn on_call(&mut self, caller: ConnectionId, name: &[u8], is_answered: bool, arguments: &[u8]) {
        if self.answers.waiting_for(caller) >= CALLS.div_ceil(2) {
            self.stats.busy = self.stats.busy.saturating_add(1);
            return;
        }
        // The slot must be free before the function runs: without an answer, the caller would repeat the call.
        if self.answers.is_full() {
            drop(self.answers.pop_of_fullest());
            self.stats.busy = self.stats.busy.saturating_add(1);
        }
        let mut buffer = [0; BYTES];
        let message = match self.run(caller, name, is_answered, arguments, &mut buffer) {
            Ok(None) => return,
            Ok(Some(answer)) => Message::Answer { answer },
            Err(_) => Message::Unknown { name },
        };
        let Some(bytes) = encoded(&message).or_else(|| encoded(&Message::Unknown { name })) else { return };
        let delivery = Delivery::RELIABLE_ORDERED;
        if !self.answers.push(Queued { to: caller, delivery, call: None, bytes }) {
            self.stats.busy = self.stats.busy.saturating_add(1);
        }
    }

    /// Runs a function. An error is sent to the caller.
    fn run<'b>(
        &mut self,
        caller: ConnectionId,
        name: &[u8],
        is_answered: bool,
        arguments: &[u8],
        buffer: &'b mut [u8],
    ) -> Result<Option<&'b [u8]>, Refusal> {
        let found = self.registered.iter().find(|other| {
            other.name.as_bytes() == name
                && matches!((&other.run, is_answered), (Run::Function(_), false) | (Run::Answered(_), true))
        });
        let refused = &mut self.stats.refused;
        let Some(function) = found.filter(|function| (function.is_allowed)(&self.context, caller)) else {
            *refused = refused.saturating_add(1);
            return Err(Refusal::Unknown);
        };
        self.stats.calls = self.stats.calls.saturating_add(1);
        let mut reader = BitStreamReader::new(arguments);
        match function.run {
            Run::Function(handle) | Run::Slot(_, handle) => {
                let is_refused = handle(&mut self.context, caller, &mut reader).is_err();
                *refused = refused.saturating_add(u64::from(is_refused));
                Ok(None)
            }
            Run::Answered(handle) => {
                let mut writer = BitStreamWriter::new(buffer);
                if handle(&mut self.context, caller, &mut reader, &mut writer).is_err() {
                    *refused = refused.saturating_add(1);
                    return Err(Refusal::BadArguments);
                }
                Ok(Some(writer.finish()))
            }
        }
    }

    fn on_signal(&mut self, caller: ConnectionId, name: &[u8], arguments: &[u8]) {
        self.stats.signals = self.stats.signals.saturating_add(1);
        for slot in self.registered.iter().filter(|other| other.name.as_bytes() == name) {
            let Run::Slot(_, handle) = slot.run else { continue };
            let is_refused = !(slot.is_allowed)(&self.context, caller)
                || handle(&mut self.context, caller, &mut BitStreamReader::new(arguments)).is_err();
            self.stats.refused = self.stats.refused.saturating_add(u64::from(is_refused));
        }
    }

    /// Finishes the calls that have timed out.
    fn give_up(&mut self, now: Instant) {
        for open in self.open.iter_mut().filter(|open| open.deadline.is_none()) {
            open.deadline = Some(now + open.timeout);
        }
        let is_late =
            |open: &OpenCall| !open.is_given_up && open.deadline.is_some_and(|deadline| deadline <= now);
        while let Some(late) = self.open.iter_mut().find(|open| is_late(open)) {
            let to = late.to;
            late.is_given_up = true;
            let waiting = self.outgoing.len();
            self.outgoing.retain(|message| message.to != to || message.call != ANSWERED);
            if self.outgoing.len() < waiting {
                // The call was never sent, so no answer will arrive.
                self.open.retain(|open| open.to != to);
            }
            // This cannot fail: finished calls and calls before their timeout together never exceed the capacity.
            let _ = self.finished.push_back(Answer { from: to, outcome: Err(CallFailure::TimedOut) });
        }
    }
}

/// Encodes a message. Returns `None` if it is too long.
fn encoded<const BYTES: usize>(message: &Message<'_>) -> Option<Vec<u8, BYTES>> {
    let mut bytes = Vec::new();
    bytes.resize(BYTES, 0).ok()?;
    let length = message.encode(&mut bytes)?;
    bytes.truncate(length);
    Some(bytes)
}

/// Returns the empty answer to send instead of one that is too long for the connection. RPC4 has no error for
/// this.
fn empty_answer<const BYTES: usize>(message: &[u8]) -> Option<Vec<u8, BYTES>> {
    let mut name = [0; MAX_NAME];
    match Message::decode(message, &mut name) {
        Some(Message::Answer { answer }) if !answer.is_empty() => encoded(&Message::Answer { answer: &[] }),
        _ => None,
    }
}

impl<C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize> Plugin<RakNet>
    for Rpc4<C, FUNCTIONS, CALLS, BYTES>
{
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[MESSAGE_ID, ERROR_ID])
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: DisconnectReason) {
        self.answers.retain(|message| message.to != id);
        self.outgoing.retain(|message| message.to != id);
        self.finish(id, Err(CallFailure::Disconnected));
    }

    fn on_message(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        _delivery: Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        let (mut buffer, mut name) = ([0; BYTES], [0; MAX_NAME]);
        let bytes = bytes::copy(message, &mut buffer);
        match bytes.and_then(|bytes| Message::decode(bytes, &mut name)) {
            Some(Message::Call { name, is_answered, arguments }) => {
                self.on_call(id, name, is_answered, arguments);
            }
            Some(Message::Answer { answer }) => self.on_answer(id, answer),
            Some(Message::Signal { name, arguments }) => self.on_signal(id, name, arguments),
            Some(Message::Unknown { name }) => self.on_unknown(id, name),
            None => self.stats.malformed = self.stats.malformed.saturating_add(1),
        }
        Verdict::Drop
    }

    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<RakNet>) {
        self.give_up(now);
        let stats = &mut self.stats;
        self.answers.send(sender, |answer, error| {
            stats.unsent = stats.unsent.saturating_add(1);
            let is_too_long = matches!(error, SendError::NeverFits | SendError::TooLong);
            if is_too_long { empty_answer(&answer.bytes) } else { None }
        });
        let mut unsent: Vec<(ConnectionId, SendError), CALLS> = Vec::new();
        self.outgoing.send(sender, |message, error| {
            if message.call == ANSWERED {
                // This cannot fail, because there is at most one entry per call.
                let _ = unsent.push((message.to, error));
            } else {
                stats.unsent = stats.unsent.saturating_add(1);
            }
            None
        });
        for (to, error) in unsent {
            self.finish(to, Err(CallFailure::NotSent(error)));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.answers.is_empty() || !self.outgoing.is_empty() {
            return Some(Instant::ZERO);
        }
        self.open.iter().filter(|open| !open.is_given_up).filter_map(|open| open.deadline).min()
    }
}
