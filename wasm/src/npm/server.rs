//! The class `RakNetServer`.

use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

use rakwire::endpoint::{Capacity, ConnectionId, ConnectionState, Peer, Protocol};
use rakwire::raknet::RakNet;
use wasm_bindgen::prelude::*;

use super::buffer::{ADDRESS_LENGTH, Buffer, address_bytes};
use super::numbers::{
    INVALID_DELIVERY, Numbers, accepted, count, entropy, memory, send_error, sent, timeout,
};
use super::record;
use crate::client::{Memory, instant, millis};

/// The length of an address in bytes, including the number of its interface, which link-local addresses need. The
/// number 0 means no interface.
const ADDRESS: usize = ADDRESS_LENGTH + 4;

/// A RakNet server, without a socket, timers or a clock. A connection is identified by its slot, which is reused only
/// after its close event was returned.
///
/// After any call, call `pollReadable`. For each connection that it returns, call `pollEvent` until it returns
/// nothing. Then call `pollTransmit` until it returns nothing, and `handleTimeout` at `pollTimeout`.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RakNetServer {
    peer: Peer<'static, RakNet>,
    buffer: Buffer,
    datagram: Vec<u8>,
    /// The connection in each slot.
    ids: Vec<Option<ConnectionId>>,
}

#[wasm_bindgen]
impl RakNetServer {
    /// Creates a server for up to `connections` connections. `a` to `d` are 256 bits of entropy. For any later
    /// argument, 0 selects the default. Returns `None` if there is not enough memory.
    #[allow(clippy::too_many_arguments, reason = "an options object would cost JavaScript an allocation")]
    pub fn create(
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        connections: u16,
        blocks: u32,
        block_size: u32,
        timeout_ms: u32,
        per_address: u16,
        per_network: u16,
    ) -> Option<Self> {
        let capacity = Capacity::for_connections(connections.into());
        let default = Memory { blocks: capacity.blocks, block_size: capacity.block_size };
        let memory = memory(default, blocks, block_size);
        if !memory.is_available() {
            return None;
        }
        let mut config = RakNet::config(entropy([a, b, c, d]));
        config.max_incoming = connections;
        config.max_per_address = Some(per_address).filter(|most| *most > 0);
        config.max_per_network = Some(per_network).filter(|most| *most > 0);
        if memory != default {
            // The memory limits the length of messages.
            config.max_message_len = u32::MAX;
        }
        config.timeout = timeout(timeout_ms).unwrap_or(config.timeout);
        let capacity = Capacity { blocks: memory.blocks, block_size: memory.block_size, ..capacity };
        Some(Self {
            peer: Peer::with_capacity(capacity, config),
            buffer: Buffer::new(),
            datagram: vec![0; RakNet::MAX_DATAGRAM],
            ids: vec![None; connections.into()],
        })
    }

    /// Returns the address for 16 bytes and `length` bytes, for the next call that takes bytes; 0 if there is no
    /// memory.
    pub fn reserve(&mut self, length: u32) -> *const u8 {
        self.buffer.reserve(length as usize)
    }

    /// Sets the password for clients from the buffer. Returns false if it is too long.
    #[wasm_bindgen(js_name = setPassword)]
    pub fn set_password(&mut self, length: u32) -> bool {
        self.peer.set_password(self.buffer.read(length)).is_ok()
    }

    /// Sets the advertisement in pongs from the buffer. Returns false if it is too long.
    #[wasm_bindgen(js_name = setAdvertisement)]
    pub fn set_advertisement(&mut self, length: u32) -> bool {
        self.peer.set_advertisement(self.buffer.read(length)).is_ok()
    }

    /// Handles the received datagram in the buffer, after the 22 bytes of its source address.
    pub fn handle(&mut self, length: u32, now: f64) {
        let Some((from, datagram)) = self.buffer.read(length).split_first_chunk() else { return };
        self.peer.handle_datagram(instant(now), read_address(*from), datagram);
    }

    /// Handles expired timeouts.
    #[wasm_bindgen(js_name = handleTimeout)]
    pub fn handle_timeout(&mut self, now: f64) {
        self.peer.handle_timeout(instant(now));
    }

    /// Returns the address of the next datagram to send, after the 22 bytes of its destination address, or 0.
    #[wasm_bindgen(js_name = pollTransmit)]
    pub fn poll_transmit(&mut self, now: f64) -> *const u8 {
        let Some(transmit) = self.peer.poll_transmit(instant(now), &mut self.datagram) else {
            return core::ptr::null();
        };
        let to = write_address(transmit.to);
        let length = to.len() + transmit.payload.len();
        self.buffer.write([0; 3], length, [&to[..], transmit.payload].into_iter())
    }

    /// Returns the time of the next call of `handleTimeout` and `pollTransmit`, in milliseconds; infinity means never.
    #[wasm_bindgen(js_name = pollTimeout)]
    pub fn poll_timeout(&self) -> f64 {
        self.peer.poll_timeout().map_or(f64::INFINITY, millis)
    }

    /// Returns the slot of the next connection with an event, or -1.
    #[wasm_bindgen(js_name = pollReadable)]
    pub fn poll_readable(&mut self) -> i32 {
        let Some(id) = self.peer.poll_readable() else { return -1 };
        if let Some(place) = self.ids.get_mut(usize::from(id.slot())) {
            *place = Some(id);
        }
        id.slot().into()
    }

    /// Returns the address of the next event of a connection, or 0.
    #[wasm_bindgen(js_name = pollEvent)]
    pub fn poll_event(&mut self, connection: u16) -> *const u8 {
        let event = self.id(connection).and_then(|id| self.peer.poll_event_of(id));
        event.map_or(core::ptr::null(), |event| record::write(&event, &mut self.buffer))
    }

    /// Returns the record with the network address of a client in 22 bytes and its GUID in 8 bytes, little-endian; 0 if
    /// the client has disconnected.
    pub fn client(&mut self, connection: u16) -> *const u8 {
        let known = self.id(connection).and_then(|id| self.peer.connection(id));
        let Some(known) = known else { return core::ptr::null() };
        let (remote, guid) = (write_address(known.remote), known.identity.0.to_le_bytes());
        self.buffer.write([0; 3], remote.len() + guid.len(), [&remote[..], &guid].into_iter())
    }

    /// Returns true if a connection is closed and only queued events remain.
    #[wasm_bindgen(js_name = isOver)]
    pub fn is_over(&self, connection: u16) -> bool {
        let known = self.id(connection).and_then(|id| self.peer.connection(id));
        known.is_none_or(|known| known.state == ConnectionState::Disconnected)
    }

    /// Closes a connection once the reliable messages sent earlier are acknowledged.
    pub fn disconnect(&mut self, connection: u16, now: f64) {
        if let Some(id) = self.id(connection) {
            self.peer.disconnect(instant(now), id);
        }
    }

    /// Queues the message in the buffer for sending, like `RakNetPeer.send`.
    pub fn send(&mut self, connection: u16, length: u32, delivery: u32, now: f64) -> f64 {
        let (Some(id), Some(delivery)) = (self.id(connection), RakNet::delivery(delivery)) else {
            return sent::<u32>(Err(INVALID_DELIVERY));
        };
        let result = self.peer.send(instant(now), id, self.buffer.read(length), delivery);
        sent(result.map(|receipt| receipt.map(|receipt| receipt.0)).map_err(send_error))
    }

    /// Returns 1, 0 or an error like `RakNetPeer.canSend`.
    #[wasm_bindgen(js_name = canSend)]
    pub fn can_send(&mut self, connection: u16, length: u32, delivery: u32) -> i32 {
        match (self.id(connection), RakNet::delivery(delivery)) {
            (Some(id), Some(delivery)) => accepted(self.peer.can_send(id, length as usize, delivery)),
            _ => -1 - i32::from(INVALID_DELIVERY),
        }
    }

    /// Returns the address of the counters of a connection, like `RakNetPeer.stats` without drops, which are counted
    /// for the whole server.
    pub fn stats(&mut self, connection: u16) -> *const u8 {
        let stats = self.id(connection).and_then(|id| self.peer.connection_stats(id)).unwrap_or_default();
        let longest = self.id(connection).and_then(|id| self.peer.max_message_len(id)).unwrap_or(0);
        let bytes =
            [longest as u64, stats.actual_bytes_sent.total, stats.actual_bytes_received.total].map(count);
        self.buffer.write_floats(RakNet::measure(&stats).into_iter().chain(bytes))
    }

    /// Returns the address of the counters of the whole server: the bytes sent and received, and the number of drops
    /// for each reason.
    #[wasm_bindgen(js_name = serverStats)]
    pub fn server_stats(&mut self) -> *const u8 {
        let stats = self.peer.stats();
        let bytes = [count(stats.bytes_sent), count(stats.bytes_received)];
        self.buffer.write_floats(bytes.into_iter().chain(stats.drops().map(|(_, times)| count(times))))
    }

    /// Returns the address of the texts of reasons and errors.
    pub fn texts(&mut self) -> *const u8 {
        self.buffer.write_text(RakNet::TEXTS)
    }

    /// Removes the connection of a slot after JavaScript has handled the close event, or has abandoned the
    /// connection.
    pub fn forget(&mut self, connection: u16) {
        if let Some(place) = self.ids.get_mut(usize::from(connection)) {
            *place = None;
        }
    }
}

impl RakNetServer {
    fn id(&self, connection: u16) -> Option<ConnectionId> {
        self.ids.get(usize::from(connection)).copied().flatten()
    }
}

fn read_address(bytes: [u8; ADDRESS]) -> SocketAddr {
    let [ip @ .., high, low, a, b, c, d] = bytes;
    let (ip, port, interface) = (Ipv6Addr::from(ip), u16::from_be_bytes([high, low]), [a, b, c, d]);
    match ip.to_ipv4_mapped() {
        Some(ip) => (ip, port).into(),
        None => SocketAddrV6::new(ip, port, 0, u32::from_be_bytes(interface)).into(),
    }
}

fn write_address(address: SocketAddr) -> [u8; ADDRESS] {
    let interface = match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(address) => address.scope_id(),
    };
    let mut bytes = [0; ADDRESS];
    let written = address_bytes(address).into_iter().chain(interface.to_be_bytes());
    bytes.iter_mut().zip(written).for_each(|(place, byte)| *place = byte);
    bytes
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use rakwire::Instant;

    use super::*;

    #[test]
    fn written_address_is_read_back_unchanged() {
        for text in ["192.0.2.7:19132", "[2001:db8::7]:65535", "[::]:0", "[fe80::7%4294967295]:19132"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(read_address(write_address(address)), address);
        }
    }

    #[test]
    fn empty_slot_has_no_client_messages_or_datagrams() {
        let mut server = RakNetServer::create(1, 2, 3, 4, 2, 64, 128, 0, 0, 0).unwrap();
        for connection in [0, 1, 2, u16::MAX] {
            assert!(server.poll_event(connection).is_null() && server.client(connection).is_null());
            assert!(server.is_over(connection));
            assert!(server.send(connection, 0, 0, 0.0) < 0.0 && server.can_send(connection, 1, 0) < 0);
            assert!(!server.stats(connection).is_null());
            server.disconnect(connection, 0.0);
            server.forget(connection);
        }
        assert_eq!(server.poll_readable(), -1);
        server.handle(17, 0.0);
        assert!(server.poll_transmit(0.0).is_null());
    }

    /// Returns the number of connections after a request of a client at each of these addresses.
    fn connections(per_address: u16, per_network: u16, clients: [&str; 3]) -> usize {
        let mut server =
            RakNetServer::create(1, 2, 3, 4, 20, 1_024, 512, 0, per_address, per_network).unwrap();
        let to = ([192, 0, 2, 1], 19_132).into();
        for (seed, from) in clients.iter().enumerate() {
            let seed = u8::try_from(seed).unwrap();
            let capacity = Capacity { connections: 1, blocks: 64, block_size: 512 };
            let mut client = Peer::<RakNet>::with_capacity(capacity, RakNet::config([seed; 32]));
            let mut buffer = vec![0; RakNet::MAX_DATAGRAM];
            let (from, mut now) = (from.parse().unwrap(), Instant::ZERO);
            client.connect(now, to).unwrap();
            for _ in 0..100 {
                now = now + Duration::from_millis(10);
                client.handle_timeout(now);
                server.peer.handle_timeout(now);
                while let Some(sent) = client.poll_transmit(now, &mut buffer) {
                    server.peer.handle_datagram(now, from, sent.payload);
                }
                while let Some(sent) = server.peer.poll_transmit(now, &mut buffer) {
                    if sent.to == from {
                        client.handle_datagram(now, to, sent.payload);
                    }
                }
            }
        }
        server.peer.connections().count()
    }

    #[test]
    fn connections_per_address_and_network_are_limited() {
        let same = ["198.51.100.1:1", "198.51.100.1:2", "198.51.100.1:3"];
        let near = ["198.51.100.1:1", "198.51.100.2:1", "198.51.100.3:1"];
        assert_eq!(connections(0, 0, same), 3);
        assert_eq!(connections(2, 0, same), 2);
        assert_eq!((connections(2, 0, near), connections(0, 1, near)), (3, 1));
    }

    #[test]
    fn unavailable_memory_is_refused() {
        assert!(RakNetServer::create(1, 2, 3, 4, 1, u32::MAX, u32::MAX, 0, 0, 0).is_none());
    }
}
