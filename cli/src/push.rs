//! `rakwire push`: sends a directory.

use std::iter;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use rakwire::endpoint::ConnectionId;
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Connection, Endpoint, RakNet};
use rakwire_plugins::directory::DirectorySource;
use rakwire_plugins::files::{self, FileSender, SenderEvent, Source, Totals};

use crate::failure::{Failure, print};
use crate::host;
use crate::transfer::{self, Link, MESSAGE, PEERS, POLL, ProgressLine, WINDOW};

type Sender = SharedHook<FileSender<RakNet, DirectorySource, { PEERS as usize }, { WINDOW + 1 }, MESSAGE>>;

/// Sends the files of a directory to a machine that runs `rakwire pull --listen`; or, with --listen, to every machine
/// that pulls from this one, until a signal ends the program.
///
/// Files that the other side already has are not sent again; with --previous only patches of changed files are sent.
/// Symbolic links are refused.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// An older version of the directory; receivers that still have a changed file in that version are sent a patch;
    /// can be repeated
    #[arg(long, value_name = "DIR")]
    previous: Vec<PathBuf>,
    #[command(flatten)]
    link: Link,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let link = &arguments.link;
    let mut plugin = FileSender::new(source(&arguments)?);
    plugin.set_rate(link.rate);
    // The endpoint controls access: the peer is the chosen target, or has met the password and security requirements.
    plugin.serve_all();
    let totals = plugin.source.totals();
    let sender = Sender::new(plugin);
    let endpoint = link.bind(&sender).await?;
    let result = match &link.target {
        None => serve(&endpoint, &sender, totals).await,
        Some(target) => push(&endpoint, &sender, link, target).await,
    };
    endpoint.close().await;
    result
}

/// Reads the directory, and computes patches from its previous versions.
fn source(arguments: &Arguments) -> Result<DirectorySource, Failure> {
    let mut source = DirectorySource::read(&arguments.directory).map_err(Failure::usage)?;
    for previous in &arguments.previous {
        source.add_previous(previous).map_err(Failure::usage)?;
    }
    if !arguments.previous.is_empty() {
        let (count, bytes) = source.patches();
        print(format_args!("{count} patches, {bytes} bytes\n"))?;
    }
    Ok(source)
}

/// Sends everything to one receiver.
async fn push(endpoint: &Endpoint, sender: &Sender, link: &Link, target: &str) -> Result<(), Failure> {
    let ended = match link.connect(endpoint, target).await {
        Ok(connection) => {
            let ended = wait(&connection, sender, link.timeout).await?;
            connection.disconnect().await;
            ended
        }
        // A short transfer may end, and its connection close, before `connect` returns.
        Err(failure) => {
            iter::from_fn(|| sender.with(FileSender::poll_event)).find_map(outcome).ok_or(failure)?
        }
    };
    ended.map_err(|failure| transfer::failed(failure, sender.with(|sender| sender.source.error.take())))?;
    let Totals { files, bytes } = sender.with(|sender| sender.source.totals());
    print(format_args!("the remote machine has all {files} files, {bytes} bytes\n"))
}

/// Waits for the end of the transfer. Fails if the peer requests nothing within `timeout`.
async fn wait(
    connection: &Connection,
    sender: &Sender,
    timeout: Duration,
) -> Result<Result<(), files::Failure>, Failure> {
    let total = sender.with(|sender| sender.source.totals()).bytes;
    let (line, start) = (ProgressLine::new(), Instant::now());
    loop {
        // The state is read before the events, so that no event before the close is missed.
        let is_closed = connection.closed_reason().is_some();
        match sender.with(FileSender::poll_event) {
            Some((_, SenderEvent::Progress(bytes))) => line.show(bytes, total),
            Some((_, SenderEvent::Ended(result))) => return Ok(result),
            None if is_closed => return Ok(Err(files::Failure::Disconnected)),
            None if start.elapsed() > timeout && sender.with(|sender| sender.stats().replies) == 0 => {
                let advice = "is `rakwire pull --listen` running there?";
                return Err(Failure::runtime(format!("the remote machine requested nothing; {advice}")));
            }
            None => tokio::time::sleep(POLL).await,
        }
    }
}

fn outcome((_, event): (ConnectionId, SenderEvent)) -> Option<Result<(), files::Failure>> {
    if let SenderEvent::Ended(result) = event { Some(result) } else { None }
}

/// Sends everything to every peer that requests it.
async fn serve(endpoint: &Endpoint, sender: &Sender, totals: Totals) -> Result<(), Failure> {
    let reporter = tokio::spawn(report(sender.clone(), totals));
    let served = host::serve(endpoint, |connection| {
        tokio::spawn(async move { connection.closed().await });
    });
    let result = served.await;
    reporter.abort();
    result
}

/// Prints the outcome of each receiver.
async fn report(sender: Sender, totals: Totals) -> Result<(), Failure> {
    loop {
        match sender.with(FileSender::poll_event) {
            Some((_, SenderEvent::Ended(Ok(())))) => {
                print(format_args!("a receiver has all {} files, {} bytes\n", totals.files, totals.bytes))?;
            }
            Some((_, SenderEvent::Ended(Err(failure)))) => {
                print(format_args!("a receiver does not have all files: {failure}\n"))?;
            }
            Some((_, SenderEvent::Progress(_))) => {}
            None => tokio::time::sleep(POLL).await,
        }
    }
}
