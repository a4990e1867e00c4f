//! `announce`.

use rakwire_relay::discovery::{Announcement, DiscoveryError, Store};

use super::Failure;
use crate::args::AnnounceArgs;
use crate::signals::Signals;

/// Announces a server until a signal ends it.
pub(crate) fn announce(args: AnnounceArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Failed(error.to_string()))?.block_on(keep_announced(args))
}

async fn keep_announced(args: AnnounceArgs) -> Result<(), Failure> {
    let mut store = Store::new(&args.redis, args.ca.as_deref()).map_err(failure)?;
    let server = Announcement { name: args.name, address: args.address, kind: args.kind };
    let mut signals = Signals::new().map_err(|error| Failure::Failed(error.to_string()))?;
    let stop = async {
        signals.next().await;
    };
    store.keep_announced(&server, args.lifetime, stop).await.map_err(failure)
}

fn failure(error: DiscoveryError) -> Failure {
    if matches!(error, DiscoveryError::Url | DiscoveryError::NoTls | DiscoveryError::Tls(_)) {
        Failure::misconfigured(error)
    } else {
        Failure::Failed(error.to_string())
    }
}
