//! `rakwire pull`: receives a directory.

use std::path::PathBuf;

use clap::Args;
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Connection, Endpoint, RakNet};
use rakwire_plugins::directory::{DirectoryLimits, DirectoryStore};
use rakwire_plugins::files::{self, FileReceiver, Limits, Progress, ReceiverEvent};

use crate::failure::{Failure, print};
use crate::host;
use crate::transfer::{self, Link, MESSAGE, POLL, ProgressLine, WINDOW};

/// The number of files requested ahead.
const AHEAD: usize = 64;

type Receiver = SharedHook<FileReceiver<RakNet, DirectoryStore, WINDOW, AHEAD, MESSAGE>>;

/// Receives files into a directory from a machine that runs `rakwire push --listen`; or, with --listen, from the first
/// machine that pushes to this one and completes the transfer.
///
/// Running the same command again resumes an interrupted transfer. Files that are here already and have not changed are
/// not sent, and files that the other side does not have are kept. Nothing is written through symbolic links.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory, which is created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    link: Link,
    /// The maximum number of files, and of directories, in DIR in total, including existing ones
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    max_files: u32,
    /// The maximum number of bytes in DIR in total, including existing files and interrupted transfers
    #[arg(long, value_name = "BYTES", default_value_t = 10_000_000_000)]
    max_bytes: u64,
    /// The maximum size of a file in bytes (default: --max-bytes)
    #[arg(long, value_name = "BYTES")]
    max_file_bytes: Option<u64>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let link = &arguments.link;
    let limits = Limits {
        files: arguments.max_files,
        file_bytes: arguments.max_file_bytes.unwrap_or(arguments.max_bytes),
        bytes: arguments.max_bytes,
        timeout: link.timeout,
    };
    let limits_of_directory = DirectoryLimits {
        files: arguments.max_files,
        directories: arguments.max_files,
        bytes: arguments.max_bytes,
    };
    let store = DirectoryStore::new(&arguments.directory, limits_of_directory);
    let store = store.map_err(|error| Failure::usage(transfer::advised(&error)))?;
    let mut plugin = FileReceiver::new(store, limits);
    plugin.set_rate(link.rate);
    let receiver = Receiver::new(plugin);
    let endpoint = link.bind(&receiver).await?;
    let result = match &link.target {
        None => wait(&endpoint, &receiver).await,
        Some(target) => match link.connect(&endpoint, target).await {
            Ok(connection) => pull(&endpoint, &connection, &receiver).await.map(Some),
            Err(failure) => Err(failure),
        },
    };
    endpoint.close().await;
    let Some(progress) = result? else { return Ok(()) };
    let removed = receiver.with(|receiver| receiver.store.remove_parts());
    removed.map_err(|error| {
        Failure::runtime(format!("cannot remove the parts of interrupted transfers: {error}"))
    })?;
    let Progress { done, unchanged, patched, received, .. } = progress;
    let patched = if patched > 0 { format!("{patched} by patches, ") } else { String::new() };
    print(format_args!(
        "{} files, {} bytes are here; {unchanged} were unchanged, {patched}{received} bytes received\n",
        done.files, done.bytes
    ))
}

/// Accepts connections until one completes the transfer; returns `None` if a signal ends the program first.
async fn wait(endpoint: &Endpoint, receiver: &Receiver) -> Result<Option<Progress>, Failure> {
    let stop = host::stop_signal()?;
    print(format_args!("listening on {}\n", endpoint.local_addr()))?;
    let receive = async {
        while let Some(connection) = endpoint.accept().await {
            match pull(endpoint, &connection, receiver).await {
                Ok(progress) => return Some(progress),
                // The next peer may complete the transfer.
                Err(failure) => _ = failure.report(),
            }
        }
        None
    };
    tokio::select! {
        progress = receive => Ok(progress),
        () = stop => Ok(None),
    }
}

/// Receives everything from one sender.
async fn pull(
    endpoint: &Endpoint,
    connection: &Connection,
    receiver: &Receiver,
) -> Result<Progress, Failure> {
    receiver.with(|receiver| receiver.fetch(connection.id())).map_err(Failure::runtime)?;
    endpoint.wake();
    let line = ProgressLine::new();
    let result = loop {
        // The state is read before the events, so that no event before the close is missed.
        let is_closed = connection.closed_reason().is_some();
        match receiver.with(FileReceiver::poll_event) {
            Some(ReceiverEvent::Progress(progress)) => line.show(progress.done.bytes, progress.total.bytes),
            Some(ReceiverEvent::Ended(result)) => break result,
            None if is_closed => break Err(files::Failure::Disconnected),
            None => tokio::time::sleep(POLL).await,
        }
    };
    drop(line);
    connection.disconnect().await;
    receiver.with(|receiver| receiver.store.close());
    result.map_err(|failure| {
        let error = receiver.with(|receiver| receiver.store.error.take());
        transfer::failed(failure, error.as_ref().map(transfer::advised))
    })
}
