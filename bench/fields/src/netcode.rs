//! renet with its netcode transport, which encrypts packets.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use renet::{ClientId, ConnectionConfig, DefaultChannel, RenetClient, RenetServer, ServerEvent};
use renet_netcode::{
    ClientAuthentication, NetcodeClientTransport, NetcodeServerTransport, ServerAuthentication, ServerConfig,
};

use crate::driven::{Driven, Handle};
use crate::library::{Delivery, Library, Server, socket};

const PROTOCOL: u64 = 7;

pub(crate) struct Renet;

impl Library for Renet {
    type Connection = Handle;
    type Server = Listener;

    async fn serve(address: SocketAddr, delivery: Delivery) -> Result<Listener, String> {
        Ok(Listener { socket: socket(address)?, delivery })
    }

    async fn connect(server_addr: SocketAddr, delivery: Delivery) -> Result<Handle, String> {
        let socket = socket(([127, 0, 0, 1], 0).into())?;
        let authentication = ClientAuthentication::Unsecure {
            protocol_id: PROTOCOL,
            client_id: 1,
            server_addr,
            user_data: None,
        };
        let own = socket.try_clone().map_err(|error| error.to_string())?;
        let transport = NetcodeClientTransport::new(wall_clock(), authentication, own);
        let transport = transport.map_err(|error| error.to_string())?;
        let client = RenetClient::new(ConnectionConfig::default());
        Handle::start(Client { client, transport, last: Instant::now() }, &socket, delivery).await
    }
}

/// Returns the wall-clock time, with which netcode checks the expiry of its tokens.
fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn channel(delivery: Delivery) -> u8 {
    u8::from(match delivery {
        Delivery::ReliableOrdered => DefaultChannel::ReliableOrdered,
        Delivery::Unreliable => DefaultChannel::Unreliable,
    })
}

/// Returns the time since `last`, and sets `last` to the current time.
fn since(last: &mut Instant) -> Duration {
    let now = Instant::now();
    now.duration_since(std::mem::replace(last, now))
}

pub(crate) struct Listener {
    socket: UdpSocket,
    delivery: Delivery,
}

impl Server for Listener {
    type Connection = Handle;

    fn port(&self) -> u16 {
        self.socket.local_addr().map_or(0, |address| address.port())
    }

    async fn accept(&mut self) -> Result<Handle, String> {
        let address = self.socket.local_addr().map_err(|error| error.to_string())?;
        let config = ServerConfig {
            current_time: wall_clock(),
            max_clients: 1,
            protocol_id: PROTOCOL,
            // Clients may connect through a proxy on another port. Without a key netcode does not compare this address.
            public_addresses: vec![address],
            authentication: ServerAuthentication::Unsecure,
        };
        let own = self.socket.try_clone().map_err(|error| error.to_string())?;
        let transport = NetcodeServerTransport::new(config, own).map_err(|error| error.to_string())?;
        let server = RenetServer::new(ConnectionConfig::default());
        let end = ServerEnd { server, transport, last: Instant::now(), client: None };
        Handle::start(end, &self.socket, self.delivery).await
    }
}

struct Client {
    client: RenetClient,
    transport: NetcodeClientTransport,
    last: Instant,
}

impl Driven for Client {
    fn service(&mut self) -> Result<(), String> {
        let elapsed = since(&mut self.last);
        self.client.update(elapsed);
        self.transport.update(elapsed, &mut self.client).map_err(|error| error.to_string())?;
        self.transport.send_packets(&mut self.client).map_err(|error| error.to_string())
    }

    fn is_connected(&self) -> bool {
        self.client.is_connected()
    }

    fn has_room(&mut self, len: usize) -> bool {
        [Delivery::ReliableOrdered, Delivery::Unreliable]
            .into_iter()
            .all(|delivery| self.client.can_send_message(channel(delivery), len))
    }

    fn send(&mut self, message: &[u8], delivery: Delivery) -> Result<(), String> {
        self.client.send_message(channel(delivery), message.to_vec());
        Ok(())
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let client = &mut self.client;
        let mut next = |delivery| client.receive_message(channel(delivery));
        next(Delivery::ReliableOrdered).or_else(|| next(Delivery::Unreliable)).map(Vec::from)
    }
}

struct ServerEnd {
    server: RenetServer,
    transport: NetcodeServerTransport,
    last: Instant,
    client: Option<ClientId>,
}

impl Driven for ServerEnd {
    fn service(&mut self) -> Result<(), String> {
        let elapsed = since(&mut self.last);
        self.server.update(elapsed);
        self.transport.update(elapsed, &mut self.server).map_err(|error| error.to_string())?;
        while let Some(event) = self.server.get_event() {
            match event {
                ServerEvent::ClientConnected { client_id } => self.client = Some(client_id),
                ServerEvent::ClientDisconnected { .. } => return Err("the connection has ended".to_owned()),
            }
        }
        self.transport.send_packets(&mut self.server);
        Ok(())
    }

    fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    fn has_room(&mut self, len: usize) -> bool {
        let server = &self.server;
        self.client.is_some_and(|client| {
            [Delivery::ReliableOrdered, Delivery::Unreliable]
                .into_iter()
                .all(|delivery| server.can_send_message(client, channel(delivery), len))
        })
    }

    fn send(&mut self, message: &[u8], delivery: Delivery) -> Result<(), String> {
        let client = self.client.ok_or("not connected")?;
        self.server.send_message(client, channel(delivery), message.to_vec());
        Ok(())
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let client = self.client?;
        let server = &mut self.server;
        let mut next = |delivery| server.receive_message(client, channel(delivery));
        next(Delivery::ReliableOrdered).or_else(|| next(Delivery::Unreliable)).map(Vec::from)
    }
}
