//! Receivers that do not answer when a machine asks for their hardware address.

use embassy_time::Duration;
use rakwire::raknet::{Delivery, PingScope, RakNet};
use rakwire::wire::offline::Offline;
use rakwire::wire::{Wire as _, Writer};
use rakwire_embassy::raknet::{Connection, PingError};

use crate::support::{Machine, Medium, Net, PORT, Wire, bytes, connect, message, run};

/// Longer than the socket may stand still.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// An address that nobody has.
const NOBODY: u8 = 99;

/// A client on any port, and a server, which are machines 1 and 2.
fn ethernet() -> (Net, Machine<RakNet>, Machine<RakNet>) {
    let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
    let (client, server) = (net.client::<RakNet, 1, 48, 128, 4>(), net.server::<RakNet, 1, 48, 128, 4>());
    (net, client, server)
}

/// One message there.
async fn say(number: u32, from: &Connection<'static>, to: &Connection<'static>) {
    from.send(&message(number, 40), Delivery::RELIABLE_ORDERED).await.expect("an open end");
    assert_eq!(bytes(&to.recv().await.expect("a message")), message(number, 40));
}

/// A ping that says that it comes from `from`, as it arrives at machine `to`.
fn forged_ping(from: u8, to: u8) -> Vec<u8> {
    let mut ping = [0; 64];
    let mut writer = Writer::new(&mut ping);
    Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(rakwire::raknet::Guid(1)) }
        .write(&mut writer)
        .expect("room");
    let ping = writer.finish();
    let length = |header: usize| ((header + ping.len()) as u16).to_be_bytes();
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
    let mut ip = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    ip[2..4].copy_from_slice(&length(28));
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    ip[10..12].copy_from_slice(&(!((sum & 0xFFFF) + (sum >> 16)) as u16).to_be_bytes());
    frame.extend(ip);
    // A checksum of 0 is none.
    frame.extend([PORT.to_be_bytes(), PORT.to_be_bytes(), length(8), [0, 0]].concat());
    frame.extend(ping);
    frame
}

#[test]
fn a_forged_request_silences_a_server_for_a_moment_only() {
    run(async {
        let (net, client, server) = ethernet();
        let (here, there) = connect(&client, &server).await;
        say(1, &there, &here).await;
        net.forge(2, forged_ping(NOBODY, 2));
        // Until the answer is in the socket.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        say(2, &there, &here).await;
        // It was the socket that stood still, not the connection: others get answers, too.
        assert!(client.handle.ping(server.address, TIME_LIMIT).await.is_ok());
    });
}

#[test]
fn a_client_goes_on_from_its_port_after_nobody_took_what_it_sent() {
    run(async {
        let (_net, client, server) = ethernet();
        let (here, there) = connect(&client, &server).await;
        let nobody = ([10, 0, 0, NOBODY], PORT).into();
        let error = client.handle.ping(nobody, Duration::from_millis(50)).await;
        assert!(matches!(error, Err(PingError::NoAnswer)));
        // From another port the server would not know it.
        say(1, &here, &there).await;
        say(2, &there, &here).await;
    });
}

#[test]
fn a_receiver_without_a_way_to_it_keeps_nobody_waiting() {
    run(async {
        let (_net, client, server) = ethernet();
        let far = ([192, 0, 2, 1], PORT).into();
        let error = client.handle.ping(far, Duration::from_millis(50)).await;
        assert!(matches!(error, Err(PingError::NoAnswer)));
        let (here, there) = connect(&client, &server).await;
        say(1, &here, &there).await;
    });
}
