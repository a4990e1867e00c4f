//! The connection to Redis or Valkey.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use thiserror::Error;
use tracing::debug;

use super::announcement::{Announcement, PREFIX, name_of};
use crate::target::TargetName;

/// How long the store has for one answer, and for a connection.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How many keys the store looks at for one answer.
const SCAN_COUNT: usize = 500;
/// How many servers a relay takes at the most; further ones are not read.
const SERVERS_MAX: usize = 1_000;
/// How many answers one search takes at the most, so that a store full of other keys does not hold it for good.
const SCANS_MAX: usize = 10_000;

/// A place where game servers announce themselves. The connection is made when it is needed, and made anew when it was
/// lost.
#[derive(Debug)]
pub struct Store {
    client: Client,
    connection: Option<MultiplexedConnection>,
}

impl Store {
    /// The store of a URL such as `redis://127.0.0.1/`, or `redis://user:password@host:6379/1` for its database 1. Nothing
    /// is sent yet.
    ///
    /// # Errors
    /// If the URL cannot be used.
    pub fn new(url: &str) -> Result<Self, DiscoveryError> {
        let client = Client::open(url).map_err(|_| DiscoveryError::Url)?;
        Ok(Self { client, connection: None })
    }

    /// The servers that are announced now. What cannot be used is left out.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn servers(&mut self) -> Result<BTreeMap<TargetName, Announcement>, DiscoveryError> {
        let mut connection = self.connect().await?;
        let found = search(&mut connection).await;
        self.keep(connection, found)
    }

    /// Announces a server for `lifetime`, at least a second. To stay announced it has to do so again before that ends.
    ///
    /// # Errors
    /// If the store does not answer or refuses it.
    pub async fn announce(
        &mut self,
        server: &Announcement,
        lifetime: Duration,
    ) -> Result<(), DiscoveryError> {
        let mut connection = self.connect().await?;
        let mut command = redis::cmd("SET");
        command.arg(server.key()).arg(server.value()).arg("EX").arg(lifetime.as_secs().max(1));
        let result = command.exec_async(&mut connection).await;
        self.keep(connection, result)
    }

    /// Takes the announcement of a server back.
    ///
    /// # Errors
    /// If the store does not answer or refuses it.
    pub async fn withdraw(&mut self, server: &Announcement) -> Result<(), DiscoveryError> {
        let mut connection = self.connect().await?;
        let result = redis::cmd("DEL").arg(server.key()).exec_async(&mut connection).await;
        self.keep(connection, result)
    }

    async fn connect(&mut self) -> Result<MultiplexedConnection, DiscoveryError> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT));
        Ok(self.client.get_multiplexed_async_connection_with_config(&config).await?)
    }

    /// Keeps a connection that works.
    fn keep<T>(
        &mut self,
        connection: MultiplexedConnection,
        result: Result<T, RedisError>,
    ) -> Result<T, DiscoveryError> {
        self.connection = result.is_ok().then_some(connection);
        Ok(result?)
    }
}

async fn search(
    connection: &mut MultiplexedConnection,
) -> Result<BTreeMap<TargetName, Announcement>, RedisError> {
    let mut found = BTreeMap::new();
    let mut cursor = 0_u64;
    for _ in 0..SCANS_MAX {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{PREFIX}*")).arg("COUNT").arg(SCAN_COUNT);
        let (next, keys): (u64, Vec<String>) = scan.query_async(connection).await?;
        read(connection, keys, &mut found).await?;
        cursor = next;
        if cursor == 0 || found.len() >= SERVERS_MAX {
            break;
        }
    }
    Ok(found)
}

async fn read(
    connection: &mut MultiplexedConnection,
    keys: Vec<String>,
    found: &mut BTreeMap<TargetName, Announcement>,
) -> Result<(), RedisError> {
    if keys.is_empty() {
        return Ok(());
    }
    // A key may have ended since, and may be of another type.
    let values: Vec<Option<String>> = redis::cmd("MGET").arg(&keys).query_async(connection).await?;
    for (key, value) in keys.iter().zip(values) {
        let (Some(name), Some(value)) = (name_of(key), value) else { continue };
        match Announcement::parse(name.clone(), &value) {
            Ok(server) if found.len() < SERVERS_MAX => drop(found.insert(name, server)),
            Ok(_) => {}
            Err(error) => debug!(%key, %error, "an announcement cannot be used"),
        }
    }
    Ok(())
}

/// Why servers cannot be found or announced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The URL of the store cannot be used. It may have a password, so it is not repeated.
    #[error("the URL of the store cannot be used; write it as redis://HOST:PORT/ or unix:///PATH")]
    Url,
    /// The store does not answer, or refuses a command.
    #[error("the store of servers: {0}")]
    Store(#[from] RedisError),
}
