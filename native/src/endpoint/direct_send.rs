//! The datagrams that the task of the application sends itself.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use crate::outgoing::{Outgoing, Transmit};
use crate::socket::Socket;

/// At most so many leave at once: an acknowledgement that is due goes before the message.
const DATAGRAMS: usize = 2;

/// Has the first message after an arrival leave at once, because it may be the answer for which the other peer waits. What was
/// due before goes first, and may leave the message to the driver. Further messages are sent by the driver, so that many leave
/// in few calls.
#[derive(Debug)]
pub(crate) struct DirectSend {
    /// The socket, from an arrival to the next message or to the next run of the driver, whichever is first. The tasks own it.
    socket: Weak<Socket>,
    buffer: Box<[u8]>,
    /// The datagram in the buffer that the driver has to send.
    unsent: Option<(SocketAddr, usize)>,
}

impl DirectSend {
    /// For datagrams of at most `max_datagram` bytes.
    pub(crate) fn new(max_datagram: usize) -> Self {
        Self { socket: Weak::new(), buffer: vec![0; max_datagram].into(), unsent: None }
    }

    /// Lets the next message leave through this socket, if no datagram is left that it would overtake. The driver must have none
    /// left either.
    pub(crate) fn allow(&mut self, socket: &Arc<Socket>) {
        if self.unsent.is_none() {
            self.socket = Arc::downgrade(socket);
        }
    }

    /// Has the next message wait for the driver.
    pub(crate) fn forbid(&mut self) {
        self.socket = Weak::new();
    }

    /// Sends the datagrams that `compose` writes, if the next message may leave now. What the system does not take, the driver
    /// sends.
    pub(crate) fn send(&mut self, mut compose: impl FnMut(&mut [u8]) -> Option<(SocketAddr, usize)>) {
        let Some(socket) = std::mem::take(&mut self.socket).upgrade() else { return };
        for _ in 0..DATAGRAMS {
            let Some((to, size)) = compose(&mut self.buffer) else { return };
            let bytes = self.buffer.get(..size).unwrap_or(&self.buffer);
            if socket.try_send(&Transmit { to, size, count: 1, bytes }).is_err() {
                self.unsent = Some((to, size));
                return;
            }
        }
    }

    /// Gives what is unsent to the driver, which sends everything else.
    pub(crate) fn hand_over(&mut self, outgoing: &mut Outgoing) {
        self.forbid();
        let Some((to, size)) = self.unsent.take() else { return };
        outgoing.push_copy(to, self.buffer.get(..size).unwrap_or(&self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn socket() -> Arc<Socket> {
        let socket = Socket::open("127.0.0.1:0").await.expect("a free port");
        socket.writable().await;
        Arc::new(socket)
    }

    /// Writes datagrams without end.
    fn compose(to: SocketAddr) -> impl FnMut(&mut [u8]) -> Option<(SocketAddr, usize)> {
        move |buffer| {
            buffer[..3].copy_from_slice(&[1, 2, 3]);
            Some((to, 3))
        }
    }

    fn is_allowed(direct: &mut DirectSend) -> bool {
        let mut is_allowed = false;
        direct.send(|_| {
            is_allowed = true;
            None
        });
        is_allowed
    }

    #[tokio::test]
    async fn a_datagram_that_the_system_refuses_is_left_to_the_driver() {
        let nowhere = ([127, 0, 0, 1], 0).into();
        let (mut direct, mut outgoing, socket) = (DirectSend::new(8), Outgoing::new(8), socket().await);
        direct.allow(&socket);
        direct.send(compose(nowhere));
        direct.allow(&socket);
        assert!(!is_allowed(&mut direct), "nothing overtakes it, or takes its place");
        direct.hand_over(&mut outgoing);
        let left = [Transmit { to: nowhere, size: 3, count: 1, bytes: &[1, 2, 3] }];
        assert!(outgoing.transmits(1).eq(left));
        outgoing.clear();
        direct.hand_over(&mut outgoing);
        assert!(outgoing.is_empty(), "it is handed over once");
        direct.allow(&socket);
        assert!(is_allowed(&mut direct));
    }

    #[tokio::test]
    async fn few_datagrams_are_sent_for_an_arrival() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        receiver.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("a timeout");
        let to = receiver.local_addr().expect("it is bound");
        let (mut direct, mut outgoing, socket) = (DirectSend::new(8), Outgoing::new(8), socket().await);
        assert!(!is_allowed(&mut direct), "nothing has arrived");
        direct.allow(&socket);
        direct.send(compose(to));
        for _ in 0..DATAGRAMS {
            assert_eq!(receiver.recv(&mut [0; 8]).expect("a datagram"), 3);
        }
        receiver.set_nonblocking(true).expect("a socket of this system");
        assert!(receiver.recv(&mut [0; 8]).is_err(), "the others are left to the driver");
        assert!(!is_allowed(&mut direct), "it was used");
        direct.allow(&socket);
        direct.hand_over(&mut outgoing);
        assert!(!is_allowed(&mut direct), "the driver has run");
        assert!(outgoing.is_empty());
    }

    #[tokio::test]
    async fn a_socket_is_closed_by_its_tasks() {
        let (mut direct, socket) = (DirectSend::new(8), socket().await);
        let address = socket.local_addr();
        direct.allow(&socket);
        drop(socket);
        std::net::UdpSocket::bind(address).expect("the address is free");
        assert!(!is_allowed(&mut direct));
    }
}
