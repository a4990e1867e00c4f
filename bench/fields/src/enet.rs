//! ENet from the crate `rusty_enet`, which is the C library transpiled to Rust.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};

use rusty_enet::{EventNoRef, Host, HostSettings, Packet, PeerID};

use crate::driven::{Driven, Handle};
use crate::library::{Delivery, Library, Server, socket};

/// One channel for reliable messages and one for unreliable ones.
const CHANNELS: usize = 2;

pub(crate) struct Enet;

impl Library for Enet {
    type Connection = Handle;
    type Server = EnetServer;

    async fn serve(address: SocketAddr, delivery: Delivery) -> Result<EnetServer, String> {
        Ok(EnetServer { socket: socket(address)?, delivery })
    }

    async fn connect(address: SocketAddr, delivery: Delivery) -> Result<Handle, String> {
        let socket = socket(([127, 0, 0, 1], 0).into())?;
        let mut end = End::new(&socket)?;
        end.host.connect(address, CHANNELS, 0).map_err(|error| error.to_string())?;
        Handle::start(end, &socket, delivery).await
    }
}

pub(crate) struct EnetServer {
    socket: UdpSocket,
    delivery: Delivery,
}

impl Server for EnetServer {
    type Connection = Handle;

    fn port(&self) -> u16 {
        self.socket.local_addr().map_or(0, |address| address.port())
    }

    async fn accept(&mut self) -> Result<Handle, String> {
        Handle::start(End::new(&self.socket)?, &self.socket, self.delivery).await
    }
}

/// A host with one peer.
struct End {
    host: Host<UdpSocket>,
    peer: Option<PeerID>,
    received: VecDeque<Vec<u8>>,
}

impl End {
    fn new(socket: &UdpSocket) -> Result<Self, String> {
        let settings = HostSettings { peer_limit: 1, channel_limit: CHANNELS, ..HostSettings::default() };
        let socket = socket.try_clone().map_err(|error| error.to_string())?;
        let host = Host::new(socket, settings).map_err(|error| error.to_string())?;
        Ok(Self { host, peer: None, received: VecDeque::new() })
    }
}

impl Driven for End {
    fn service(&mut self) -> Result<(), String> {
        loop {
            let event = self.host.service().map_err(|error| error.to_string())?;
            match event.map(|event| event.no_ref()) {
                Some(EventNoRef::Connect { peer, .. }) => self.peer = Some(peer),
                Some(EventNoRef::Receive { packet, .. }) => self.received.push_back(packet.data().to_vec()),
                Some(EventNoRef::Disconnect { .. }) => return Err("the connection has ended".to_owned()),
                None => return Ok(()),
            }
        }
    }

    fn is_connected(&self) -> bool {
        self.peer.is_some()
    }

    fn has_room(&mut self, _len: usize) -> bool {
        true
    }

    fn send(&mut self, message: &[u8], delivery: Delivery) -> Result<(), String> {
        let peer = self.peer.ok_or("not connected")?;
        let (channel, packet) = match delivery {
            Delivery::ReliableOrdered => (0, Packet::reliable(message)),
            Delivery::Unreliable => (1, Packet::unreliable_unsequenced(message)),
        };
        self.host.peer_mut(peer).send(channel, &packet).map_err(|error| error.to_string())
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.received.pop_front()
    }
}
