//! Remote calls: functions of a remote peer by name, and signals with several handlers.
//!
//! Arguments and answers are in Rabbit or bit streams. Only registered functions can be called, and only by peers that
//! their handler allows. A call ends exactly once: with an answer, a refusal, a timeout or the end of its connection.
//! `docs/plugins/calls.md` describes the messages.
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
//! A client has a [`RemoteCalls`] too. It calls with [`RemoteCalls::call`] and gets results from
//! [`RemoteCalls::poll_finished`]: `plugins/examples/remote_calls.rs`. [`rpc4`] is for peers that use C++ RakNet's
//! plugin.

mod bits;
mod function;
mod outcome;
mod queue;
pub mod rpc4;
mod schema;
mod wire;

use core::task::{Poll, Waker};
use core::time::Duration;

use heapless::{Deque, Vec};
use rakwire::codec::rabbit::pack;
use rakwire::endpoint::{ConnectionId, MessageIds, MessageSender, Plugin, Protocol, SendError, Verdict};
use rakwire::{Chunks, Instant};

use self::function::{Ran, Registered};
use self::queue::{Queued, SendQueue};
use self::schema::Schema;
use self::wire::REFUSAL_BYTES;
use crate::bytes;

pub use self::function::{Function, HandleBits, Handler, LaterHandler, PendingCall};
pub use self::outcome::{CallError, CallFailure, CallId, CallStats, Finished, Mismatch, RegisterError};
pub use self::wire::{MAX_HEADER, MAX_NAME, MESSAGE_ID, Message, Refusal};

/// Returns whether a function or a signal may have this name.
fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
}

/// A call that waits for its answer.
#[derive(Debug)]
struct OpenCall {
    id: CallId,
    timeout: Duration,
    /// Set at the first attempt to send the call.
    deadline: Option<Instant>,
    waiter: Waiter,
}

/// The consumer of the result of a call.
#[derive(Debug)]
enum Waiter {
    /// The next caller of [`RemoteCalls::poll_finished`].
    Anyone,
    /// Only [`RemoteCalls::poll_call`], which is woken if it has registered a waker.
    Claimed(Option<Waker>),
}

/// A call that has ended, and whether only [`RemoteCalls::poll_call`] may take it.
#[derive(Debug)]
struct Ended<const BYTES: usize> {
    finished: Finished<BYTES>,
    is_claimed: bool,
}

/// A call to be answered later, or to be refused. It does not take up a message buffer.
#[derive(Debug)]
struct Unanswered<P: Protocol> {
    pending: PendingCall,
    delivery: P::Delivery,
}

/// The remote calls plugin. `C` is the context of the handlers.
///
/// It has room for `FUNCTIONS` functions and signal handlers. It also has room for `CALLS` calls that are under way, as
/// many queued messages, and as many answers, of which one caller may use half. A message has up to `BYTES` bytes. The
/// module documentation has an example.
///
/// A call and its answer are sent with the same delivery. The Game Protocol is unordered, so calls may run in another
/// order than they were made.
#[derive(Debug)]
pub struct RemoteCalls<P: Protocol, C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize> {
    /// The context of the handlers.
    pub context: C,
    registered: Vec<Registered<C>, FUNCTIONS>,
    open: Vec<OpenCall, CALLS>,
    finished: Deque<Ended<BYTES>, CALLS>,
    /// Calls that are answered later.
    later: Vec<Unanswered<P>, CALLS>,
    /// Queued refusals of calls for which there was no room.
    refusals: SendQueue<P, CALLS, REFUSAL_BYTES>,
    outgoing: SendQueue<P, CALLS, BYTES>,
    answers: SendQueue<P, CALLS, BYTES>,
    next_number: u32,
    /// The last mismatch that was not polled.
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
            open: Vec::new(),
            finished: Deque::new(),
            later: Vec::new(),
            refusals: SendQueue::new(),
            outgoing: SendQueue::new(),
            answers: SendQueue::new(),
            next_number: 0,
            mismatch: None,
            stats: CallStats::default(),
        }
    }

    /// Registers a function that peers may call.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register<F: Function, H: Handler<F, C>>(&mut self) -> Result<(), RegisterError> {
        self.register_function(Registered::new::<F, H>(None))
    }

    /// Registers a function that is answered later. One caller may use half of the places.
    ///
    /// ```
    /// use rakwire::endpoint::ConnectionId;
    /// use rakwire::raknet::RakNet;
    /// use rakwire_plugins::calls::{Function, LaterHandler, Refusal, RemoteCalls, PendingCall};
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
    /// impl LaterHandler<Coins, Queries> for Coins {
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
    /// calls.register_later::<Coins, Coins>()?;
    /// // When the database has answered:
    /// for (pending, player) in core::mem::take(&mut calls.context.0) {
    ///     calls.answer::<Coins>(pending, &u64::from(player));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn register_later<F: Function, H: LaterHandler<F, C>>(&mut self) -> Result<(), RegisterError> {
        self.register_function(Registered::later::<F, H>())
    }

    /// Answers a call that its handler left for later; run the driver afterwards.
    ///
    /// Returns false if the call is not pending: it was already answered, or its caller has disconnected.
    pub fn answer<F: Function>(&mut self, pending: PendingCall, answer: &F::Answer<'_>) -> bool {
        let mut packed = [0; BYTES];
        let Some(call) = self.take_later(pending) else { return false };
        let number = pending.number;
        let bytes = pack(answer, &mut packed).ok();
        let bytes = bytes.and_then(|answer| encoded(&Message::Answer { number, answer }));
        self.reply(call, bytes.ok_or(Refusal::AnswerTooLong));
        true
    }

    /// Refuses a call that its handler left for later, by convention with [`Refusal::Failed`] and a code. See
    /// [`answer`](Self::answer).
    pub fn refuse(&mut self, pending: PendingCall, refusal: Refusal) -> bool {
        let call = self.take_later(pending);
        call.map(|call| self.reply(call, Err(refusal))).is_some()
    }

    fn take_later(&mut self, pending: PendingCall) -> Option<Unanswered<P>> {
        let at = self.later.iter().position(|call| call.pending == pending)?;
        Some(self.later.swap_remove(at))
    }

    /// Queues the answer of a call, or a refusal.
    fn reply(&mut self, call: Unanswered<P>, answer: Result<Vec<u8, BYTES>, Refusal>) {
        let Unanswered { pending, delivery } = call;
        if answer.is_err() {
            self.stats.refused = self.stats.refused.saturating_add(1);
        }
        let refusal = |refusal| encoded(&Message::Refusal { number: pending.number, refusal });
        let bytes = answer.or_else(|reason| refusal(reason).ok_or(reason));
        let Ok(bytes) = bytes else { return };
        if self.answers.is_full() {
            self.drop_answer();
        }
        if !self.answers.push(Queued { to: pending.caller, delivery, call: None, bytes }) {
            self.stats.busy = self.stats.busy.saturating_add(1);
        }
    }

    /// Drops an answer of the caller with the most answers, and notifies that caller.
    fn drop_answer(&mut self) {
        let Some(Queued { to: caller, delivery, bytes, .. }) = self.answers.pop_of_fullest() else { return };
        self.stats.busy = self.stats.busy.saturating_add(1);
        if let Some(Message::Answer { number, .. } | Message::Refusal { number, .. }) =
            Message::decode(&bytes)
        {
            let call = Unanswered { pending: PendingCall { number, caller }, delivery };
            self.refuse_shortly(call, Refusal::AnswerDropped);
        }
    }

    /// Refuses a call for which there is no room. If the refusals are full too, those for the caller with the most are
    /// dropped, so a flood costs no other caller its refusals.
    fn refuse_shortly(&mut self, call: Unanswered<P>, refusal: Refusal) {
        let Unanswered { pending: PendingCall { number, caller: to }, delivery } = call;
        let Some(bytes) = encoded(&Message::Refusal { number, refusal }) else { return };
        if self.refusals.is_full() && self.refusals.pop_of_fullest().is_some() {
            self.stats.unsent = self.stats.unsent.saturating_add(1);
        }
        self.refusals.push(Queued { to, delivery, call: None, bytes });
    }

    fn register_function(&mut self, function: Registered<C>) -> Result<(), RegisterError> {
        if self.registered.iter().any(|other| other.order.is_none() && other.name == function.name) {
            return Err(RegisterError::NameTaken);
        }
        self.insert(function)
    }

    /// Connects a handler to a signal. Handlers with the highest `order` run first; those with the same order run in
    /// the order in which they were connected.
    ///
    /// # Errors
    /// [`RegisterError::Full`] and [`RegisterError::BadName`].
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

    /// Unregisters a function, and disconnects all handlers of a signal with its name. Returns false if there were
    /// none.
    pub fn unregister<F: Function>(&mut self) -> bool {
        self.unregister_name(F::NAME)
    }

    /// Unregisters like [`unregister`](Self::unregister), by name.
    pub fn unregister_name(&mut self, name: &str) -> bool {
        let before = self.registered.len();
        self.registered.retain(|other| other.name != name);
        self.registered.len() < before
    }

    /// Calls a function of a remote peer. [`poll_finished`](Self::poll_finished) returns the result, after `timeout` at
    /// the latest. The timeout starts at the first attempt to send the call.
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
        if self.open.len() + self.finished.len() >= CALLS {
            return Err(CallError::TooManyCalls);
        }
        let number = self.next_number;
        let message = Message::Call { number, name: name.as_bytes(), arguments };
        self.enqueue(to, delivery, Some(number), &message)?;
        let id = CallId { number, to };
        let waiter = Waiter::Anyone;
        self.open
            .push(OpenCall { id, timeout, deadline: None, waiter })
            .map_err(|_| CallError::TooManyCalls)?;
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

    /// Stops waiting for an answer. A call that was not sent yet is not sent; one that was sent may still run. Returns
    /// false if the call is not under way.
    pub fn cancel(&mut self, id: CallId) -> bool {
        self.outgoing.retain(|message| message.call != Some(id.number));
        self.close(id).is_some()
    }

    /// Returns a call that has ended and is not [claimed](Self::claim).
    pub fn poll_finished(&mut self) -> Option<Finished<BYTES>> {
        self.take_finished(|ended| !ended.is_claimed)
    }

    /// Reserves the result of a call for [`poll_call`](Self::poll_call). Returns false if the call is not under way.
    ///
    /// A claimed call keeps its place until its result is taken or the call is [forgotten](Self::forget).
    pub fn claim(&mut self, id: CallId) -> bool {
        let open = self.open.iter_mut().find(|open| open.id == id);
        open.map(|open| open.waiter = Waiter::Claimed(None)).is_some()
    }

    /// Returns the result of a call that was [claimed](Self::claim); `None` if the call does not exist any more. While
    /// the call is under way, `waker` is registered to be woken when it ends, so a future can await the call.
    pub fn poll_call(&mut self, id: CallId, waker: &Waker) -> Poll<Option<Finished<BYTES>>> {
        if let Some(finished) = self.take_finished(|ended| ended.finished.id == id) {
            return Poll::Ready(Some(finished));
        }
        match self.open.iter_mut().find(|open| open.id == id) {
            Some(open) => {
                open.waiter = Waiter::Claimed(Some(waker.clone()));
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }

    /// Forgets a claimed call: it is cancelled, or its result is dropped.
    pub fn forget(&mut self, id: CallId) {
        if !self.cancel(id) {
            drop(self.take_finished(|ended| ended.finished.id == id));
        }
    }

    fn take_finished(&mut self, is_wanted: impl Fn(&Ended<BYTES>) -> bool) -> Option<Finished<BYTES>> {
        let mut taken = None;
        for _ in 0..self.finished.len() {
            let ended = self.finished.pop_front()?;
            if taken.is_none() && is_wanted(&ended) {
                taken = Some(ended.finished);
            } else {
                // Cannot fail: the entry was just removed.
                let _ = self.finished.push_back(ended);
            }
        }
        taken
    }

    /// Returns the latest call or signal since the last poll that has other types at the remote.
    ///
    /// The peers run different versions of the game, and the call has not run. Peers compare fingerprints of the types
    /// unless one of them has none.
    pub fn poll_mismatch(&mut self) -> Option<Mismatch> {
        self.mismatch.take()
    }

    fn on_mismatch(&mut self, peer: ConnectionId, name: Option<&'static str>) {
        self.stats.mismatched = self.stats.mismatched.saturating_add(1);
        self.mismatch = Some(Mismatch { peer, name });
    }

    /// Returns the number of calls under way.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.open.len()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> CallStats {
        self.stats
    }

    fn close(&mut self, id: CallId) -> Option<OpenCall> {
        let at = self.open.iter().position(|open| open.id == id)?;
        Some(self.open.swap_remove(at))
    }

    fn finish(&mut self, id: CallId, outcome: Result<&[u8], CallFailure>) {
        let Some(open) = self.close(id) else {
            self.stats.unexpected = self.stats.unexpected.saturating_add(1);
            return;
        };
        let outcome = outcome.and_then(|bytes| Vec::from_slice(bytes).map_err(|_| CallFailure::BadAnswer));
        // Cannot fail: finished and open calls together never exceed the capacity.
        let is_claimed = matches!(open.waiter, Waiter::Claimed(_));
        let _ = self.finished.push_back(Ended { finished: Finished { id, outcome }, is_claimed });
        if let Waiter::Claimed(Some(waker)) = open.waiter {
            waker.wake();
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
            self.refuse_shortly(call, Refusal::Busy);
            return;
        }
        // Checked before the function runs: if it ran without an answer, the caller would repeat it.
        if self.answers.is_full() {
            self.drop_answer();
        }
        let mut answer = [0; BYTES];
        let ran = self.run(pending, name, arguments, &mut answer);
        let bytes = match ran {
            Ok(Ran::Later) => {
                // Cannot fail: the room was checked before the function ran.
                let _ = self.later.push(call);
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
        self.reply(call, bytes);
    }

    /// Returns whether there is no place for the answer of a function, now or later. One caller may use half of the
    /// places.
    fn is_busy(&self, caller: ConnectionId, name: &[u8]) -> bool {
        let half = CALLS.div_ceil(2);
        if self.registered.iter().any(|other| other.is_later() && other.name.as_bytes() == name) {
            let of_caller = self.later.iter().filter(|call| call.pending.caller == caller).count();
            return of_caller >= half || self.later.is_full();
        }
        self.answers.waiting_for(caller) >= half
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

/// Packs the arguments of a call or a signal to the front of a buffer, with the fingerprint of the schema.
fn packed<'b, F: Function>(
    arguments: &F::Arguments<'_>,
    schema: Option<Schema>,
    buffer: &'b mut [u8],
) -> Result<&'b [u8], CallError> {
    let length = pack(arguments, buffer).map_err(|_| CallError::TooLong)?.len();
    Schema::append(schema, F::NAME, buffer, length).ok_or(CallError::TooLong)
}

/// Encodes a message; returns `None` if it is too long.
fn encoded<const BYTES: usize>(message: &Message<'_>) -> Option<Vec<u8, BYTES>> {
    let mut bytes = Vec::new();
    bytes.resize(BYTES, 0).ok()?;
    let length = message.encode(&mut bytes)?;
    bytes.truncate(length);
    Some(bytes)
}

/// Returns the refusal that replaces an answer which is too long for the connection.
fn refusal_of<const BYTES: usize>(answer: &[u8]) -> Option<Vec<u8, BYTES>> {
    let Some(Message::Answer { number, .. }) = Message::decode(answer) else { return None };
    encoded(&Message::Refusal { number, refusal: Refusal::AnswerTooLong })
}

impl<P: Protocol, C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize> Plugin<P>
    for RemoteCalls<P, C, FUNCTIONS, CALLS, BYTES>
{
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[MESSAGE_ID])
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: P::DisconnectReason) {
        self.answers.retain(|message| message.to != id);
        self.outgoing.retain(|message| message.to != id);
        self.later.retain(|call| call.pending.caller != id);
        self.refusals.retain(|message| message.to != id);
        while let Some(open) = self.open.iter().find(|open| open.id.to == id).map(|open| open.id) {
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
                let is_open = self.open.iter().any(|open| open.id == CallId { number, to: id });
                if refusal == Refusal::OtherSchema && is_open {
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
        for open in self.open.iter_mut().filter(|open| open.deadline.is_none()) {
            open.deadline = Some(now + open.timeout);
        }
        while let Some(late) = self.open.iter().find(|open| open.deadline.is_some_and(|due| due <= now)) {
            let id = late.id;
            self.outgoing.retain(|message| message.call != Some(id.number));
            self.finish(id, Err(CallFailure::TimedOut));
        }
        let stats = &mut self.stats;
        self.answers.send(sender, |answer, error| {
            stats.unsent = stats.unsent.saturating_add(1);
            let is_too_long = matches!(error, SendError::NeverFits | SendError::TooLong);
            if is_too_long { refusal_of(&answer.bytes) } else { None }
        });
        let stats = &mut self.stats;
        self.refusals.send(sender, |_, _| {
            stats.unsent = stats.unsent.saturating_add(1);
            None
        });
        let mut unsent: Vec<(u32, SendError), CALLS> = Vec::new();
        self.outgoing.send(sender, |message, error| {
            match message.call {
                // Cannot fail: there is at most one entry for each call.
                Some(number) => drop(unsent.push((number, error))),
                None => stats.unsent = stats.unsent.saturating_add(1),
            }
            None
        });
        for (number, error) in unsent {
            let open = self.open.iter().find(|open| open.id.number == number).map(|open| open.id);
            if let Some(id) = open {
                self.finish(id, Err(CallFailure::NotSent(error)));
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.answers.is_empty() || !self.outgoing.is_empty() || !self.refusals.is_empty() {
            return Some(Instant::ZERO);
        }
        self.open.iter().filter_map(|open| open.deadline).min()
    }
}
