//! Transport of datagrams from peer to peer through routers, links, the relay and the front.

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::access::{unwrap, wrap};
use crate::client::{Carrier, client_of};
use crate::edge::{FromFront, from_page};
use crate::flow::ToClient;
use crate::plant::Plant;
use crate::world::{FRONT, FRONT_INSIDE, RELAY_INSIDE, World};

/// The kinds of frames between a page and the relay: a datagram, or a ping or pong.
const DATAGRAM: u8 = 0;
const CONTROL: u8 = 1;

impl World {
    /// Delivers arrived datagrams.
    pub(crate) fn receive(&mut self) {
        while let Some(bytes) = self.to_server.receive(self.now) {
            if let Some((from, datagram)) = unwrap(&bytes) {
                self.receive_at_server(from, datagram);
            }
        }
        while let Some(bytes) = self.from_server.receive(self.now) {
            if let Some((to, datagram)) = unwrap(&bytes) {
                self.receive_inside(to, datagram);
            }
        }
        for number in 0..self.clients.len() {
            self.receive_from_client(number);
            self.receive_at_client(number);
        }
    }

    pub(crate) fn receive_at_server(&mut self, from: SocketAddr, datagram: &[u8]) {
        if self.server_is_down_until.is_none() {
            self.server.receive(self.now, from, datagram);
        }
    }

    /// Delivers a datagram from the server to the relay or to the front.
    fn receive_inside(&mut self, to: SocketAddr, datagram: &[u8]) {
        if to.ip() == IpAddr::V4(FRONT_INSIDE) {
            let out = self.front.handle_server(to.port(), datagram);
            self.send_of_front(out);
        } else {
            self.relay.handle_server(self.now, to.port(), datagram);
        }
    }

    /// Delivers datagrams from a client's access network to the relay, the front or the server.
    fn receive_from_client(&mut self, number: usize) {
        while let Some(client) = self.clients[number].as_mut() {
            let Some(bytes) = client.up.receive(self.now) else { return };
            if client.is_relayed() {
                let (carrier, generation) = (client.carrier, client.generation);
                let ([of, kind, ..], Carrier::Up { port }) = (&bytes[..], carrier) else { continue };
                if *of == generation {
                    let datagram = (*kind == DATAGRAM).then(|| bytes[2..].to_vec());
                    self.relay.handle_client(self.now, port, from_page(datagram));
                }
            } else if let Some((from, datagram)) = unwrap(&bytes) {
                if client.remote() == FRONT {
                    let out = self.front.handle_client(self.now, from, datagram);
                    self.send_of_front(out);
                } else {
                    self.receive_at_server(from, datagram);
                }
            }
        }
    }

    /// Delivers datagrams from a client's access network to the client.
    fn receive_at_client(&mut self, number: usize) {
        while let Some(client) = self.clients[number].as_mut() {
            let Some(bytes) = client.down.receive(self.now) else { return };
            let remote = client.remote();
            if client.is_relayed() {
                let [of, kind, datagram @ ..] = &bytes[..] else { continue };
                if *of != client.generation {
                    continue;
                }
                match *kind {
                    DATAGRAM => client.host.receive(self.now, remote, datagram),
                    // A browser answers pings automatically.
                    _ => client.up.send(self.now, vec![client.generation, CONTROL]),
                }
            } else if let Some((to, datagram)) = unwrap(&bytes) {
                let is_current = client.nat.ip() == to.ip();
                let inside = client.nat.inbound(self.now, to.port(), remote).filter(|_| is_current);
                if inside == Some(client.inside) {
                    client.host.receive(self.now, remote, datagram);
                }
            }
        }
    }

    fn send_of_front(&mut self, out: Vec<(FromFront, Vec<u8>)>) {
        for (to, datagram) in out {
            match to {
                FromFront::Client(client) => self.send_to_router(client, &datagram),
                FromFront::Server(port) => {
                    self.to_server.send(self.now, &wrap((FRONT_INSIDE, port).into(), &datagram));
                }
            }
        }
    }

    /// Sends all pending datagrams of clients, relay and server.
    pub(crate) fn transmit(&mut self) {
        for number in 0..self.clients.len() {
            self.transmit_of_client(number);
        }
        for (port, datagram) in self.relay.poll_to_server(self.now) {
            self.to_server.send(self.now, &wrap((RELAY_INSIDE, port).into(), &datagram));
        }
        self.transmit_of_server();
        self.transmit_of_relay();
        for (client, generation) in self.relay.settle() {
            let until = self.now + Duration::from_secs(1);
            let client = self.clients.get_mut(client).and_then(Option::as_mut);
            if let Some(client) = client.filter(|client| client.generation == generation) {
                client.lose_carrier(until);
                client.ticket = None;
            }
        }
    }

    fn transmit_of_client(&mut self, number: usize) {
        let Some(client) = self.clients[number].as_mut() else { return };
        while client.up.has_room() {
            let Some((to, datagram)) = client.host.poll_transmit(self.now) else { return };
            if client.is_relayed() {
                if is_up(client.carrier) {
                    let frame = [client.generation, DATAGRAM].into_iter().chain(datagram).collect();
                    client.up.send(self.now, frame);
                }
            } else if datagram.len() > client.path {
                if client.reports_too_long {
                    let clock = client.host.clock(self.now);
                    client.host.peer.handle_too_large(clock, to, datagram.len());
                }
            } else {
                let outside = client.nat.outbound(self.now, client.inside, to);
                client.up.send(self.now, wrap(outside, &datagram));
            }
        }
    }

    fn transmit_of_server(&mut self) {
        if self.server_is_down_until.is_some() {
            return;
        }
        while let Some((to, datagram)) = self.server.poll_transmit(self.now) {
            match to.ip() {
                IpAddr::V4(FRONT_INSIDE | RELAY_INSIDE) => {
                    self.from_server.send(self.now, &wrap(to, &datagram))
                }
                IpAddr::V4(_) | IpAddr::V6(_) => self.send_to_router(to, &datagram),
            }
        }
    }

    /// Sends a datagram from the server or the front to the router of a client.
    fn send_to_router(&mut self, to: SocketAddr, datagram: &[u8]) {
        let Some(number) = client_of(to) else { return };
        if self.plant == Some(Plant::StarvesClient) && self.received > 20 {
            return;
        }
        let Some(client) = self.clients.get_mut(number).and_then(Option::as_mut) else { return };
        if datagram.len() <= client.path {
            client.down.send(self.now, wrap(to, datagram));
        }
    }

    fn transmit_of_relay(&mut self) {
        let clients = &self.clients;
        let has_room = |number: usize| {
            clients.get(number).and_then(Option::as_ref).is_some_and(|client| client.down.has_room())
        };
        let frames = self.relay.poll_to_client(self.now, has_room);
        for frame in frames {
            let mixes = self.plant == Some(Plant::MixesFlows) && self.received > 20;
            let other = if mixes { (frame.client + 1) % self.clients.len() } else { frame.client };
            let Some(client) = self.clients.get_mut(other).and_then(Option::as_mut) else { continue };
            let generation = if mixes { client.generation } else { frame.generation };
            match frame.frame {
                ToClient::Datagram(datagram) => {
                    let bytes = [generation, DATAGRAM].into_iter().chain(datagram).collect();
                    client.down.send(self.now, bytes);
                }
                ToClient::Ping => client.down.send(self.now, vec![generation, CONTROL]),
                ToClient::Control(_) => {}
            }
        }
    }

    /// Delivers random datagrams from unknown sources to the server and to the front.
    pub(crate) fn send_noise(&mut self, datagrams: u64) {
        for _ in 0..datagrams {
            let length = self.random.below(1_472) as usize;
            let mut datagram = self.random.bytes(length);
            // Half of them begin like a datagram of a connection or of a handshake.
            let kinds = [0x84, 0xC0, 0x01, 0x05, 0x07, 0xA0];
            if let Some(first) = datagram.first_mut().filter(|_| self.random.below(2) == 0) {
                *first = kinds[self.random.below(6) as usize];
            }
            let host = self.random.below(250) as u8;
            let from = (Ipv4Addr::new(192, 0, 2, host), 1_024 + self.random.below(60_000) as u16).into();
            if self.random.below(2) == 0 {
                self.receive_at_server(from, &datagram);
            } else {
                let out = self.front.handle_client(self.now, from, &datagram);
                self.send_of_front(out);
            }
        }
    }
}

const fn is_up(carrier: Carrier) -> bool {
    matches!(carrier, Carrier::Up { .. })
}
