//! Queues clients that wait for the program's decision.
//!
//! The protocol needs a decision while it handles a client's request. The request is therefore stored, and handled again once
//! the program has decided.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rakwire_native::RakNet;
use rakwire_native::rakwire::Instant;
use rakwire_native::rakwire::endpoint::{Admission, Client, Decision, Hook, SharedAdmission, Verdict};

use crate::serial;

/// The maximum number of clients waiting for a decision.
const MOST: usize = 1_024;

/// The id of the datagram with which a client requests a connection.
const OPEN_CONNECTION_REQUEST_2: u8 = 0x07;

/// A client that the program has not been notified of yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewClient {
    pub(crate) request: u64,
    pub(crate) remote: SocketAddr,
    pub(crate) guid: u64,
}

#[derive(Debug)]
struct Waiting {
    remote: SocketAddr,
    /// The GUID in the datagram, which the program is notified of.
    guid: Option<u64>,
    datagram: Box<[u8]>,
}

#[derive(Debug, Default)]
struct Inner {
    admission: Admission,
    waiting: BTreeMap<u64, Waiting>,
    new: VecDeque<NewClient>,
    /// The request that the protocol is currently handling.
    current: Option<(SocketAddr, Box<[u8]>)>,
    /// The decision about the current request.
    decision: Option<Decision>,
    overflows: u64,
}

/// The waiting clients, shared by the endpoint, its protocol and its hook.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incoming(Arc<Mutex<Inner>>);

impl Incoming {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a datagram that the protocol is about to handle, if it is a connection request.
    pub(crate) fn note(&self, from: SocketAddr, datagram: &[u8]) {
        if datagram.first() == Some(&OPEN_CONNECTION_REQUEST_2) {
            self.lock().current = Some((from, datagram.into()));
        }
    }

    /// Returns the next client that the program has not been notified of yet.
    pub(crate) fn pop(&self) -> Option<NewClient> {
        self.lock().new.pop_front()
    }

    /// Removes and returns the stored request of a client. `decision` answers the protocol's next query.
    pub(crate) fn take(&self, request: u64, decision: Decision) -> Option<(SocketAddr, Box<[u8]>)> {
        let mut inner = self.lock();
        let Waiting { remote, datagram, .. } = inner.waiting.remove(&request)?;
        inner.new.retain(|client| client.request != request);
        inner.decision = Some(decision);
        Some((remote, datagram))
    }

    /// Discards a decision that the protocol did not query, because the request has become invalid.
    pub(crate) fn end_decision(&self) {
        let mut inner = self.lock();
        inner.decision = None;
        inner.current = None;
    }

    /// Returns the number of clients that were dropped because too many were waiting.
    pub(crate) fn overflows(&self) -> u64 {
        self.lock().overflows
    }
}

impl Inner {
    /// Stores the request of a client. A repeated request replaces the previous one. With another GUID, it invalidates the handle
    /// of the previous request: a decision always applies to the GUID that the program was notified of.
    fn keep(&mut self, client: &Client) {
        let Some((remote, datagram)) = self.current.take().filter(|(from, _)| *from == client.remote) else {
            return;
        };
        let guid = client.guid;
        if let Some((request, waiting)) =
            self.waiting.iter_mut().find(|(_, waiting)| waiting.remote == remote)
        {
            if waiting.guid == guid {
                waiting.datagram = datagram;
                return;
            }
            let outdated = *request;
            self.waiting.remove(&outdated);
            self.new.retain(|client| client.request != outdated);
        }
        if self.waiting.len() >= MOST {
            self.overflows += 1;
        } else {
            let request = serial::handle(0);
            self.waiting.insert(request, Waiting { remote, guid, datagram });
            self.new.push_back(NewClient { request, remote, guid: guid.unwrap_or_default() });
        }
    }
}

impl SharedAdmission for Incoming {
    fn with(&self, decide: &mut dyn FnMut(&mut Admission)) {
        decide(&mut self.lock().admission);
    }

    fn decide(&self, client: &Client) -> Decision {
        let mut inner = self.lock();
        if let Some(decision) = inner.decision.take() {
            return decision;
        }
        inner.keep(client);
        Decision::Ignore
    }
}

/// Stores each received connection request before the protocol handles it.
impl Hook<RakNet> for Incoming {
    fn on_received(&mut self, _: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        self.note(from, datagram);
        Verdict::Pass
    }

    fn watches_events(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(port: u16) -> Client {
        Client::new(([127, 0, 0, 1], port).into(), Some(port.into()))
    }

    fn request(incoming: &Incoming, port: u16) {
        let client = client(port);
        incoming.note(client.remote, &[OPEN_CONNECTION_REQUEST_2, port as u8]);
        assert_eq!(incoming.decide(&client), Decision::Ignore);
    }

    #[test]
    fn a_repeated_request_creates_only_one_pending_client() {
        let incoming = Incoming::default();
        request(&incoming, 1);
        request(&incoming, 1);
        let new = incoming.pop().expect("a client");
        assert!(incoming.pop().is_none());
        let (remote, datagram) = incoming.take(new.request, Decision::Accept).expect("a request");
        assert_eq!((remote, &*datagram), (client(1).remote, &[OPEN_CONNECTION_REQUEST_2, 1][..]));
        assert_eq!(incoming.decide(&client(1)), Decision::Accept);
        assert!(
            incoming.take(new.request, Decision::Accept).is_none(),
            "a request must be decided only once"
        );
    }

    #[test]
    fn a_request_with_another_guid_replaces_the_previous_one_and_its_handle() {
        let incoming = Incoming::default();
        let remote = client(1).remote;
        let ask = |guid: u8| {
            incoming.note(remote, &[OPEN_CONNECTION_REQUEST_2, guid]);
            assert_eq!(incoming.decide(&Client::new(remote, Some(guid.into()))), Decision::Ignore);
        };
        ask(7);
        let outdated = incoming.pop().expect("a client");
        [8, 9, 9].into_iter().for_each(ask);
        assert!(incoming.take(outdated.request, Decision::Accept).is_none());
        let new = incoming.pop().expect("a client");
        let (_, datagram) = incoming.take(new.request, Decision::Accept).expect("a request");
        assert_eq!((new.guid, &*datagram), (9, &[OPEN_CONNECTION_REQUEST_2, 9][..]));
        assert!(incoming.pop().is_none(), "a repeated request must not be announced again");
    }

    #[test]
    fn a_request_of_another_endpoint_is_refused() {
        let (one, other) = (Incoming::default(), Incoming::default());
        request(&one, 1);
        request(&other, 2);
        let new = one.pop().expect("a client");
        assert!(other.take(new.request, Decision::Accept).is_none());
        assert!(one.take(new.request, Decision::Accept).is_some());
    }

    #[test]
    fn clients_beyond_the_limit_are_dropped_and_counted() {
        let incoming = Incoming::default();
        (0..MOST as u16 + 3).for_each(|port| request(&incoming, port));
        assert_eq!(incoming.overflows(), 3);
    }

    #[test]
    fn an_unused_decision_does_not_apply_to_the_next_request() {
        let incoming = Incoming::default();
        request(&incoming, 1);
        request(&incoming, 2);
        let first = incoming.pop().expect("a client");
        incoming.take(first.request, Decision::Refuse).expect("a request");
        incoming.end_decision();
        incoming.note(client(2).remote, &[OPEN_CONNECTION_REQUEST_2]);
        assert_eq!(incoming.decide(&client(2)), Decision::Ignore);
    }
}
