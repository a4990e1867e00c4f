//! The hardware address of a server, before a connection over TCP needs it.

use core::future::poll_fn;

use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpEndpoint, Stack};
use embassy_time::{Duration, Timer, with_timeout};

use super::route::{Network, Route};

/// How long to wait for the hardware address, during which smoltcp sends three requests, or one if others had two.
const LIMIT: Duration = Duration::from_millis(2_900);
/// The pause after that, which leaves a request to others. Together with the limit it is no multiple of what the datagrams of
/// peers take, so that neither always comes too late.
const PAUSE: Duration = Duration::from_millis(1_200);

/// There is no route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRoute;

/// Waits until the hardware address of the next hop to a server is known, by sending an empty datagram to the server that
/// goes no further than this hop.
///
/// A TCP socket would repeat its request as soon as smoltcp allows the next one, and never leave one to others.
pub(crate) async fn reach(stack: Stack<'_>, server: IpEndpoint) -> Result<(), NoRoute> {
    loop {
        match Network::of(stack).route(server.addr) {
            Route::None => return Err(NoRoute),
            Route::Direct => return Ok(()),
            Route::Via(_) => {}
        }
        if with_timeout(LIMIT, send_empty(stack, server)).await.is_ok() {
            return Ok(());
        }
        Timer::after(PAUSE).await;
    }
}

/// Sends an empty datagram, and waits until it has left.
async fn send_empty(stack: Stack<'_>, to: IpEndpoint) {
    let (mut metadata, mut byte) = ([PacketMetadata::EMPTY], [0]);
    let mut socket = UdpSocket::new(stack, &mut [], &mut [], &mut metadata, &mut byte);
    // This cannot fail: the socket is new, and the address is unspecified.
    let _ = socket.bind(0);
    socket.set_hop_limit(Some(1));
    // Nor can this: the buffer is empty. A port of 0 is refused by the connection itself.
    let _ = poll_fn(|cx| socket.poll_send_to(&[], to, cx)).await;
    socket.flush().await;
}
