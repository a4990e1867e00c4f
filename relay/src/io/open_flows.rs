//! The list of open flows, in which an operator can find and end flows. Also hands the connection of a returning client
//! over to the task of its flow.

use std::collections::BTreeMap;
use std::mem;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::task::AtomicWaker;
use ipnet::IpNet;

use super::transport::Connection;
use crate::addresses::TargetName;
use crate::clients::{ClientEntry, ClientList};
use crate::flow::{FlowEnd, Forwarded};

/// The maximum number of clients in one list.
const LISTED_MAX: usize = 10_000;

/// The list of open flows, in which an operator can find and end flows.
#[derive(Debug, Default)]
pub(crate) struct OpenFlows(Mutex<BTreeMap<u64, Arc<OpenFlow>>>);

/// The listed properties of a flow, and the means to end it.
#[derive(Debug)]
pub(crate) struct OpenFlow {
    number: u64,
    target: TargetName,
    begun: Instant,
    place: Mutex<Place>,
    to_server: AtomicU64,
    to_client: AtomicU64,
    ender: Ender,
}

/// The current or last address of the client, and its transport.
#[derive(Debug)]
struct Place {
    client: SocketAddr,
    transport: &'static str,
    is_away: bool,
}

/// The means to end a flow from another task.
#[derive(Debug)]
pub(crate) enum Ender {
    /// A flow of a page, which runs in its own task.
    Session(Arc<Handover<Box<Connection>>>),
    /// A flow of the front, which checks this flag every second.
    Front(AtomicBool),
}

/// Keeps the entry of a flow in the list until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenFlowGuard {
    flows: Arc<OpenFlows>,
    flow: Arc<OpenFlow>,
}

/// Selects the flows to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selected {
    /// The flow with this number.
    Flow(u64),
    /// The flows of clients in a network.
    Network(IpNet),
}

impl OpenFlows {
    /// Adds a flow that begins now.
    pub(crate) fn add(
        self: &Arc<Self>,
        number: u64,
        target: TargetName,
        (client, transport): (SocketAddr, &'static str),
        ender: Ender,
    ) -> OpenFlowGuard {
        let place = Mutex::new(Place { client, transport, is_away: false });
        let (to_server, to_client) = (AtomicU64::new(0), AtomicU64::new(0));
        let flow =
            Arc::new(OpenFlow { number, target, begun: Instant::now(), place, to_server, to_client, ender });
        self.lock().insert(number, Arc::clone(&flow));
        OpenFlowGuard { flows: Arc::clone(self), flow }
    }

    /// Returns the flows of clients in a network, or all of them.
    pub(crate) fn list(&self, network: Option<IpNet>, now: Instant) -> ClientList {
        let flows = self.lock();
        let selected = flows.values().filter(|flow| network.is_none_or(|network| flow.is_in(&network)));
        let mut list = ClientList::default();
        for flow in selected {
            if list.clients.len() < LISTED_MAX {
                list.clients.push(flow.entry(now));
            } else {
                list.left_out += 1;
            }
        }
        list
    }

    /// Ends the selected flows and returns their number.
    pub(crate) fn end(&self, selected: Selected, end: FlowEnd) -> usize {
        let flows: Vec<_> = match selected {
            Selected::Flow(number) => self.lock().get(&number).cloned().into_iter().collect(),
            Selected::Network(network) => {
                self.lock().values().filter(|flow| flow.is_in(&network)).cloned().collect()
            }
        };
        flows.iter().for_each(|flow| flow.end(end));
        flows.len()
    }

    /// Requests the flows of all pages to notify their clients of the drain.
    pub(crate) fn drain(&self) {
        self.lock().values().for_each(|flow| flow.drain());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<OpenFlow>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenFlow {
    fn end(&self, end: FlowEnd) {
        match &self.ender {
            // Dropping a connection that was about to be handed over closes it.
            Ender::Session(connections) => drop(connections.end(end)),
            Ender::Front(is_over) => is_over.store(true, Ordering::Relaxed),
        }
    }

    fn drain(&self) {
        if let Ender::Session(connections) = &self.ender {
            connections.drain();
        }
    }

    fn is_in(&self, network: &IpNet) -> bool {
        network.contains(&self.place().client.ip().to_canonical())
    }

    fn entry(&self, now: Instant) -> ClientEntry {
        let Place { client, transport, is_away } = *self.place();
        ClientEntry {
            flow: self.number,
            client,
            target: self.target.as_str().to_owned(),
            transport: transport.to_owned(),
            is_away,
            seconds: now.saturating_duration_since(self.begun).as_secs(),
            bytes_to_server: self.to_server.load(Ordering::Relaxed),
            bytes_to_client: self.to_client.load(Ordering::Relaxed),
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenFlowGuard {
    /// Records that the client has returned, from this address.
    pub(super) fn set_place(&self, client: SocketAddr, transport: &'static str) {
        *self.flow.place() = Place { client, transport, is_away: false };
    }

    /// Records that the client's connection is lost.
    pub(super) fn set_away(&self) {
        self.flow.place().is_away = true;
    }

    /// Records the traffic forwarded so far.
    pub(super) fn set_forwarded(&self, forwarded: Forwarded) {
        self.flow.to_server.store(forwarded.to_server, Ordering::Relaxed);
        self.flow.to_client.store(forwarded.to_client, Ordering::Relaxed);
    }

    /// Ends the flow.
    pub(super) fn end(&self, end: FlowEnd) {
        self.flow.end(end);
    }

    /// Requests the flow to notify its client of the drain.
    pub(super) fn drain(&self) {
        self.flow.drain();
    }

    /// Returns true if a flow of the front was requested to end.
    pub(super) fn is_over(&self) -> bool {
        matches!(&self.flow.ender, Ender::Front(is_over) if is_over.load(Ordering::Relaxed))
    }
}

impl Drop for OpenFlowGuard {
    fn drop(&mut self) {
        self.flows.lock().remove(&self.flow.number);
    }
}

/// A request of another task to a flow.
#[derive(Debug)]
pub(crate) enum Request<C> {
    /// Continue with this connection of the client.
    Attach(C),
    /// End, because another client needs the slot. Ignored if the client is connected.
    Evict,
    /// End on the operator's behalf.
    End(FlowEnd),
    /// Notify the client that the relay drains.
    Drain,
}

#[derive(Debug)]
enum State<C> {
    Empty,
    Waiting(Request<C>),
    /// The flow has ended.
    Closed,
}

impl<C> State<C> {
    fn into_connection(self) -> Option<C> {
        match self {
            Self::Waiting(Request::Attach(connection)) => Some(connection),
            Self::Waiting(Request::Evict | Request::End(_) | Request::Drain) | Self::Empty | Self::Closed => {
                None
            }
        }
    }
}

/// A mailbox for one [`Request`]; a later request replaces an earlier one. The drain request has a separate flag.
#[derive(Debug)]
pub(crate) struct Handover<C> {
    state: Mutex<State<C>>,
    is_draining: AtomicBool,
    waker: AtomicWaker,
}

impl<C> Handover<C> {
    pub(crate) const fn new() -> Self {
        Self {
            state: Mutex::new(State::Empty),
            is_draining: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    /// Hands a connection over to the flow, and returns a waiting one that it replaces. If the flow has ended or is
    /// about to end, the new connection is returned as the error.
    pub(crate) fn attach(&self, connection: C) -> Result<Option<C>, C> {
        let mut state = self.lock();
        if matches!(*state, State::Closed | State::Waiting(Request::End(_))) {
            return Err(connection);
        }
        let former = mem::replace(&mut *state, State::Waiting(Request::Attach(connection)));
        drop(state);
        self.waker.wake();
        Ok(former.into_connection())
    }

    /// Requests a flow to end if its client is not connected.
    pub(crate) fn evict(&self) {
        let mut state = self.lock();
        if matches!(*state, State::Empty) {
            *state = State::Waiting(Request::Evict);
        }
        drop(state);
        self.waker.wake();
    }

    /// Requests a flow to end. Returns a connection that was waiting to be handed over.
    pub(crate) fn end(&self, end: FlowEnd) -> Option<C> {
        let mut state = self.lock();
        if matches!(*state, State::Closed) {
            return None;
        }
        let former = mem::replace(&mut *state, State::Waiting(Request::End(end)));
        drop(state);
        self.waker.wake();
        former.into_connection()
    }

    /// Requests the flow to notify its client that the relay drains.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns the next request.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Request<C>> {
        self.waker.register(context.waker());
        // The flag is loaded before it is stored to, because this runs for each datagram.
        if self.is_draining.load(Ordering::Acquire) {
            self.is_draining.store(false, Ordering::Release);
            return Poll::Ready(Request::Drain);
        }
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Empty) {
            State::Waiting(request) => Poll::Ready(request),
            State::Empty => Poll::Pending,
            State::Closed => {
                *state = State::Closed;
                Poll::Pending
            }
        }
    }

    /// Marks the flow as ended. Returns a connection that was handed over too late.
    pub(crate) fn close(&self) -> Option<C> {
        mem::replace(&mut *self.lock(), State::Closed).into_connection()
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn taken(handover: &Handover<u8>) -> Option<u8> {
        match handover.poll(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Request::Attach(number)) => Some(number),
            Poll::Ready(Request::Evict) => Some(0),
            Poll::Ready(Request::End(_)) => Some(u8::MAX),
            Poll::Ready(Request::Drain) => Some(u8::MAX - 1),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_newer_connection_replaces_a_waiting_connection() {
        let handover = Handover::new();
        handover.evict();
        assert_eq!(taken(&handover), Some(0));
        assert_eq!((handover.attach(1), handover.attach(2)), (Ok(None), Ok(Some(1))));
        handover.evict();
        assert_eq!((taken(&handover), taken(&handover)), (Some(2), None));
    }

    #[test]
    fn attaching_to_an_ending_flow_returns_the_connection() {
        let handover = Handover::new();
        assert_eq!(handover.attach(1), Ok(None));
        assert_eq!(handover.end(FlowEnd::Kicked), Some(1));
        assert_eq!(handover.attach(2), Err(2));
        handover.evict();
        assert_eq!((taken(&handover), handover.close()), (Some(u8::MAX), None));
        assert_eq!(handover.end(FlowEnd::Kicked), None);
    }

    #[test]
    fn a_drain_is_delivered_once_and_replaces_no_request() {
        let handover = Handover::new();
        assert_eq!(handover.attach(1), Ok(None));
        handover.drain();
        assert_eq!([(); 3].map(|()| taken(&handover)), [Some(u8::MAX - 1), Some(1), None]);
    }

    #[test]
    fn an_ended_flow_ignores_requests() {
        let handover = Handover::new();
        assert_eq!(handover.attach(1), Ok(None));
        assert_eq!(handover.close(), Some(1));
        assert_eq!(handover.attach(2), Err(2));
        handover.evict();
        assert_eq!((taken(&handover), handover.close()), (None, None));
    }
}
