//! A UDP socket that receives many datagrams per call and can send from many loopback addresses.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::Result;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::udp::leave_out_control_messages;

/// The size of a receive buffer in bytes. GRO can fill it with many datagrams of one sender.
const BUFFER: usize = 65_535;

/// Returns the loopback address of a client, 127.77.x.y.
pub(super) fn address_of(client: u16) -> IpAddr {
    let [high, low] = client.to_be_bytes();
    Ipv4Addr::new(127, 77, high, low).into()
}

/// Returns the number of the client with this address, or `None` for another address.
pub(super) fn client_at(address: IpAddr) -> Option<u16> {
    match address {
        IpAddr::V4(address) => match address.octets() {
            [127, 77, high, low] => Some(u16::from_be_bytes([high, low])),
            _ => None,
        },
        IpAddr::V6(_) => None,
    }
}

pub(super) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    bytes: Vec<u8>,
    control: ControlMessages,
}

/// Selects whether the system delivers datagrams with the control messages that quinn-udp enables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlMessages {
    On,
    Off,
}

impl Socket {
    /// Binds to a free port of this address.
    pub(super) fn bind(address: Ipv4Addr) -> Result<Self> {
        let io = UdpSocket::bind((address, 0))?;
        io.set_nonblocking(true)?;
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        // The system may limit the buffers to less; the measurement still works.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&io), 4 << 20);
        let _ = state.set_send_buffer_size(UdpSockRef::from(&io), 4 << 20);
        Ok(Self { io, state, bytes: vec![0; BATCH_SIZE * BUFFER], control: ControlMessages::On })
    }

    /// Binds to a free port of this address without control messages. The destination address of received datagrams is
    /// then unknown.
    pub(super) fn bind_without_control_messages(address: Ipv4Addr) -> Result<Self> {
        let socket = Self { control: ControlMessages::Off, ..Self::bind(address)? };
        leave_out_control_messages(&socket.io)?;
        Ok(socket)
    }

    pub(super) fn port(&self) -> Result<u16> {
        Ok(self.io.local_addr()?.port())
    }

    /// Waits for a datagram, at most for `longest`.
    pub(super) fn wait(&self, longest: Duration) -> Result<()> {
        let mut ends = [PollFd::new(self.io.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut ends, Some(TimeSpec::from_duration(longest)), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Receives waiting datagrams with one system call. Returns false if no datagram was waiting.
    ///
    /// Calls `each` with the sender, the destination and the content of every datagram.
    pub(super) fn receive(
        &mut self,
        mut each: impl FnMut(SocketAddr, Option<IpAddr>, &[u8]),
    ) -> Result<bool> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut chunks = self.bytes.chunks_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let count = match self.state.recv(UdpSockRef::from(&self.io), &mut slices, &mut metas) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            result => result?,
        };
        for (meta, bytes) in metas.iter().zip(&slices).take(count) {
            let bytes = bytes.get(..meta.len).unwrap_or_default();
            bytes.chunks(meta.stride.max(1)).for_each(|datagram| each(meta.addr, meta.dst_ip, datagram));
        }
        Ok(true)
    }

    /// Sends a datagram, with the source address `from` if control messages are on. Drops it if the socket's send
    /// buffer is full.
    pub(super) fn send(&self, from: Option<IpAddr>, to: SocketAddr, contents: &[u8]) {
        if self.control == ControlMessages::Off {
            let _ = self.io.send_to(contents, to);
            return;
        }
        let transmit = Transmit { destination: to, ecn: None, contents, segment_size: None, src_ip: from };
        let _ = self.state.try_send(UdpSockRef::from(&self.io), &transmit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_found_by_its_address() {
        assert_eq!(client_at(address_of(999)), Some(999));
        assert_eq!(client_at(Ipv4Addr::LOCALHOST.into()), None);
    }

    #[test]
    fn a_socket_sends_and_receives_with_the_address_of_each_client() {
        let mut clients = Socket::bind(Ipv4Addr::UNSPECIFIED).unwrap();
        let mut server = Socket::bind(Ipv4Addr::LOCALHOST).unwrap();
        let to = (Ipv4Addr::LOCALHOST, server.port().unwrap()).into();
        clients.send(Some(address_of(7)), to, b"forth");
        let mut from = None;
        while from.is_none() {
            server.wait(Duration::from_secs(10)).unwrap();
            server.receive(|sender, _, _| from = Some(sender)).unwrap();
        }
        let from = from.unwrap();
        assert_eq!(client_at(from.ip()), Some(7));
        server.send(None, from, b"back");
        let mut arrived = None;
        while arrived.is_none() {
            clients.wait(Duration::from_secs(10)).unwrap();
            clients.receive(|_, to, datagram| arrived = Some((to, datagram.to_vec()))).unwrap();
        }
        assert_eq!(arrived, Some((Some(address_of(7)), b"back".to_vec())));
    }
}
