//! `rakwire echo --tcp`: echoes over TCP.

use rakwire_extras::tcp::{Endpoint, Options};
use tracing::info;

use super::answer::{echo, start_logging};
use super::arguments::Arguments;
use crate::connection::MAX_TCP_MESSAGE;
use crate::failure::Failure;
use crate::{host, tls};

/// Echoes every message that arrives over TCP, until a signal ends the program.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let addresses = host::listening(&arguments.listen).await?;
    let endpoint = Endpoint::bind(&addresses[..], options(arguments)?).await;
    let endpoint = endpoint.map_err(|error| host::bind_failure(&arguments.listen, &error))?;
    start_logging();
    let accept = async {
        while let Some(connection) = endpoint.accept().await {
            info!(remote = %connection.remote(), "connected");
            tokio::spawn(echo(connection, |message| !message.is_empty()));
        }
    };
    host::until_signal(endpoint.local_addr(), accept).await?;
    let stats = endpoint.stats();
    let (refused, refused_by_address) = (stats.refused, stats.refused_by_address);
    let refused_by_network = stats.refused_by_network;
    info!(
        refused,
        refused_by_address,
        refused_by_network,
        handshakes_failed = stats.handshakes_failed,
        "closing"
    );
    endpoint.close().await;
    Ok(())
}

fn options(arguments: &Arguments) -> Result<Options, Failure> {
    let mut options = Options::server(arguments.max_connections.into());
    options.max_per_address = arguments.max_per_address;
    options.max_per_network = arguments.max_per_network;
    options.max_message = MAX_TCP_MESSAGE;
    if let (Some(certificate), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) {
        options.tls = Some(tls::server(certificate, key)?);
    }
    Ok(options)
}
