//! Looking into the store again and again, and staying announced in it.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::{info, warn};

use super::announcement::Announcement;
use super::store::{DiscoveryError, Store};
use crate::target::TargetName;

/// How often a server announces itself within the time that an announcement holds: one may be lost.
const ANNOUNCEMENTS: u32 = 3;

/// Whether the store has answered the last time, so that only changes are logged.
#[derive(Debug, Default)]
struct Health {
    is_lost: bool,
}

impl Health {
    fn note(&mut self, result: Result<(), &DiscoveryError>) {
        match result {
            Ok(()) if self.is_lost => info!("the store of servers answers again"),
            Err(error) if !self.is_lost => warn!("{error}"),
            Ok(()) | Err(_) => {}
        }
        self.is_lost = result.is_err();
    }
}

/// Looks into a store again and again.
#[derive(Debug)]
pub(crate) struct Watcher {
    store: Store,
    tick: Interval,
    health: Health,
}

impl Watcher {
    /// Looks at once and then every `period`.
    pub(crate) fn new(store: Store, period: Duration) -> Self {
        let mut tick = interval(period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { store, tick, health: Health::default() }
    }

    /// The servers that are announced, when it has looked the next time and the store has answered.
    pub(crate) async fn next(&mut self) -> BTreeMap<TargetName, Announcement> {
        loop {
            self.tick.tick().await;
            let found = self.store.servers().await;
            self.health.note(found.as_ref().map(drop));
            if let Ok(servers) = found {
                return servers;
            }
        }
    }
}

impl Store {
    /// Keeps a server announced until `stop`, and takes the announcement back then. An announcement holds for `lifetime`
    /// and is repeated three times as often, so that relays forget a server that ends without a word.
    ///
    /// # Errors
    /// If the store refuses the first announcement. A store that is away later is tried again.
    pub async fn keep_announced(
        &mut self,
        server: &Announcement,
        lifetime: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<(), DiscoveryError> {
        self.announce(server, lifetime).await?;
        tokio::select! {
            () = stop => self.withdraw(server).await,
            never = self.repeat(server, lifetime) => never,
        }
    }

    async fn repeat(&mut self, server: &Announcement, lifetime: Duration) -> Result<(), DiscoveryError> {
        let mut health = Health::default();
        let mut tick = interval((lifetime / ANNOUNCEMENTS).max(Duration::from_millis(1)));
        loop {
            tick.tick().await;
            let announced = self.announce(server, lifetime).await;
            health.note(announced.as_ref().map(drop));
        }
    }
}
