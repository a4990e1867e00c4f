//! Addresses, times and endpoints from the command line.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use rakwire::endpoint::Protocol;
use rakwire_native::endpoint::{ConnectError, Connection};
use rakwire_native::{BindError, Options, endpoint, raknet};
use tokio::time::Instant;

use crate::failure::{Failure, print};

/// Resolves HOST:PORT to its addresses, in the order in which they are tried.
///
/// HOST may include the name of an interface. IPv4 addresses come first, because nearly every RakNet server has one.
pub(crate) async fn resolve_all(target: &str) -> Result<Vec<SocketAddr>, Failure> {
    let failure = |reason: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "cannot use {target:?} as an address: {reason}; use HOST:PORT, as in 127.0.0.1:19132 or [::1]:19132"
        ))
    };
    let addresses = rakwire_native::lookup(target).await.map_err(|error| failure(&error))?;
    if addresses.iter().any(|address| address.port() == 0) {
        return Err(failure(&"port 0 is not valid"));
    }
    if addresses.iter().any(|address| address.ip().is_unspecified()) {
        return Err(failure(&"0.0.0.0 and [::] are not addresses of a host"));
    }
    let (mut sorted, ipv6): (Vec<_>, Vec<_>) = addresses.into_iter().partition(SocketAddr::is_ipv4);
    // A machine may lack IPv6 although names resolve to IPv6 addresses.
    if sorted.is_empty() || UdpSocket::bind("[::]:0").is_ok() {
        sorted.extend(ipv6);
    }
    if sorted.is_empty() { Err(failure(&"the name has no address")) } else { Ok(sorted) }
}

/// Like [`resolve_all`], but returns only the first address.
pub(crate) async fn resolve(target: &str) -> Result<SocketAddr, Failure> {
    let addresses = resolve_all(target).await?;
    addresses.first().copied().ok_or_else(|| Failure::usage(format!("the name in {target:?} has no address")))
}

/// Formats the addresses that were tried, for an error message.
pub(crate) fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" or ")
}

/// Tries the addresses of a name, one after the other, until one answers.
///
/// The remaining time is divided equally among the remaining addresses. An attempt that fails early therefore leaves
/// more time for the next one. Only a missing answer leads to the next address; any other error is returned
/// immediately. If no address answers, the error of the last attempt is returned, or `no_answer` if `servers` is empty.
pub(crate) async fn try_each<T, E>(
    servers: &[SocketAddr],
    timeout: Duration,
    no_answer: E,
    was_unanswered: impl Fn(&E) -> bool,
    mut attempt: impl AsyncFnMut(SocketAddr, Duration) -> Result<T, E>,
) -> Result<T, E> {
    let (start, mut failed) = (Instant::now(), no_answer);
    let untried = (1..=u32::try_from(servers.len()).unwrap_or(u32::MAX)).rev();
    for (server, untried) in servers.iter().zip(untried) {
        let share = timeout.saturating_sub(start.elapsed()) / untried;
        match attempt(*server, share).await {
            Err(error) if was_unanswered(&error) => failed = error,
            result => return result,
        }
    }
    Err(failed)
}

/// Returns true if the attempt failed because no server answered, so that another address may work.
pub(crate) fn was_unanswered<P: Protocol>(error: &ConnectError<P::ConnectFailure>) -> bool {
    matches!(error, ConnectError::Failed(failure) if P::was_unanswered(failure))
        || *error == ConnectError::AddressFamily
}

/// Resolves ADDR:PORT to the addresses to listen on.
pub(crate) async fn listening(address: &str) -> Result<Vec<SocketAddr>, Failure> {
    rakwire_native::lookup(address).await.map_err(|error| bind_failure(address, &BindError::Resolve(error)))
}

/// Returns the wildcard address of a socket that can reach `addresses`; an IPv6 socket reaches IPv4 as well.
pub(crate) fn unspecified_address_for(addresses: &[SocketAddr]) -> &'static str {
    if addresses.iter().any(SocketAddr::is_ipv6) { "[::]:0" } else { "0.0.0.0:0" }
}

/// Binds an endpoint that can reach these addresses.
pub(crate) async fn endpoint_for(
    addresses: &[SocketAddr],
    options: Options,
) -> Result<raknet::Endpoint, Failure> {
    let any = unspecified_address_for(addresses);
    raknet::Endpoint::bind(any, options).await.map_err(|error| bind_failure(any, &error))
}

pub(crate) fn bind_failure(address: &str, error: &BindError) -> Failure {
    Failure::usage(match error {
        BindError::Socket { .. } => format!("{error}; choose another address or port"),
        BindError::Resolve(_) | BindError::NoAddress | _ => {
            format!("cannot listen on {address:?}: {error}; use ADDR:PORT, as in 127.0.0.1:19132")
        }
    })
}

pub(crate) fn no_entropy(error: std::io::Error) -> Failure {
    Failure::runtime(format!("the system provides no random bytes: {error}"))
}

/// Passes every incoming connection to `handle` until a signal ends the program.
pub(crate) async fn serve<P: Protocol>(
    endpoint: &endpoint::Endpoint<P>,
    handle: impl Fn(Connection<P>),
) -> Result<(), Failure> {
    let accept = async {
        while let Some(connection) = endpoint.accept().await {
            handle(connection);
        }
    };
    until_signal(endpoint.local_addr(), accept).await
}

/// Prints the listening address, and runs `accept` until a signal ends it.
pub(crate) async fn until_signal(local: SocketAddr, accept: impl Future<Output = ()>) -> Result<(), Failure> {
    let stop = stop_signal()?;
    print(format_args!("listening on {local}\n"))?;
    tokio::select! {
        () = accept => {}
        () = stop => {}
    }
    Ok(())
}

/// Completes at Ctrl-C or a termination signal. Signals are caught from this call on.
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    let cannot = |error| Failure::runtime(format!("cannot wait for signals: {error}"));
    #[cfg(unix)]
    let (mut terminate, mut interrupt) = {
        use tokio::signal::unix::{SignalKind, signal};
        (signal(SignalKind::terminate()).map_err(cannot)?, signal(SignalKind::interrupt()).map_err(cannot)?)
    };
    #[cfg(windows)]
    let (mut terminate, mut interrupt) = {
        use tokio::signal::windows::{ctrl_c, ctrl_close};
        (ctrl_close().map_err(cannot)?, ctrl_c().map_err(cannot)?)
    };
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Parses a number of seconds, such as 5 or 0.2.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number; use seconds, as in 5 or 0.2".to_owned())?;
    if !(0.001..=86_400.0).contains(&seconds) {
        return Err("not between 0.001 and 86400 seconds".to_owned());
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Formats a time in milliseconds.
pub(crate) fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_address_is_tried_with_a_share_of_the_remaining_time() {
        const TIMEOUT: Duration = Duration::from_secs(9);

        let servers = [1, 2, 3].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        // The first address is closed, the second does not answer, and the third answers.
        let attempt = async |server: SocketAddr, share| match server.port() {
            1 => Err("closed"),
            2 => {
                tokio::time::sleep(share).await;
                Err("silent")
            }
            _ => Ok(share),
        };
        let share = try_each(&servers, TIMEOUT, "nothing", |_| true, attempt).await;
        assert_eq!(share, Ok(TIMEOUT / 2));
        let refused = try_each(&servers, TIMEOUT, "nothing", |error| *error != "closed", attempt).await;
        assert_eq!(refused, Err("closed"));
        let unanswered = try_each(&servers[..2], TIMEOUT, "nothing", |_| true, attempt).await;
        assert_eq!(unanswered, Err("silent"));
    }
}
