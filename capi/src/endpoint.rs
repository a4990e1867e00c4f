//! An endpoint with the state that C needs: connection handles, and the memory of borrowed messages.

use std::iter;
use std::time::Duration;

use rakwire_native::rakwire::endpoint::{ConnectionId, Decision, Event, Message, Progress, Protocol};
use rakwire_native::{Delivery, RakNet, polled};

use crate::attempts::{Attempts, Step};
use crate::codes::{Failure, Outcome, RAKWIRE_ERROR_HANDLE, RAKWIRE_ERROR_NO_CONNECTION};
use crate::convert::{self, address_of, send_error, set_error};
use crate::incoming::Incoming;
use crate::memory::Versioned;
use crate::serial::{self, Serials};
use crate::types::{
    RAKWIRE_EVENT_ADVERTISEMENT, RAKWIRE_EVENT_CONNECT_FAILED, RAKWIRE_EVENT_CONNECTED,
    RAKWIRE_EVENT_DISCONNECTED, RAKWIRE_EVENT_INCOMING, RAKWIRE_EVENT_MESSAGE, RAKWIRE_EVENT_MTU_CHANGED,
    RAKWIRE_EVENT_OUT_OF_BAND, RAKWIRE_EVENT_PONG, RAKWIRE_EVENT_PROGRESS, RAKWIRE_EVENT_RECEIPT,
    RAKWIRE_EVENT_REFUSED, RAKWIRE_FAILURE_CANCELLED, RakwireEvent,
};

/// An endpoint as the C API sees it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) polled: polled::Endpoint<RakNet>,
    pub(crate) messages: Messages,
    pub(crate) attempts: Attempts,
    connections: Connections,
    incoming: Option<Incoming>,
}

impl Endpoint {
    pub(crate) fn new(polled: polled::Endpoint<RakNet>, incoming: Option<Incoming>) -> Self {
        Self {
            polled,
            messages: Messages::default(),
            attempts: Attempts::default(),
            connections: Connections::default(),
            incoming,
        }
    }

    /// Returns the connection with this handle.
    pub(crate) fn connection(&self, number: u64) -> Outcome<ConnectionId> {
        self.connections.find(number).ok_or(Failure::new(RAKWIRE_ERROR_NO_CONNECTION))
    }

    /// Returns the handle of a connection.
    pub(crate) fn number_of(&mut self, id: ConnectionId) -> u64 {
        self.connections.number_of(id)
    }

    /// Returns the number of clients that were dropped because too many were waiting for a decision.
    pub(crate) fn incoming_overflows(&self) -> u64 {
        self.incoming.as_ref().map_or(0, Incoming::overflows)
    }

    /// Applies the decision about a client, by handling its stored request again.
    pub(crate) fn decide(&mut self, request: u64, decision: Decision) -> Outcome<()> {
        let missing = Failure::new(RAKWIRE_ERROR_HANDLE);
        let Some(incoming) = &self.incoming else { return Err(missing) };
        let Some((remote, datagram)) = incoming.take(request, decision) else { return Err(missing) };
        if decision != Decision::Ignore {
            incoming.note(remote, &datagram);
            let now = self.polled.now();
            self.polled.peer_mut().handle_datagram(now, remote, &datagram);
        }
        incoming.end_decision();
        Ok(())
    }

    /// Takes the next event. Returns false if there is none. All fields of `event` except `size` must be 0.
    pub(crate) fn poll(&mut self, event: &mut RakwireEvent) -> bool {
        loop {
            match self.next(event) {
                Next::Nothing => return false,
                Next::Event => return true,
                Next::Continued => *event = RakwireEvent { size: event.size, ..RakwireEvent::zeroed() },
            }
        }
    }

    /// Takes one event. A separate function, because the loop in [`poll`](Self::poll) would slow down message events.
    #[inline(never)]
    fn next(&mut self, event: &mut RakwireEvent) -> Next {
        if let Some(client) = self.incoming.as_ref().and_then(Incoming::pop) {
            event.kind = RAKWIRE_EVENT_INCOMING;
            event.request = client.request;
            event.guid = client.guid;
            event.address = address_of(client.remote);
            return Next::Event;
        }
        let Self { polled, messages, connections, .. } = self;
        // Events are not moved, since they are large.
        let next = polled.poll_event();
        let Some(next) = &next else { return Next::Nothing };
        // Most events are messages, which end no attempt.
        if let Event::Message { id, delivery, message } = next {
            event.kind = RAKWIRE_EVENT_MESSAGE;
            event.connection = connections.number_of(*id);
            event.reliability = delivery.reliability as u8;
            event.channel = delivery.channel.number();
            match message.as_slice() {
                Some(bytes) if bytes.len() <= COPIED => messages.lend(iter::once(bytes), event),
                None if message.len() <= COPIED => messages.lend(message.chunks(), event),
                _ => messages.lend_vec(polled.take_event_data(), event),
            }
            return Next::Event;
        }
        let attempted = describe(next, event, messages, connections);
        if self.continues(attempted, event) { Next::Continued } else { Next::Event }
    }

    /// Returns true if an attempt continues at its next address, so that the program is not notified.
    fn continues(&mut self, attempted: Attempted, event: &mut RakwireEvent) -> bool {
        match attempted {
            Attempted::Nothing => return false,
            Attempted::Ended(id) => self.attempts.end(id),
            Attempted::Unanswered(id) => match self.attempts.next(id, &mut self.polled) {
                Step::Dialling(next) => {
                    self.connections.rename(event.connection, next);
                    return true;
                }
                // The program has disconnected after the address failed, but before it was notified.
                Step::Cancelled => event.reason = RAKWIRE_FAILURE_CANCELLED,
                Step::Over => {}
            },
        }
        false
    }

    /// Starts closing a connection, and cancels an attempt.
    pub(crate) fn disconnect(&mut self, id: ConnectionId) {
        self.attempts.cancel(id);
        self.polled.disconnect(id);
    }

    /// Sends a last message and starts closing a connection, and cancels an attempt.
    pub(crate) fn disconnect_with(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        delivery: Delivery,
    ) -> Outcome<()> {
        self.attempts.cancel(id);
        self.polled.disconnect_with(id, message, delivery).map_err(send_error)
    }

    /// Sets the timeout of a connection, and of the further addresses of an attempt.
    pub(crate) fn set_timeout(&mut self, id: ConnectionId, timeout: Duration) -> Outcome<()> {
        self.attempts.set_timeout(id, timeout);
        self.polled.peer_mut().set_timeout(id, timeout).map_err(set_error)
    }
}

/// The result of taking one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    Event,
    /// An attempt continues at another address. The program is not notified.
    Continued,
}

/// The meaning of an event for an attempt that may have further addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempted {
    Nothing,
    /// The attempt has succeeded or failed.
    Ended(ConnectionId),
    /// The address did not answer.
    Unanswered(ConnectionId),
}

impl Attempted {
    fn by(event: &Event<'_, RakNet>) -> Self {
        match event {
            Event::ConnectFailed { id, reason, .. } if RakNet::was_unanswered(reason) => {
                Self::Unanswered(*id)
            }
            Event::Connected { id, .. } | Event::ConnectFailed { id, .. } => Self::Ended(*id),
            Event::Disconnected { .. }
            | Event::Refused { .. }
            | Event::Message { .. }
            | Event::Receipt { .. }
            | Event::Progress { .. }
            | Event::MtuChanged { .. }
            | Event::Pong { .. }
            | Event::OutOfBand { .. }
            | Event::Advertisement { .. }
            | _ => Self::Nothing,
        }
    }
}

/// The length in bytes above which a message is returned in its own vector. Shorter ones are copied to reused memory.
const COPIED: usize = 4_096;

/// Fills in an event other than a message, and returns its meaning for attempts.
#[inline(never)]
fn describe(
    from: &Event<'_, RakNet>,
    event: &mut RakwireEvent,
    messages: &mut Messages,
    connections: &mut Connections,
) -> Attempted {
    match *from {
        Event::Connected { id, remote, identity, side } => {
            event.kind = RAKWIRE_EVENT_CONNECTED;
            event.connection = connections.number_of(id);
            event.address = address_of(remote);
            event.guid = identity.0;
            event.side = convert::side(side);
        }
        Event::ConnectFailed { id, remote, reason } => {
            event.kind = RAKWIRE_EVENT_CONNECT_FAILED;
            event.connection = connections.number_of(id);
            event.address = address_of(remote);
            (event.reason, event.server_version) = convert::failure(reason);
        }
        Event::Disconnected { id, remote, reason } => {
            event.kind = RAKWIRE_EVENT_DISCONNECTED;
            event.connection = connections.number_of(id);
            event.address = address_of(remote);
            event.reason = convert::disconnect(reason);
        }
        Event::Refused { id, remote, identity, reason, is_validated } => {
            event.kind = RAKWIRE_EVENT_REFUSED;
            event.connection = connections.number_of(id);
            event.address = address_of(remote);
            event.guid = identity.0;
            event.reason = convert::refusal(reason);
            event.validated = is_validated.into();
        }
        Event::Pong { from, identity, latency, data } => {
            event.kind = RAKWIRE_EVENT_PONG;
            event.latency_us = convert::micros(latency);
            unconnected(event, messages, (from, identity.0), data);
        }
        Event::OutOfBand { from, identity, data } => {
            event.kind = RAKWIRE_EVENT_OUT_OF_BAND;
            unconnected(event, messages, (from, identity.0), data);
        }
        Event::Advertisement { from, identity, data } => {
            event.kind = RAKWIRE_EVENT_ADVERTISEMENT;
            unconnected(event, messages, (from, identity.0), data);
        }
        Event::Receipt { id, receipt, outcome } => {
            event.kind = RAKWIRE_EVENT_RECEIPT;
            event.connection = connections.number_of(id);
            event.receipt = receipt.0;
            event.outcome = convert::outcome(outcome);
        }
        Event::Progress { id, progress } => {
            event.kind = RAKWIRE_EVENT_PROGRESS;
            event.connection = connections.number_of(id);
            describe_progress(progress, event);
        }
        Event::MtuChanged { id, mtu } => {
            event.kind = RAKWIRE_EVENT_MTU_CHANGED;
            event.connection = connections.number_of(id);
            event.mtu = mtu;
        }
        // An event that this library does not know gets the kind 0.
        Event::Message { .. } | _ => {}
    }
    Attempted::by(from)
}

/// Fills in the progress of a split message.
const fn describe_progress(progress: Progress, event: &mut RakwireEvent) {
    event.progress_done = progress.done;
    event.progress_parts = progress.parts;
    event.progress_message = progress.message;
    event.outgoing = convert::is_outgoing(progress.direction) as u8;
}

/// Fills in a datagram from a peer without a connection.
fn unconnected(
    event: &mut RakwireEvent,
    messages: &mut Messages,
    (from, guid): (std::net::SocketAddr, u64),
    data: Message<'_, RakNet>,
) {
    event.address = address_of(from);
    event.guid = guid;
    messages.lend(data.chunks(), event);
}

/// The connection handles of an endpoint. Each handle is unique within the process, so that a handle of another
/// endpoint is detected.
///
/// The low bits of a handle are the slot of its connection, unless an attempt continues at another address in another slot.
#[derive(Debug, Default)]
struct Connections {
    slots: Vec<Option<(ConnectionId, u64)>>,
    renamed: Vec<(u64, u16)>,
}

impl Connections {
    fn find(&self, number: u64) -> Option<ConnectionId> {
        self.in_slot(number as u16, number).or_else(|| {
            let (_, slot) = self.renamed.iter().find(|(renamed, _)| *renamed == number)?;
            self.in_slot(*slot, number)
        })
    }

    fn in_slot(&self, slot: u16, number: u64) -> Option<ConnectionId> {
        let entry = *self.slots.get(usize::from(slot))?;
        entry.filter(|(_, known)| *known == number).map(|(id, _)| id)
    }

    #[inline]
    fn number_of(&mut self, id: ConnectionId) -> u64 {
        match self.slots.get(usize::from(id.slot())) {
            Some(Some((known, number))) if *known == id => *number,
            _ => self.new_number(id),
        }
    }

    #[cold]
    fn new_number(&mut self, id: ConnectionId) -> u64 {
        let number = serial::handle(id.slot());
        *self.entry(id.slot()) = Some((id, number));
        number
    }

    /// Assigns the handle of an attempt to the connection that continues the attempt at its next address.
    fn rename(&mut self, number: u64, id: ConnectionId) {
        let before = self.find(number);
        if let Some(before) = before {
            *self.entry(before.slot()) = None;
        }
        *self.entry(id.slot()) = Some((id, number));
        let mut renamed = std::mem::take(&mut self.renamed);
        renamed.retain(|(other, slot)| *other != number && self.in_slot(*slot, *other).is_some());
        if id.slot() != number as u16 {
            renamed.push((number, id.slot()));
        }
        self.renamed = renamed;
    }

    fn entry(&mut self, slot: u16) -> &mut Option<(ConnectionId, u64)> {
        let slot = usize::from(slot);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, None);
        }
        &mut self.slots[slot]
    }
}

/// The capacity in bytes up to which a released buffer is kept for later messages.
const KEPT: usize = 64 << 10;

/// The messages borrowed by the program. Their memory is reused after release.
///
/// The low 16 bits of a handle are the low 16 bits of its slot index.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    slots: Vec<Slot>,
    free: Vec<u32>,
    serials: Serials,
}

#[derive(Debug, Default)]
struct Slot {
    /// The handle of the borrowed message, or 0. Each message gets a new handle, so that stale handles are detected.
    handle: u64,
    bytes: Vec<u8>,
}

impl Messages {
    /// Returns the number of messages that are currently borrowed.
    pub(crate) const fn borrowed(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Lends a copy of the pieces of a message.
    fn lend<'m>(&mut self, pieces: impl Iterator<Item = &'m [u8]>, event: &mut RakwireEvent) {
        let slot = self.take_slot();
        pieces.for_each(|piece| slot.bytes.extend_from_slice(piece));
        slot.lend(event);
    }

    /// Lends a vector without copying it.
    fn lend_vec(&mut self, bytes: Vec<u8>, event: &mut RakwireEvent) {
        let slot = self.take_slot();
        slot.bytes = bytes;
        slot.lend(event);
    }

    /// Takes a free slot, and gives it a new handle.
    fn take_slot(&mut self) -> &mut Slot {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[number as usize];
        slot.handle = self.serials.handle(number as u16);
        slot
    }

    /// Releases a message.
    #[inline]
    pub(crate) fn release(&mut self, message: u64) -> Outcome<()> {
        let number = self.find(message).ok_or(Failure::new(RAKWIRE_ERROR_HANDLE))?;
        let slot = &mut self.slots[number];
        slot.handle = 0;
        slot.bytes.clear();
        slot.bytes.shrink_to(KEPT);
        self.free.push(number as u32);
        Ok(())
    }

    /// Returns the slot of a borrowed message.
    #[inline]
    fn find(&self, message: u64) -> Option<usize> {
        let first = usize::from(message as u16);
        match self.slots.get(first) {
            Some(slot) if slot.handle == message && message != 0 => Some(first),
            _ => self.find_after(first, message),
        }
    }

    /// Searches the other slots with the same low bits, which exist while more than 65,536 messages are borrowed.
    #[cold]
    fn find_after(&self, first: usize, message: u64) -> Option<usize> {
        let mut further = (first..self.slots.len()).step_by(1 << 16).skip(1);
        further.find(|number| self.slots[*number].handle == message && message != 0)
    }
}

impl Slot {
    fn lend(&mut self, event: &mut RakwireEvent) {
        event.message = self.handle;
        // A mutable pointer, because the program may overwrite the bytes until it releases them.
        event.data = self.bytes.as_mut_ptr();
        event.length = self.bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_released_only_once_and_its_memory_is_reused() {
        let mut messages = Messages::default();
        let mut event = RakwireEvent::zeroed();
        messages.lend(iter::once(&b"hello"[..]), &mut event);
        let (first, place) = (event.message, event.data);
        assert_eq!((event.length, messages.borrowed()), (5, 1));
        messages.release(first).expect("a borrowed message");
        assert_eq!(messages.release(first).err().map(|failure| failure.code), Some(RAKWIRE_ERROR_HANDLE));
        messages.lend([&b"ag"[..], b"ain"].into_iter(), &mut event);
        assert_eq!(event.data, place);
        assert_ne!(event.message, first);
        assert_eq!(messages.release(0).err().map(|failure| failure.code), Some(RAKWIRE_ERROR_HANDLE));
        assert_eq!(messages.borrowed(), 1);
    }

    #[test]
    fn a_message_of_another_endpoint_is_refused() {
        let (mut one, mut other) = (Messages::default(), Messages::default());
        let (mut event, mut event_of_other) = (RakwireEvent::zeroed(), RakwireEvent::zeroed());
        one.lend(iter::once(&b"one"[..]), &mut event);
        other.lend(iter::once(&b"other"[..]), &mut event_of_other);
        let refused = other.release(event.message).err().map(|failure| failure.code);
        assert_eq!((refused, other.borrowed()), (Some(RAKWIRE_ERROR_HANDLE), 1));
        one.release(event.message).expect("a borrowed message");
        other.release(event_of_other.message).expect("a borrowed message");
    }

    #[test]
    fn more_than_65536_messages_can_be_borrowed() {
        let mut messages = Messages::default();
        let mut event = RakwireEvent::zeroed();
        let mut lend = || {
            messages.lend(iter::empty(), &mut event);
            event.message
        };
        let handles: Vec<u64> = (0..200_000).map(|_| lend()).collect();
        assert_eq!(messages.borrowed(), handles.len());
        for handle in handles {
            messages.release(handle).expect("a borrowed message");
            assert!(messages.release(handle).is_err());
        }
        assert_eq!(messages.borrowed(), 0);
    }

    #[test]
    fn buffers_of_long_messages_are_freed_on_release() {
        let mut messages = Messages::default();
        let mut event = RakwireEvent::zeroed();
        messages.lend_vec(vec![0; 1 << 20], &mut event);
        messages.release(event.message).expect("a borrowed message");
        assert!(messages.slots[0].bytes.capacity() <= KEPT);
    }

    #[test]
    fn connection_handles_are_unique_across_endpoints() {
        let (mut one, mut other) = (Connections::default(), Connections::default());
        let id = ConnectionId::without_peer(3);
        let number = one.number_of(id);
        assert_eq!((one.number_of(id), one.find(number)), (number, Some(id)));
        assert_ne!(other.number_of(id), number);
        assert_eq!((other.find(number), one.find(0), one.find(u64::MAX)), (None, None, None));
    }

    #[test]
    fn a_connection_handle_remains_valid_when_its_attempt_moves_to_another_slot() {
        let mut all = Connections::default();
        let [first, second, third] = [3, 7, 3].map(ConnectionId::without_peer);
        let number = all.number_of(first);
        all.rename(number, second);
        assert_eq!((all.find(number), all.number_of(second)), (Some(second), number));
        let other = all.number_of(third);
        assert_ne!(other, number, "a new connection in the freed slot must get another handle");
        assert_eq!((all.find(other), all.find(number)), (Some(third), Some(second)));
        all.rename(number, ConnectionId::without_peer(9));
        assert_eq!(all.find(number), Some(ConnectionId::without_peer(9)));
        assert_eq!(all.renamed.len(), 1);
    }
}
