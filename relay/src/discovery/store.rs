//! The connection to Redis or Valkey.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use thiserror::Error;

use super::announcement::{Announcement, LONGEST, PREFIX, name_of};
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
        if url.starts_with("rediss:") || url.starts_with("valkeys:") {
            return Err(DiscoveryError::Tls);
        }
        let client = Client::open(url).map_err(|_| DiscoveryError::Url)?;
        Ok(Self { client, connection: None })
    }

    /// The servers that are announced now, and what cannot be used.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn servers(&mut self) -> Result<Announced, DiscoveryError> {
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

/// What a store has at one time.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Announced {
    /// The servers by their names, 1,000 at most.
    pub servers: BTreeMap<TargetName, Announcement>,
    /// Names whose announcements cannot be used, with the reason, 1,000 at most.
    pub unusable: BTreeMap<TargetName, String>,
}

async fn search(connection: &mut MultiplexedConnection) -> Result<Announced, RedisError> {
    let mut found = Announced::default();
    let mut cursor = 0_u64;
    for _ in 0..SCANS_MAX {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{PREFIX}*")).arg("COUNT").arg(SCAN_COUNT);
        let (next, keys): (u64, Vec<Vec<u8>>) = scan.query_async(connection).await?;
        read(connection, keys, &mut found).await?;
        cursor = next;
        if cursor == 0 || found.servers.len() >= SERVERS_MAX {
            break;
        }
    }
    Ok(found)
}

async fn read(
    connection: &mut MultiplexedConnection,
    keys: Vec<Vec<u8>>,
    found: &mut Announced,
) -> Result<(), RedisError> {
    let named: Vec<(&[u8], TargetName)> =
        keys.iter().filter_map(|key| Some((key.as_slice(), name_of(key)?))).collect();
    if named.is_empty() {
        return Ok(());
    }
    // Whoever may write into the store can put anything there: no more of a value is read than tells that it is too long,
    // and a key of another type costs its own announcement only.
    let mut pipe = redis::pipe();
    for (key, _) in &named {
        pipe.cmd("GETRANGE").arg(*key).arg(0).arg(LONGEST);
    }
    let values: Vec<Result<Vec<u8>, RedisError>> = pipe.ignore_errors().query_async(connection).await?;
    for ((_, name), value) in named.into_iter().zip(values) {
        let server = value.map_err(|error| error.to_string()).and_then(|value| usable(&name, &value));
        match server {
            Ok(Some(server)) if found.servers.len() < SERVERS_MAX => drop(found.servers.insert(name, server)),
            Ok(_) => {}
            Err(reason) if found.unusable.len() < SERVERS_MAX => drop(found.unusable.insert(name, reason)),
            Err(_) => {}
        }
    }
    Ok(())
}

/// The announcement in a value, or why it cannot be used. A key that has ended since has an empty one.
fn usable(name: &TargetName, value: &[u8]) -> Result<Option<Announcement>, String> {
    let text = str::from_utf8(value).map_err(|_| "it is no text".to_owned())?;
    if text.is_empty() {
        return Ok(None);
    }
    Announcement::parse(name.clone(), text).map(Some).map_err(|error| error.to_string())
}

/// Why servers cannot be found or announced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The URL of the store cannot be used. It may have a password, so it is not repeated.
    #[error("the URL of the store cannot be used; write it as redis://HOST:PORT/ or unix:///PATH")]
    Url,
    /// The URL asks for TLS.
    #[error("there is no TLS towards the store: use redis:// in a network of your own, or through a tunnel")]
    Tls,
    /// The store does not answer, or refuses a command.
    #[error("the store of servers: {0}")]
    Store(#[from] RedisError),
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// A command as clients of Redis send it.
    async fn command(stream: &mut TcpStream) -> Option<Vec<Vec<u8>>> {
        async fn number(stream: &mut TcpStream) -> Option<usize> {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                line.push(stream.read_u8().await.ok()?);
            }
            str::from_utf8(&line[1..line.len() - 2]).ok()?.parse().ok()
        }
        let mut words = Vec::new();
        for _ in 0..number(stream).await? {
            let mut word = vec![0; number(stream).await? + 2];
            stream.read_exact(&mut word).await.ok()?;
            word.truncate(word.len() - 2);
            words.push(word);
        }
        Some(words)
    }

    fn bulk(text: &[u8]) -> Vec<u8> {
        [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
    }

    /// A store with these keys, of which one without a value is of another type.
    async fn store(entries: Vec<(&'static [u8], Option<&'static [u8]>)>) -> Store {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            while let Some(words) = command(&mut stream).await {
                let answer = match words[0].as_slice() {
                    b"SCAN" => {
                        let keys = entries.iter().flat_map(|(key, _)| bulk(key)).collect::<Vec<u8>>();
                        let head = format!("*2\r\n$1\r\n0\r\n*{}\r\n", entries.len());
                        [head.as_bytes(), &keys].concat()
                    }
                    b"GETRANGE" => {
                        let end: usize = str::from_utf8(&words[3]).unwrap().parse().unwrap();
                        match entries.iter().find(|(key, _)| *key == words[1]).and_then(|(_, value)| *value) {
                            Some(value) => bulk(value.get(..=end).unwrap_or(value)),
                            None => b"-WRONGTYPE not a string\r\n".to_vec(),
                        }
                    }
                    _ => b"+OK\r\n".to_vec(),
                };
                stream.write_all(&answer).await.unwrap();
            }
        });
        Store::new(&url).unwrap()
    }

    #[tokio::test]
    async fn what_cannot_be_used_hides_nothing_else() {
        let good: &[u8] = br#"{"address":"10.0.0.7:19132","kind":"raknet"}"#;
        let mut store = store(vec![
            (b"rakwire:server:\xff", Some(good)),
            (b"rakwire:server:binary", Some(b"\xff\xfe")),
            (b"rakwire:server:list", None),
            (b"rakwire:server:long", Some(&[b' '; 5_000])),
            (b"rakwire:server:gone", Some(b"")),
            (b"rakwire:server:arena", Some(good)),
        ])
        .await;
        let found = store.servers().await.unwrap();
        assert_eq!(found.servers.keys().map(TargetName::as_str).collect::<Vec<_>>(), ["arena"]);
        let unusable: Vec<&str> = found.unusable.keys().map(TargetName::as_str).collect();
        assert_eq!(unusable, ["binary", "list", "long"]);
        assert!(found.unusable.values().all(|reason| !reason.is_empty()), "{found:?}");
    }
}
