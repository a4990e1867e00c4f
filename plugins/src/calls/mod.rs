//! Remote calls: functions of a remote peer, called by name, and signals with any number of handlers.
//!
//! Arguments and answers are Rabbit values or bit streams. A peer can call only registered functions, and
//! only if their handler allows it. Each call has exactly one result: an answer, a refusal, a timeout or a
//! disconnect. `docs/plugins/calls.md` describes the messages.
//!
//! ```
//! use rakwire::endpoint::{ConnectionId, PluginHost};
//! use rakwire::raknet::RakNet;
//! use rakwire_plugins::calls::{Function, Handler, Refusal, RemoteCalls};
//!
//! /// Buys some of an item, and returns the number of coins left.
//! struct Buy;
//!
//! impl Function for Buy {
//!     const NAME: &'static str = "shop.buy";
//!     type Arguments<'a> = (u16, u8);
//!     type Answer<'a> = u32;
//! }
//!
//! struct Shop {
//!     coins: u32,
//! }
//!
//! impl Handler<Buy, Shop> for Buy {
//!     fn is_allowed(_shop: &Shop, _caller: ConnectionId) -> bool {
//!         true
//!     }
//!
//!     fn handle(shop: &mut Shop, _caller: ConnectionId, (_item, count): (u16, u8)) -> Result<u32, Refusal> {
//!         shop.coins = shop.coins.checked_sub(u32::from(count) * 10).ok_or(Refusal::Failed(1))?;
//!         Ok(shop.coins)
//!     }
//! }
//!
//! // At the server: 4 functions, 16 calls at a time, messages of up to 256 bytes.
//! let mut calls = RemoteCalls::<RakNet, Shop, 4, 16, 256>::new(Shop { coins: 100 });
//! calls.register::<Buy, Buy>()?;
//! let mut host = PluginHost::<_, 1>::new();
//! host.attach::<RakNet>(calls)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client has a [`RemoteCalls`] too. It calls functions with [`RemoteCalls::call`] and gets results from
//! [`RemoteCalls::poll_finished`]: `plugins/examples/remote_calls.rs`. Use [`rpc4`] for peers with C++
//! RakNet's plugin.

mod bits;
mod function;
mod open_calls;
mod outcome;
mod queue;
mod replies;
pub mod rpc4;
mod schema;
mod wire;

use core::task::{Poll, Waker};
use core::time::Duration;

use heapless::Vec;
use rakwire::codec::rabbit::pack;
use rakwire::endpoint::{ConnectionId, MessageIds, MessageSender, Plugin, Protocol, SendError, Verdict};
use rakwire::{Chunks, Instant};

use self::function::{Ran, Registered};
use self::open_calls::OpenCalls;
use self::queue::{Queued, SendQueue};
use self::replies::{Replies, Unanswered};
use self::schema::Schema;
use self::wire::encoded;
use crate::bytes;

pub use self::function::{DeferredHandler, Function, HandleBits, Handler, PendingCall};
pub use self::outcome::{CallError, CallFailure, CallId, CallStats, Finished, Mismatch, RegisterError};
pub use self::wire::{MAX_HEADER, MAX_NAME, MESSAGE_ID, Message, Refusal};

/// Returns true if a function or signal may have this name.
fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
}

/// The remote calls plugin. `C` is the context of the handlers.
///
/// - `FUNCTIONS` is the maximum number of functions and signal handlers.
/// - `CALLS` is the maximum number of calls in progress, of queued messages, and of queued answers. One
///   caller may use half of them.
/// - `BYTES` is the maximum message length.
///
/// The answer to a call is sent with the delivery of the call. The Game Protocol is unordered, so calls may
/// The answer to a call is sent with the delivery of the call. The Game Protocol is unordered, so calls may run in a
/// different order than they were sent. The module documentation has an example.
#[derive(Debug)]
pub struct RemoteCalls<P: Protocol, C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize> {
    /// The context of the handlers.
    pub context: C,
    registered: Vec<Registered<C>, FUNCTIONS>,
    open: OpenCalls<CALLS, BYTES>,
    /// Queued calls and signals.
    outgoing: SendQueue<P, CALLS, BYTES>,
    replies: Replies<P, CALLS, BYTES>,
    next_number: u32,
    /// The latest mismatch that [`poll_mismatch`](Self::poll_mismatch) has not returned.
    mismatch: Option<Mismatch>,
    stats: CallStats,
}

impl<P: Protocol, C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize>
    RemoteCalls<P, C, FUNCTIONS, CALLS, BYTES>
{
    /// Creates a plugin without functions.
    #[must_use]
    pub fn new(context: C) -> Self {
        Self {
            context,
            registered: Vec::new(),
            open: OpenCalls::new(),
            outgoing: SendQueue::new(),
            replies: Replies::new(),
            next_number: 0,
            mismatch: None,
            stats: CallStats::default(),
        }
    }

    /// Registers a function that remote peers may call.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register<F: Function, H: Handler<F, C>>(&mut self) -> Result<(), RegisterError> {
        self.register_function(Registered::new::<F, H>(None))
    }

    /// Registers a function that is answered later. One caller may occupy half of the slots.
    ///
    /// ```
    /// use rakwire::endpoint::ConnectionId;
    /// use rakwire::raknet::RakNet;
    /// use rakwire_plugins::calls::{Function, DeferredHandler, Refusal, RemoteCalls, PendingCall};
    ///
    /// /// Loads the number of coins of a player.
    /// struct Coins;
    ///
    /// impl Function for Coins {
    ///     const NAME: &'static str = "coins";
    ///     type Arguments<'a> = u32;
    ///     type Answer<'a> = u64;
    /// }
    ///
    /// /// The pending queries of the database.
    /// #[derive(Default)]
    /// struct Queries(Vec<(PendingCall, u32)>);
    ///
    /// impl DeferredHandler<Coins, Queries> for Coins {
    ///     fn is_allowed(_: &Queries, _: ConnectionId) -> bool {
    ///         true
    ///     }
    ///
    ///     fn begin(queries: &mut Queries, pending: PendingCall, player: u32) -> Result<(), Refusal> {
    ///         queries.0.push((pending, player));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut calls = RemoteCalls::<RakNet, Queries, 4, 16, 256>::new(Queries::default());
    /// calls.register_deferred::<Coins, Coins>()?;
    /// // When the database has answered:
    /// for (pending, player) in core::mem::take(&mut calls.context.0) {
    ///     calls.answer::<Coins>(pending, &u64::from(player));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register_deferred<F: Function, H: DeferredHandler<F, C>>(&mut self) -> Result<(), RegisterError> {
        self.register_function(Registered::later::<F, H>())
    }

    /// Answers a call that its handler left pending. Run the driver afterwards.
    ///
    /// Returns false if the call is not pending, because it was already answered or its caller has
    /// disconnected.
    pub fn answer<F: Function>(&mut self, pending: PendingCall, answer: &F::Answer<'_>) -> bool {
        let mut packed = [0; BYTES];
        let Some(call) = self.replies.take_deferred(pending) else { return false };
        let number = pending.number;
        let bytes = pack(answer, &mut packed).ok();
        let bytes = bytes.and_then(|answer| encoded(&Message::Answer { number, answer }));
        self.replies.push(call, bytes.ok_or(Refusal::AnswerTooLong), &mut self.stats);
        true
    }

    /// Refuses a call that its handler left pending. Run the driver afterwards.
    ///
    /// By convention the refusal is [`Refusal::Failed`] with a code. Returns false in the same cases as
    /// [`answer`](Self::answer).
    pub fn refuse(&mut self, pending: PendingCall, refusal: Refusal) -> bool {
        let call = self.replies.take_deferred(pending);
        call.map(|call| self.replies.push(call, Err(refusal), &mut self.stats)).is_some()
    }

    fn register_function(&mut self, function: Registered<C>) -> Result<(), RegisterError> {
        if self.registered.iter().any(|other| other.order.is_none() && other.name == function.name) {
            return Err(RegisterError::NameTaken);
        }
        self.insert(function)
    }

    /// Connects a handler to a signal. Handlers run in descending `order`. Handlers with the same `order` run in the
    /// order in which they were connected.
    ///
    /// # Errors
    /// [`RegisterError::BadName`] if the name is empty or too long, [`RegisterError::Full`] if the capacity is reached.
    pub fn connect<F: Function, H: Handler<F, C>>(&mut self, order: i32) -> Result<(), RegisterError> {
        self.insert(Registered::new::<F, H>(Some(order)))
    }

    fn insert(&mut self, registered: Registered<C>) -> Result<(), RegisterError> {
        if !is_name(registered.name) {
            return Err(RegisterError::BadName);
        }
        let at = self.registered.iter().position(|other| other.order < registered.order);
        self.registered
            .insert(at.unwrap_or(self.registered.len()), registered)
            .map_err(|_| RegisterError::Full)
    }

    /// Unregisters a function, and disconnects all handlers of a signal with its name. Returns false if there
    /// were none.
    pub fn unregister<F: Function>(&mut self) -> bool {
        self.unregister_name(F::NAME)
    }

    /// Unregisters like [`unregister`](Self::unregister), by name.
    pub fn unregister_name(&mut self, name: &str) -> bool {
        let before = self.registered.len();
        self.registered.retain(|other| other.name != name);
        self.registered.len() < before
    }

    /// Calls a function of a remote peer. [`poll_finished`](Self::poll_finished) returns the result within
    /// `timeout`, which starts at the first attempt to send the call.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call<F: Function>(
        &mut self,
        to: ConnectionId,
        arguments: &F::Arguments<'_>,
        timeout: Duration,
        delivery: P::Delivery,
    ) -> Result<CallId, CallError> {
        let mut buffer = [0; BYTES];
        let arguments = packed::<F>(
            arguments,
            Schema::of_function::<F::Arguments<'static>, F::Answer<'static>>(),
            &mut buffer,
        )?;
        self.begin(to, F::NAME, arguments, timeout, delivery)
    }

    fn begin(
        &mut self,
        to: ConnectionId,
        name: &str,
        arguments: &[u8],
        timeout: Duration,
        delivery: P::Delivery,
    ) -> Result<CallId, CallError> {
        if !is_name(name) {
            return Err(CallError::BadName);
        }
        if self.open.is_full() {
            return Err(CallError::TooManyCalls);
        }
        let number = self.next_number;
        let message = Message::Call { number, name: name.as_bytes(), arguments };
        self.enqueue(to, delivery, Some(number), &message)?;
        let id = CallId { number, to };
        if !self.open.insert(id, timeout) {
            return Err(CallError::TooManyCalls);
        }
        self.next_number = number.wrapping_add(1);
        Ok(id)
    }

    /// Sends a signal to a remote peer. Signals have no answer.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn signal<F: Function>(
        &mut self,
        to: ConnectionId,
        arguments: &F::Arguments<'_>,
        delivery: P::Delivery,
    ) -> Result<(), CallError> {
        let mut buffer = [0; BYTES];
        let arguments = packed::<F>(arguments, Schema::of_signal::<F::Arguments<'static>>(), &mut buffer)?;
        self.give(to, F::NAME, arguments, delivery)
    }

    fn give(
        &mut self,
        to: ConnectionId,
        name: &str,
        arguments: &[u8],
        delivery: P::Delivery,
    ) -> Result<(), CallError> {
        if !is_name(name) {
            return Err(CallError::BadName);
        }
        self.enqueue(to, delivery, None, &Message::Signal { name: name.as_bytes(), arguments })
    }

    fn enqueue(
        &mut self,
        to: ConnectionId,
        delivery: P::Delivery,
        call: Option<u32>,
        message: &Message<'_>,
    ) -> Result<(), CallError> {
        let bytes = encoded(message).ok_or(CallError::TooLong)?;
        let is_queued = self.outgoing.push(Queued { to, delivery, call, bytes });
        is_queued.then_some(()).ok_or(CallError::TooManyCalls)
    }

    /// Cancels a call. If it is still queued, it is not sent; otherwise the function may still run. Returns
    /// false if the call is not in progress.
    pub fn cancel(&mut self, id: CallId) -> bool {
        self.outgoing.retain(|message| message.call != Some(id.number));
        self.open.cancel(id)
    }

    /// Returns the next finished call that was not [claimed](Self::claim).
    pub fn poll_finished(&mut self) -> Option<Finished<BYTES>> {
        self.open.poll_finished()
    }

    /// Reserves the result of a call for [`poll_call`](Self::poll_call). Returns false if the call is not in
    /// progress.
    ///
    /// A claimed call occupies its slot until its result is taken or the call is [forgotten](Self::forget).
    pub fn claim(&mut self, id: CallId) -> bool {
        self.open.claim(id)
    }

    /// Returns the result of a [claimed](Self::claim) call, or `None` if the call does not exist. While the
    /// call is in progress, registers `waker` and returns `Pending`, so that a future can await the call.
    pub fn poll_call(&mut self, id: CallId, waker: &Waker) -> Poll<Option<Finished<BYTES>>> {
        self.open.poll_call(id, waker)
    }

    /// Cancels a claimed call, or drops its result.
    pub fn forget(&mut self, id: CallId) {
        if !self.cancel(id) {
            self.open.forget(id);
        }
    }

    /// Returns the latest call or signal since the last poll that has different types at the remote peer. The call or
    /// signal had no effect.
    ///
    /// A difference means that the peers run different versions of the game. The peers compare fingerprints of the
    /// types, unless a type has no fingerprint.
    pub fn poll_mismatch(&mut self) -> Option<Mismatch> {
        self.mismatch.take()
    }

    fn on_mismatch(&mut self, peer: ConnectionId, name: Option<&'static str>) {
        self.stats.mismatched = self.stats.mismatched.saturating_add(1);
        self.mismatch = Some(Mismatch { peer, name });
    }

    /// Returns the number of calls in progress.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.open.len()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> CallStats {
        self.stats
    }

    fn finish(&mut self, id: CallId, outcome: Result<&[u8], CallFailure>) {
        if !self.open.finish(id, outcome) {
            self.stats.unexpected = self.stats.unexpected.saturating_add(1);
        }
    }

    fn on_call(
        &mut self,
        caller: ConnectionId,
        delivery: P::Delivery,
        number: u32,
        name: &[u8],
        arguments: &[u8],
    ) {
        let pending = PendingCall { number, caller };
        let call = Unanswered { pending, delivery };
        if self.is_busy(caller, name) {
            self.stats.busy = self.stats.busy.saturating_add(1);
            self.replies.push_refusal(call, Refusal::Busy, &mut self.stats);
            return;
        }
        // The slot must be free before the function runs: without an answer, the caller would repeat the call.
        self.replies.make_room(&mut self.stats);
        let mut answer = [0; BYTES];
        let ran = self.run(pending, name, arguments, &mut answer);
        let bytes = match ran {
            Ok(Ran::Later) => {
                // This cannot fail, because the capacity was checked before the function ran.
                let _ = self.replies.defer(call);
                return;
            }
            Ok(Ran::Answer(length)) => {
                let answer = answer.get(..length);
                answer
                    .and_then(|answer| encoded(&Message::Answer { number, answer }))
                    .ok_or(Refusal::AnswerTooLong)
            }
            Err(refusal) => Err(refusal),
        };
        self.replies.push(call, bytes, &mut self.stats);
    }

    /// Returns true if there is no free slot for the answer of a function, immediate or deferred.
    fn is_busy(&self, caller: ConnectionId, name: &[u8]) -> bool {
        let is_later = self.registered.iter().any(|other| other.is_later() && other.name.as_bytes() == name);
        self.replies.is_busy(caller, is_later)
    }

    fn run(
        &mut self,
        pending: PendingCall,
        name: &[u8],
        arguments: &[u8],
        answer: &mut [u8],
    ) -> Result<Ran, Refusal> {
        let mut functions = self.registered.iter().filter(|other| other.order.is_none());
        let function = functions.find(|function| function.name.as_bytes() == name).ok_or(Refusal::Unknown)?;
        if !(function.is_allowed)(&self.context, pending.caller) {
            return Err(Refusal::Forbidden);
        }
        let arguments = match function.arguments(arguments) {
            Ok(arguments) => arguments,
            Err(refusal) => {
                let name = function.name;
                self.on_mismatch(pending.caller, Some(name));
                return Err(refusal);
            }
        };
        self.stats.calls = self.stats.calls.saturating_add(1);
        function.run(&mut self.context, pending, arguments, answer)
    }

    fn on_signal(&mut self, caller: ConnectionId, name: &[u8], arguments: &[u8]) {
        self.stats.signals = self.stats.signals.saturating_add(1);
        let (mut nothing, pending) = ([0; BYTES], PendingCall { number: 0, caller });
        let mut mismatched = None;
        for handler in &self.registered {
            if handler.order.is_none() || handler.name.as_bytes() != name {
                continue;
            }
            let is_refused = !(handler.is_allowed)(&self.context, caller)
                || match handler.arguments(arguments) {
                    Ok(arguments) => {
                        handler.run(&mut self.context, pending, arguments, &mut nothing).is_err()
                    }
                    Err(_) => {
                        mismatched = Some(handler.name);
                        true
                    }
                };
            self.stats.refused = self.stats.refused.saturating_add(u64::from(is_refused));
        }
        if mismatched.is_some() {
            self.on_mismatch(caller, mismatched);
        }
    }
}

/// Encodes the arguments of a call or signal with the fingerprint of the schema, at the start of a buffer.
fn packed<'b, F: Function>(
    arguments: &F::Arguments<'_>,
    schema: Option<Schema>,
    buffer: &'b mut [u8],
) -> Result<&'b [u8], CallError> {
    let length = pack(arguments, buffer).map_err(|_| CallError::TooLong)?.len();
    Schema::append(schema, F::NAME, buffer, length).ok_or(CallError::TooLong)
}

impl<P: Protocol, C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize> Plugin<P>
    for RemoteCalls<P, C, FUNCTIONS, CALLS, BYTES>
{
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[MESSAGE_ID])
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: P::DisconnectReason) {
        self.replies.forget(id);
        self.outgoing.retain(|message| message.to != id);
        while let Some(open) = self.open.to(id) {
            self.finish(open, Err(CallFailure::Disconnected));
        }
    }

    fn on_message(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        delivery: P::Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        let mut buffer = [0; BYTES];
        match bytes::copy(message, &mut buffer).and_then(Message::decode) {
            Some(Message::Call { number, name, arguments }) => {
                self.on_call(id, delivery, number, name, arguments);
            }
            Some(Message::Answer { number, answer }) => self.finish(CallId { number, to: id }, Ok(answer)),
            Some(Message::Refusal { number, refusal }) => {
                if refusal == Refusal::SchemaMismatch && self.open.contains(CallId { number, to: id }) {
                    self.on_mismatch(id, None);
                }
                self.finish(CallId { number, to: id }, Err(CallFailure::Refused(refusal)));
            }
            Some(Message::Signal { name, arguments }) => self.on_signal(id, name, arguments),
            None => self.stats.malformed = self.stats.malformed.saturating_add(1),
        }
        Verdict::Drop
    }

    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<P>) {
        self.open.start_timeouts(now);
        while let Some(id) = self.open.expired(now) {
            self.outgoing.retain(|message| message.call != Some(id.number));
            self.finish(id, Err(CallFailure::TimedOut));
        }
        let stats = &mut self.stats;
        self.replies.send(sender, stats);
        let mut unsent: Vec<(u32, SendError), CALLS> = Vec::new();
        self.outgoing.send(sender, |message, error| {
            match message.call {
                // This cannot fail, because there is at most one entry per call.
                Some(number) => drop(unsent.push((number, error))),
                None => stats.unsent = stats.unsent.saturating_add(1),
            }
            None
        });
        for (number, error) in unsent {
            if let Some(id) = self.open.numbered(number) {
                self.finish(id, Err(CallFailure::NotSent(error)));
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.replies.is_empty() || !self.outgoing.is_empty() {
            return Some(Instant::ZERO);
        }
        self.open.poll_timeout()
    }
}
