//! Resolves the hardware address of a server's next hop before a TCP connection needs it.

use core::future::poll_fn;

use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpEndpoint, Stack};
use embassy_time::{Duration, Timer, with_timeout};

use super::route::{Network, Route};

/// Time limit for the hardware address. smoltcp sends three requests in this time, or one if other sockets used two.
const LIMIT: Duration = Duration::from_millis(2_900);
/// The pause after the time limit, which leaves a request to other sockets. The sum of limit and pause is not a
/// multiple of the request interval of the peers' datagrams; otherwise the datagrams of one of the two would always
/// be sent within smoltcp's pause, and cause no request.
const PAUSE: Duration = Duration::from_millis(1_200);

/// The error if there is no route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRoute;

/// Waits until the hardware address of the next hop to a server is known. To request it, sends an empty datagram that
/// is not forwarded beyond this hop.
///
/// A TCP socket would repeat its request as soon as smoltcp permits the next request, and leave none to other
/// sockets.
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
    // This cannot fail either: the buffer is empty. The connection itself rejects port 0.
    let _ = poll_fn(|cx| socket.poll_send_to(&[], to, cx)).await;
    socket.flush().await;
}
