//! Addresses, times and endpoints as the command line names them.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire_native::{BindError, Endpoint, Options};

use crate::failure::Failure;

/// The address that HOST:PORT stands for. A name that has both kinds of addresses stands for the first IPv4 one, which
/// nearly every RakNet server has.
pub(crate) async fn resolve(target: &str) -> Result<SocketAddr, Failure> {
    let refuse = |reason: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "{target:?} is no address: {reason}; give HOST:PORT, as 127.0.0.1:19132 or [::1]:19132"
        ))
    };
    let found = tokio::net::lookup_host(target).await;
    let addresses: Vec<SocketAddr> = found.map_err(|error| refuse(&error))?.collect();
    let preferred = addresses.iter().find(|address| address.is_ipv4());
    let address =
        *preferred.or_else(|| addresses.first()).ok_or_else(|| refuse(&"the name has no address"))?;
    if address.port() == 0 {
        return Err(refuse(&"there is no port 0"));
    }
    Ok(address)
}

/// The address of a socket that can reach `server`.
pub(crate) const fn any_towards(server: SocketAddr) -> &'static str {
    match server {
        SocketAddr::V4(_) => "0.0.0.0:0",
        SocketAddr::V6(_) => "[::]:0",
    }
}

/// An endpoint that can reach `server`.
pub(crate) async fn endpoint_towards(server: SocketAddr, options: Options) -> Result<Endpoint, Failure> {
    let any = any_towards(server);
    Endpoint::bind(any, options).await.map_err(|error| refuse_to_bind(any, &error))
}

pub(crate) fn refuse_to_bind(address: &str, error: &BindError) -> Failure {
    Failure::usage(match error {
        BindError::Socket { .. } => format!("{error}; choose another address or port"),
        BindError::Resolve(_) | BindError::NoAddress | _ => {
            format!("{address:?} is no address to listen on: {error}; give ADDR:PORT, as 127.0.0.1:19132")
        }
    })
}

pub(crate) fn no_entropy(error: std::io::Error) -> Failure {
    Failure::runtime(format!("the system gives no random bytes: {error}"))
}

/// Reads a number of seconds, as 5 or 0.2.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number; give seconds, as 5 or 0.2".to_owned())?;
    if !(0.001..=86_400.0).contains(&seconds) {
        return Err("not between 0.001 and 86400 seconds; give as many, as 5 or 0.2".to_owned());
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// A time in milliseconds, as a person reads it.
pub(crate) fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1_000.0)
}
