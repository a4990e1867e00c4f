//! Accepts clients, and runs the handshake as the server.

use crate::case::Context;
use crate::check::{Check, fail};
use crate::link::Link;
use crate::session::{Session, new_guid, now};
use crate::wire::{self, Capsule, Datagram, Reply1, Reply2, Request2, id};
use std::net::UdpSocket;
use std::time::Instant;

/// A client that has sent request 1.
#[derive(Debug)]
pub struct Attempt {
    /// The socket.
    pub link: Link,
    /// The first request 1 of the client.
    pub first: Vec<u8>,
    /// The GUID of the suite.
    pub guid: u64,
}

impl Context {
    /// Waits for a client and its first request 1.
    pub fn accept(&mut self) -> Check<Attempt> {
        let Some(listening) = self.options.listening.clone() else {
            return fail("the suite has no address to listen on: pass --listen");
        };
        let socket = UdpSocket::bind(listening.address)?;
        let address = socket.local_addr()?;
        if !listening.starts_clients() {
            self.accepted.push(socket.try_clone()?);
        }
        self.started.extend(listening.start(address)?);
        let deadline = Instant::now() + listening.patience;
        let is_request = |bytes: &[u8]| wire::offline_id(bytes) == Some(id::REQUEST_1);
        let (timing, trace, number) = (self.timing, self.trace.clone(), self.count_socket());
        match Link::accept(socket, timing, trace, number, deadline, is_request)? {
            Some((link, first)) => {
                self.target = link.target;
                Ok(Attempt { link, first, guid: new_guid() })
            }
            None => fail(format!("no client connected within {:?}", listening.patience)),
        }
    }

    /// Disconnects clients that the suite did not start. They then reconnect for the next case.
    pub(crate) fn dismiss(&mut self) {
        let newest = self.trace.entries().into_iter().filter(|entry| entry.sent).filter_map(|entry| {
            match Datagram::read(&entry.bytes)? {
                Datagram::Data { number, .. } => Some(number),
                Datagram::Ack(_) | Datagram::Nak(_) => None,
            }
        });
        let next = newest.max().map_or(0, |newest| newest + 1);
        let notice = wire::data(0x84, next, &[Capsule::unreliable(vec![id::DISCONNECTION])]);
        for socket in self.accepted.drain(..) {
            // The case is over, so ignore errors.
            let _ = socket.send(&notice);
        }
    }

    /// Runs the handshake with a client up to reply 2.
    pub fn reserve(&mut self) -> Check<Session> {
        self.accept()?.reserve(wire::LARGEST_MTU)
    }

    /// Runs the handshake with a client up to its connection request.
    pub fn requested(&mut self) -> Check<(Session, Capsule)> {
        let mut session = self.reserve()?;
        let request = session.wait_for(id::CONNECTION_REQUEST)?;
        Ok((session, request))
    }
}

impl Attempt {
    /// Returns the MTU that the first request 1 probes: its length and the headers of IP and UDP.
    #[must_use]
    pub fn probed(&self) -> u16 {
        (self.first.len() + wire::UDP_OVERHEAD) as u16
    }

    /// Builds a reply 1 with this MTU.
    #[must_use]
    pub fn reply_1(&self, cookie: Option<u32>, mtu: u16) -> Vec<u8> {
        wire::reply_1(self.guid, cookie, mtu)
    }

    /// Builds a reply 2 with this MTU.
    #[must_use]
    pub fn reply_2(&self, mtu: u16) -> Vec<u8> {
        wire::reply_2(self.guid, self.link.target, mtu)
    }

    /// Waits for a request 2. Malformed ones are ignored.
    pub fn request_2(&mut self) -> Check<Option<(Vec<u8>, Request2)>> {
        let bytes = self.link.offline(&[id::REQUEST_2])?;
        Ok(bytes.and_then(|bytes| Some((bytes.clone(), wire::read_request_2(&bytes)?))))
    }

    /// Sends a reply 1 that offers at most this MTU, waits for request 2, and sends reply 2.
    pub fn reserve(mut self, most: u16) -> Check<Session> {
        let mtu = self.probed().min(most);
        for _ in 0..3 {
            self.link.send(&self.reply_1(None, mtu))?;
            if let Some((_, request)) = self.request_2()? {
                let mtu = request.mtu.min(mtu);
                self.link.send(&self.reply_2(mtu))?;
                return Ok(self.session(mtu));
            }
        }
        fail("the client did not answer reply 1 (06) with request 2 (07)")
    }

    /// Returns the connection after a reply 2.
    #[must_use]
    pub fn session(self, mtu: u16) -> Session {
        let first = Reply1 { guid: self.guid, security: 0, cookie: None, key: false, mtu };
        let second = Reply2 { guid: self.guid, client: self.link.target, mtu, encryption: 0, rest: 0 };
        let addresses = if self.first.get(17) > Some(&8) { 20 } else { 10 };
        Session { addresses, ..Session::new(self.link, self.guid, first, second) }
    }
}

impl Session {
    /// Waits for a control message from the client, within the time limit of an answer.
    pub fn wait_for(&mut self, id: u8) -> Check<Capsule> {
        let answer = self.link.timing.answer;
        self.wait(answer, |session| session.first(id).is_some())?;
        match self.first(id).map(|arrival| arrival.capsule.clone()) {
            Some(capsule) => Ok(capsule),
            None => fail(format!("the client did not send the message with id {id:02x}")),
        }
    }

    /// Builds a connection request accepted (10) with this number of addresses.
    #[must_use]
    pub fn accepted(&self, addresses: usize) -> Vec<u8> {
        let request = self.first(id::CONNECTION_REQUEST);
        let time = request.and_then(|request| request.capsule.payload.get(9..17)?.try_into().ok());
        wire::accepted(self.link.target, addresses, time.map_or(0, u64::from_be_bytes), now())
    }

    /// Sends connection request accepted (10) as the first message on ordering channel 0.
    pub fn send_10(&mut self, payload: Vec<u8>) -> Check<u32> {
        let number = self.next_reliable();
        self.send(&[Capsule::ordered(number, 0, 0, payload)])
    }

    /// Answers the connection request of a client, and waits until the connection is open.
    pub fn open_as_server(&mut self) -> Check {
        self.wait_for(id::CONNECTION_REQUEST)?;
        let accepted = self.accepted(self.addresses);
        let datagram = self.send_10(accepted.clone())?;
        if !self.wait_ack(datagram)? {
            self.send(&[Capsule::ordered(self.reliable - 1, 0, 0, accepted)])?;
        }
        self.wait_for(id::NEW_INCOMING).map(|_| ())
    }
}
