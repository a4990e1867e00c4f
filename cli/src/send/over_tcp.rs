//! `rakwire send --tcp`: sends over TCP.

use std::io::ErrorKind;
use std::net::SocketAddr;

use rakwire_extras::tcp::{
    ConnectError, ConnectFailure, ConnectOptions, Connection, Delivery, Endpoint, Options,
};

use super::arguments::Arguments;
use super::exchange::exchange;
use super::raknet::request;
use crate::connection::MAX_TCP_MESSAGE;
use crate::failure::Failure;
use crate::{host, tls};

/// Sends over TCP with the framing of `PacketizedTCP`.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let prefix = super::raknet::prefix(arguments)?;
    let request = request(arguments, &prefix, Delivery::RELIABLE_ORDERED);
    let servers = host::resolve_all(&arguments.target).await?;
    let connect_options = connect_options(arguments)?;
    let mut options = Options::client();
    options.max_message = MAX_TCP_MESSAGE;
    let any = host::unspecified_address_for(&servers);
    let endpoint = Endpoint::bind(any, options).await.map_err(|error| host::bind_failure(any, &error))?;
    let attempt = async |server, share| {
        let mut options = connect_options.clone();
        options.connect_timeout = Some(share);
        endpoint.connect_with(server, &options).await
    };
    let no_answer = ConnectError::Failed(ConnectFailure::NoAnswer);
    let connected = host::try_each(&servers, arguments.timeout, no_answer, was_unanswered, attempt).await;
    let connection: Connection = connected.map_err(|error| failure(&servers, &error, arguments))?;
    let result = exchange(&connection, &request).await;
    endpoint.close().await;
    result
}

const fn was_unanswered(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Failed(ConnectFailure::NoAnswer | ConnectFailure::Socket(_)))
}

fn connect_options(arguments: &Arguments) -> Result<ConnectOptions, Failure> {
    let mut options = ConnectOptions::default();
    if arguments.tls {
        let trust = tls::client(arguments.tls_ca.as_deref())?;
        options.tls = Some((trust, tls::name_of(&arguments.target)?));
    }
    Ok(options)
}

fn failure(servers: &[SocketAddr], error: &ConnectError, arguments: &Arguments) -> Failure {
    let advice =
        if let ConnectError::Failed(failure) = error { advice(failure, arguments) } else { String::new() };
    Failure::runtime(format!("cannot connect to {}: {error}{advice}", host::list(servers)))
}

/// Returns the fix for a failed attempt, to append to the error message.
fn advice(failure: &ConnectFailure, arguments: &Arguments) -> String {
    let seconds = arguments.timeout.as_secs_f64();
    if *failure == ConnectFailure::NoAnswer {
        return format!(" within {seconds} s; check the address, or allow more time with --timeout");
    }
    let is_cut =
        [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof].map(ConnectFailure::Socket).contains(failure);
    let advice = if matches!(failure, ConnectFailure::Tls(_)) {
        "; use the name in the server's certificate, and give its authority with --tls-ca"
    } else if is_cut && arguments.tls {
        "; connect without --tls if the server has no TLS"
    } else if *failure == ConnectFailure::Socket(ErrorKind::ConnectionRefused) {
        "; check the address, and that the server listens with --tcp"
    } else {
        ""
    };
    advice.to_owned()
}
