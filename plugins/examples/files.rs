//! A server with files and a client that fetches them, in one program and in memory, over real sockets.

use std::collections::BTreeMap;
use std::time::Duration;

use rakwire::endpoint::{Plugin, PluginHost};
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Endpoint, Options, RakNet};
use rakwire_plugins::files::{
    Entry, FileReceiver, FileSender, Limits, ReceiverEvent, Source, StorageError, Store, Totals,
};
use sha2::{Digest, Sha256};

/// A game map, with the SHA-256 of each file.
struct Map(Vec<(&'static str, Vec<u8>, [u8; 32])>);

impl Map {
    fn new(files: [(&'static str, Vec<u8>); 2]) -> Self {
        let entries = files.into_iter().map(|(path, bytes)| {
            let digest = Sha256::digest(&bytes).into();
            (path, bytes, digest)
        });
        Self(entries.collect())
    }
}

impl Source for Map {
    fn totals(&self) -> Totals {
        let bytes = self.0.iter().map(|(_, bytes, _)| bytes.len() as u64).sum();
        Totals { files: self.0.len() as u32, bytes }
    }

    fn entry(&self, file: u32) -> Option<Entry<'_>> {
        let (path, bytes, digest) = self.0.get(file as usize)?;
        Some(Entry { path: path.as_bytes(), size: bytes.len() as u64, digest: *digest })
    }

    fn read(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        let (_, bytes, _) = self.0.get(file as usize).ok_or(StorageError)?;
        let begin = offset as usize;
        buffer.copy_from_slice(bytes.get(begin..begin + buffer.len()).ok_or(StorageError)?);
        Ok(())
    }
}

/// The downloaded files.
#[derive(Default)]
struct Downloads {
    coming: BTreeMap<u32, (String, Vec<u8>)>,
    complete: BTreeMap<String, Vec<u8>>,
}

impl Store for Downloads {
    fn begin(&mut self, file: u32, entry: &Entry<'_>) -> Result<u64, StorageError> {
        let path = String::from_utf8(entry.path.to_vec()).map_err(|_| StorageError)?;
        self.coming.insert(file, (path, Vec::new()));
        Ok(0)
    }

    fn read(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        let (_, bytes) = self.coming.get(&file).ok_or(StorageError)?;
        let begin = offset as usize;
        buffer.copy_from_slice(bytes.get(begin..begin + buffer.len()).ok_or(StorageError)?);
        Ok(())
    }

    fn write(&mut self, file: u32, _offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        // In RakNet the default delivery is ordered.
        self.coming.get_mut(&file).ok_or(StorageError)?.1.extend_from_slice(bytes);
        Ok(())
    }

    fn discard(&mut self, file: u32) -> Result<(), StorageError> {
        self.coming.get_mut(&file).ok_or(StorageError)?.1.clear();
        Ok(())
    }

    fn finish(&mut self, file: u32) -> Result<(), StorageError> {
        let (path, bytes) = self.coming.remove(&file).ok_or(StorageError)?;
        self.complete.insert(path, bytes);
        Ok(())
    }
}

/// Binds an endpoint with a plugin.
async fn bind<T: Plugin<RakNet> + Send + 'static>(
    options: Options,
    plugin: &SharedHook<T>,
) -> Result<Endpoint, Box<dyn std::error::Error>> {
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(plugin.clone())?;
    Ok(Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?)
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let map = Map::new([("ice/heights", vec![7; 100_000]), ("ice/name", b"Frozen lake".to_vec())]);
    let mut sender = FileSender::<RakNet, _, 8, 17, 8_192>::new(map);
    sender.serve_all();
    let server = bind(Options::server(8)?, &SharedHook::new(sender)).await?;

    let timeout = Duration::from_secs(10);
    let limits = Limits { files: 100, file_bytes: 1 << 20, bytes: 10 << 20, timeout };
    let downloads = FileReceiver::<RakNet, _, 16, 8, 8_192>::new(Downloads::default(), limits);
    let downloads = SharedHook::new(downloads);
    let client = bind(Options::client()?, &downloads).await?;
    let connection = client.connect(server.local_addr()).await?;
    downloads.with(|downloads| downloads.fetch(connection.id()))?;
    client.wake();
    let progress = loop {
        match downloads.next(FileReceiver::poll_event).await {
            ReceiverEvent::Progress(progress) => {
                println!("{} of {} bytes", progress.done.bytes, progress.total.bytes);
            }
            ReceiverEvent::Ended(result) => break result?,
        }
    };
    println!("{} files have arrived:", progress.done.files);
    downloads.with(|downloads| {
        for (path, bytes) in &downloads.store.complete {
            println!("  {path}, {} bytes", bytes.len());
        }
    });
    connection.disconnect().await;
    Ok(())
}
