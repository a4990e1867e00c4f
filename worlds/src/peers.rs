//! The peers of a world.

use core::time::Duration;

use rakwire::endpoint::Carrier;
use rakwire::raknet::{Capacity, Config, ConnectOptions, Peer, Security};
use rakwire::secure::{ServerIdentity, ServerTrust, StaticKey};

use crate::plan::{Plan, Route};
use crate::random::Random;

const BLOCK_SIZE: usize = 256;
/// The idle timeout of all peers: half of the default of RakNet, so that worlds settle sooner.
const TIMEOUT: Duration = Duration::from_secs(5);

fn server_key() -> StaticKey {
    StaticKey::from_bytes([0x5E; 32])
}

/// Returns random bytes from which a peer derives its GUID and its secrets.
fn entropy(random: &mut Random) -> [u8; 32] {
    random.bytes(32).try_into().unwrap_or([7; 32])
}

/// Returns the server of a plan.
pub(crate) fn server(plan: &Plan, random: &mut Random) -> Peer<'static> {
    let mut config = Config::new(entropy(random));
    config.max_incoming = plan.places;
    config.mtu = plan.mtu;
    config.timeout = TIMEOUT;
    if plan.is_secure {
        let mut identity = ServerIdentity::new(server_key());
        identity.requires_security = true;
        let mut security = Security::new(entropy(random));
        security.server = Some(identity);
        config.security = Some(security);
    }
    let connections = usize::from(plan.places);
    let blocks = connections * plan.blocks as usize;
    Peer::with_capacity(Capacity { connections, blocks, block_size: BLOCK_SIZE }, config)
}

/// Returns a client of a plan.
pub(crate) fn client(plan: &Plan, route: Route, random: &mut Random) -> Peer<'static> {
    let mut config = Config::new(entropy(random));
    config.timeout = TIMEOUT;
    if plan.is_secure {
        config.security = Some(Security::new(entropy(random)));
    }
    if route == Route::RelayStream {
        config.carrier = Carrier::Stream;
    }
    let capacity = Capacity { connections: 1, blocks: 2 * plan.blocks as usize, block_size: BLOCK_SIZE };
    Peer::with_capacity(capacity, config)
}

/// Returns the connect options of the clients of a plan.
pub(crate) fn options(plan: &Plan) -> ConnectOptions<'static> {
    let trust = plan.is_secure.then(|| ServerTrust::Key(server_key().public()));
    ConnectOptions { trust, ..ConnectOptions::default() }
}
