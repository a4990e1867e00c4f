//! Servers behind a proxy that announces client addresses with PROXY protocol headers.

use std::net::SocketAddr;

use tokio::net::UdpSocket;

use super::by_both_protocols;
use super::subject::{Subject, client, join, message, receive, server, until};
use crate::support::DEADLINE;

by_both_protocols!(
    clients_have_the_addresses_announced_by_a_trusted_proxy,
    headers_from_an_untrusted_sender_are_ignored,
    a_malformed_header_is_counted,
);

/// A documentation address (RFC 5737), at which no host exists.
const NAMED: &str = "192.0.2.7:4660";

const HEADER: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c\xc0\0\x02\x07\x7f\0\0\x01\x12\x34\0\x50";

/// Starts a proxy, and returns its address for clients. Like a relay, it prepends the header to the client's
/// datagrams until the server has answered.
async fn proxy(server: SocketAddr) -> SocketAddr {
    let front = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let back = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let address = front.local_addr().expect("the socket is bound");
    tokio::spawn(async move {
        let (mut to_server, mut to_client) = (vec![0; 2_048], vec![0; 2_048]);
        let (mut client, mut is_answered) = (None, false);
        loop {
            tokio::select! {
                Ok((length, from)) = front.recv_from(&mut to_server) => {
                    client = Some(from);
                    let header = if is_answered { &[][..] } else { HEADER };
                    let datagram = [header, &to_server[..length]].concat();
                    back.send_to(&datagram, server).await.expect("enough space");
                }
                Ok((length, _)) = back.recv_from(&mut to_client) => {
                    is_answered = true;
                    let client = client.expect("the server answers");
                    front.send_to(&to_client[..length], client).await.expect("enough space");
                }
            }
        }
    });
    address
}

async fn clients_have_the_addresses_announced_by_a_trusted_proxy<P: Subject>() {
    let trusted = "127.0.0.0/8".parse().expect("a network");
    let server = server::<P>(|options| options.trusted_proxies = vec![trusted]).await;
    let proxy = proxy(server.local_addr()).await;
    let proxied = client::<P>(|_| {}).await;
    let both = async { tokio::join!(proxied.connect(proxy), server.accept()) };
    let (here, there) = tokio::time::timeout(DEADLINE, both).await.expect("both sides connected in time");
    let (here, there) = (here.expect("a connection"), there.expect("the same connection"));
    assert_eq!((here.remote(), there.remote()), (proxy, NAMED.parse().expect("an address")));
    for (from, to) in [(&here, &there), (&there, &here)] {
        from.send(&message(P::LARGE, 1), P::RELIABLE).await.expect("an open connection");
        assert_eq!(receive(to).await.bytes, message(P::LARGE, 1));
    }
    // Another client connects directly.
    let other = client::<P>(|_| {}).await;
    let (here, there) = join(&other, &server).await;
    assert_eq!((here.remote(), there.remote()), (server.local_addr(), other.local_addr()));
    assert_eq!(server.stats().proxy_headers_refused, 0);
}

async fn headers_from_an_untrusted_sender_are_ignored<P: Subject>() {
    let trusted = "192.0.2.0/24".parse().expect("a network");
    let server = server::<P>(|options| options.trusted_proxies = vec![trusted]).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    socket.send_to(HEADER, server.local_addr()).await.expect("enough space");
    until("the datagram is dropped", || server.stats().peer.drops().any(|(_, count)| count > 0)).await;
    assert_eq!((server.stats().connections, server.stats().proxy_headers_refused), (0, 0));
}

async fn a_malformed_header_is_counted<P: Subject>() {
    let trusted = "127.0.0.1/32".parse().expect("a network");
    let server = server::<P>(|options| options.trusted_proxies = vec![trusted]).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    socket.send_to(&HEADER[..20], server.local_addr()).await.expect("enough space");
    until("the header is counted as refused", || server.stats().proxy_headers_refused == 1).await;
}
