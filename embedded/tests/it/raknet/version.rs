//! Servers with another protocol version.

use rakwire::Instant;
use rakwire::endpoint::{Hook, Verdict};
use rakwire::raknet::RakNet;

use crate::support::{Net, Wire, run};

/// A server with version 11, like Minecraft Bedrock, that blocks an address which has requested another version.
#[derive(Debug, Default)]
struct Bedrock {
    versions: Vec<u8>,
}

impl Hook<RakNet> for Bedrock {
    fn on_received(&mut self, _: Instant, _: std::net::SocketAddr, datagram: &[u8]) -> Verdict {
        if let [0x05, rest @ ..] = datagram {
            self.versions.push(rest[16]);
        }
        if self.versions.iter().all(|version| *version == 11) { Verdict::Pass } else { Verdict::Drop }
    }
}

#[test]
fn a_pinging_client_connects_to_a_server_that_blocks_wrong_versions() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let (address, server) = net.hooked::<RakNet, _, 1, 48, 128, 8>(Bedrock::default());
        server.set_advertisement(b"MCPE;A board;").expect("a short text");
        let client = net.machine::<RakNet, 1, 48, 128, 8>(0, |config| config.learn_version = true);
        let (here, _there) = tokio::join!(client.handle.connect(address), server.accept());
        assert!(here.is_ok());
        assert_eq!(server.with_hook(|hook| hook.versions.clone()), [11]);
    });
}
