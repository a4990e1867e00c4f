//! Peers without an allocator, as on a microcontroller.

use core::net::SocketAddr;

use rakwire::Instant;
use rakwire::raknet::{Config, Guid, Peer, Resources};
use rakwire::wire::offline::Offline;
use rakwire::wire::{Reader, Wire, Writer};

/// Returns the datagrams that a client sends at `now`.
fn sent(client: &mut Peer<'_>, now: Instant) -> Vec<Vec<u8>> {
    let mut buffer = [0; 1_500];
    let mut datagrams = Vec::new();
    while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
        datagrams.push(transmit.payload.to_vec());
    }
    datagrams
}

/// Some servers block an address that requests another version, so the client queries the server's version with a ping.
#[test]
fn a_client_queries_the_version_before_its_first_request() {
    let server = SocketAddr::from(([192, 0, 2, 1], 19_132));
    for (data, version) in [(&b"\0\x05MCPE;"[..], 11), (b"another game", 6)] {
        let mut config = Config::new([7; 32]);
        config.learn_version = true;
        let mut resources = Resources::<1, 32, 128>::new();
        let mut client = Peer::new(&mut resources, config);
        let mut now = Instant::from_micros(1_000_000);
        for _ in 0..2 {
            let id = client.connect(now, server).expect("a free slot");
            let asked = sent(&mut client, now);
            assert_eq!(asked.iter().map(|bytes| bytes[0]).collect::<Vec<_>>(), [0x01]);
            let mut buffer = [0; 100];
            let mut writer = Writer::new(&mut buffer);
            Offline::Pong { time: 0, guid: Guid(7), data }.write(&mut writer).expect("space in the buffer");
            client.handle_datagram(now, server, writer.finish());
            let requests = sent(&mut client, now);
            let Ok(Offline::Request1 { protocol, .. }) = Offline::read(&mut Reader::new(&requests[0])) else {
                panic!("not a first request")
            };
            assert_eq!((requests.len(), protocol), (1, version));
            client.disconnect(now, id);
            while client.poll_event().is_some() {}
            now = now + core::time::Duration::from_secs(1);
            client.handle_timeout(now);
            sent(&mut client, now);
        }
    }
}
