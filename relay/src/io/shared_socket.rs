//! The UDP socket of QUIC, on which datagrams of data channels and for the front arrive too.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use super::app::App;
use super::data_channels::DataChannels;
use super::front_gate::Gate;
use crate::target::canonical;
use crate::webrtc::DatagramKind;

/// See the module.
pub(super) struct SharedSocket {
    socket: Arc<dyn AsyncUdpSocket>,
    beside: Beside,
    app: Arc<App>,
}

/// Who else has datagrams at the port of QUIC.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    pub(crate) channels: Option<DataChannels>,
    pub(crate) front: Option<Arc<dyn Gate>>,
}

impl Beside {
    pub(super) const fn is_nobody(&self) -> bool {
        self.channels.is_none() && self.front.is_none()
    }
}

impl fmt::Debug for SharedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSocket").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl SharedSocket {
    pub(super) fn new(socket: Arc<dyn AsyncUdpSocket>, beside: Beside, app: Arc<App>) -> Self {
        Self { socket, beside, app }
    }

    /// Gives datagrams of one sender to those whose they are, unless that is QUIC; says whether it did.
    fn pass_on(&self, from: SocketAddr, bytes: &[u8], stride: usize) -> bool {
        let Beside { channels, front } = &self.beside;
        if front.as_ref().is_some_and(|front| front.take(from, bytes, stride)) {
            return true;
        }
        let Some(channels) = channels.as_ref().filter(|_| DatagramKind::of(bytes) != DatagramKind::Other)
        else {
            return false;
        };
        for datagram in bytes.chunks(stride.max(1)) {
            channels.handle_datagram(&self.app, from, datagram);
        }
        true
    }
}

impl AsyncUdpSocket for SharedSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.socket.poll_recv(context, buffers, metas))?;
        for (buffer, meta) in buffers.iter().zip(&mut *metas).take(count) {
            // A buffer has datagrams of one sender, which speaks one protocol.
            if self.pass_on(canonical(meta.addr), &buffer[..meta.len], meta.stride) {
                // QUIC passes over buffers without bytes.
                meta.len = 0;
            }
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}
