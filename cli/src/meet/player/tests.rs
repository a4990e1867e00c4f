//! The announcements of the port that a router maps.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use rakwire_native::raknet::Delivery;
use tokio::sync::mpsc::UnboundedReceiver;

use super::*;

/// Longer than any step here takes on the slowest machine.
const DEADLINE: Duration = Duration::from_secs(60);
const ROUTER: Ipv4Addr = Ipv4Addr::new(127, 0, 63, 1);
const OUTSIDE: [u8; 4] = [203, 0, 113, 9];

/// Runs a NAT-PMP router that maps this port for one second at a time. With port 0 it does not answer.
fn router(port: Arc<AtomicU16>) {
    let socket = UdpSocket::bind((ROUTER, 5_351)).expect("a port");
    std::thread::spawn(move || {
        let mut request = [0; 1_100];
        // The thread ends with the tests.
        while let Ok((length, from)) = socket.recv_from(&mut request) {
            let outside = port.load(Ordering::SeqCst);
            let answer = match &request[..length] {
                _ if outside == 0 => continue,
                [0, 0] => [&[0, 128, 0, 0, 0, 0, 0, 1][..], &OUTSIDE].concat(),
                [0, 1, 0, 0, inside, port, ..] => {
                    let head = [0, 129, 0, 0, 0, 0, 0, 1, *inside, *port];
                    [&head[..], &outside.to_be_bytes(), &[0, 0, 0, 1]].concat()
                }
                _ => vec![0, 129, 0, 1, 0, 0, 0, 1],
            };
            // Sending fails if the client has closed its socket, and then no answer is needed.
            let _ = socket.send_to(&answer, from);
        }
    });
}

/// Starts a facilitator that connects no peers, and returns the hellos that it receives.
async fn facilitator() -> (Endpoint, UnboundedReceiver<Vec<u8>>) {
    let options = Options::server(1).expect("entropy");
    let endpoint = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let (sender, hellos) = mpsc::unbounded_channel();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        let connection = accepting.accept().await.expect("a client");
        while let Some(message) = connection.recv().await {
            if message.bytes.starts_with(&[133, 1]) {
                // The external address of the client, as a facilitator sees it behind the router.
                let probed = [&[133, 17][..], &[0; 8], &[4, !127, !0, !0, !1, 0, 1]].concat();
                connection.send(&probed, Delivery::RELIABLE_ORDERED).await.expect("open");
                sender.send(message.bytes).expect("the test still receives hellos");
            }
        }
    });
    (endpoint, hellos)
}

/// Returns the mapped port, which is the first field of a hello.
fn announced(hello: &[u8]) -> Option<u16> {
    let outside = OUTSIDE.map(|byte| !byte);
    match hello {
        [133, 1, _, 4, a, b, c, d, high, low, ..] if [*a, *b, *c, *d] == outside => {
            Some(u16::from_be_bytes([*high, *low]))
        }
        _ => None,
    }
}

async fn until_announced(hellos: &mut UnboundedReceiver<Vec<u8>>, wanted: Option<u16>) {
    let announcement = async { while announced(&hellos.recv().await.expect("a facilitator")) != wanted {} };
    tokio::time::timeout(DEADLINE, announcement).await.expect("an announcement before the deadline");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_and_lost_port_mappings_are_announced() {
    let port = Arc::new(AtomicU16::new(4_321));
    router(port.clone());
    let (facilitator, mut hellos) = facilitator().await;
    let mut options = PortMappingOptions::default();
    options.gateway = Some(ROUTER);
    options.shortest_renewal = Duration::from_millis(20);
    options.retry = Duration::from_millis(20);
    options.timeout = Duration::from_secs(2);
    let at = FacilitatorAddress { address: facilitator.local_addr(), password: "", trust: None };
    let player = Player::start("127.0.0.1:0", &at, DEADLINE, false, Some(options)).await;
    let player = player.expect("registered");
    until_announced(&mut hellos, Some(4_321)).await;
    port.store(4_322, Ordering::SeqCst);
    until_announced(&mut hellos, Some(4_322)).await;
    port.store(0, Ordering::SeqCst);
    until_announced(&mut hellos, None).await;
    port.store(4_323, Ordering::SeqCst);
    until_announced(&mut hellos, Some(4_323)).await;
    tokio::time::timeout(DEADLINE, player.close()).await.expect("the end before the deadline");
}
