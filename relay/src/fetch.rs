//! Reading the list of servers of a relay.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use thiserror::Error;

use crate::trust::client_config;

/// How long the relay has for each step: to accept the connection, and to send a part of its answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// More than the longest list.
const LONGEST: u64 = 4 * 1024 * 1024;

/// Why there is no list.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address is none of a relay.
    #[error("write the address of the relay as http://HOST:PORT or https://HOST")]
    Url,
    /// The relay cannot be reached, or shows a certificate that this machine does not trust.
    #[error("no answer ({0})")]
    Io(#[from] io::Error),
    /// This machine cannot check certificates.
    #[error("{0}")]
    Tls(String),
    /// The answer is no list.
    #[error("the answer is something other than a list")]
    Unexpected,
}

/// Where a relay is.
#[derive(Debug, PartialEq, Eq)]
struct RelayUrl<'a> {
    has_tls: bool,
    /// The host and, unless it is that of the scheme, the port.
    authority: &'a str,
}

impl<'a> RelayUrl<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let (has_tls, rest) = match url.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("http://")?),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let is_authority = !authority.is_empty() && !authority.contains(['/', '?', '#', '@']);
        is_authority.then_some(Self { has_tls, authority })
    }

    /// The host without brackets, and the port.
    fn host_and_port(&self) -> (&'a str, u16) {
        let by_scheme = if self.has_tls { 443 } else { 80 };
        let (host, port) = match self.authority.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
            Some((host, Ok(port))) => (host, port),
            Some((_, Err(_))) | None => (self.authority, by_scheme),
        };
        (host.trim_start_matches('[').trim_end_matches(']'), port)
    }
}

/// Reads `GET /servers.json` of the relay at `url`, such as `https://relay.example.org` or `http://127.0.0.1:8080`, and
/// returns the JSON text, which [`ServerList`](crate::directory::ServerList) reads. Blocks for some seconds at most while
/// the relay sends nothing. By https the certificate must be one that this system trusts.
///
/// # Errors
///
/// If the URL has another form, nobody answers, or the answer is not the list.
pub fn fetch_server_list(url: &str) -> Result<String, FetchError> {
    let relay = RelayUrl::parse(url).ok_or(FetchError::Url)?;
    let (host, port) = relay.host_and_port();
    let stream = connect(host, port)?;
    let answer = if relay.has_tls {
        let config = client_config(None).map_err(|error| FetchError::Tls(error.to_string()))?;
        let name = ServerName::try_from(host.to_owned()).map_err(|_| FetchError::Url)?;
        let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        request(StreamOwned::new(connection, stream), relay.authority)?
    } else {
        request(stream, relay.authority)?
    };
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(FetchError::Unexpected)?;
    let is_found = head.split_whitespace().nth(1) == Some("200");
    if is_found { Ok(body.to_owned()) } else { Err(FetchError::Unexpected) }
}

/// Connects to the first address of the host that answers.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut result = Err(io::Error::other("the host has no address"));
    for address in (host, port).to_socket_addrs()? {
        result = TcpStream::connect_timeout(&address, TIMEOUT);
        if let Ok(stream) = &result {
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            break;
        }
    }
    result
}

fn request(mut stream: impl Read + Write, authority: &str) -> io::Result<String> {
    // An answer to version 1.0 has no chunks.
    write!(stream, "GET /servers.json HTTP/1.0\r\nHost: {authority}\r\nConnection: close\r\n\r\n")?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.take(LONGEST).read_to_end(&mut answer) {
        // Whether a list is whole its JSON tells, also where a server ends TLS without saying so.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        Ok(_) | Err(_) => {}
    }
    String::from_utf8(answer).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_relay_has_a_scheme_and_no_path() {
        let parsed = |url| RelayUrl::parse(url).map(|url| (url.has_tls, url.host_and_port()));
        assert_eq!(parsed("http://127.0.0.1:8080"), Some((false, ("127.0.0.1", 8080))));
        assert_eq!(parsed("http://relay.example.org/"), Some((false, ("relay.example.org", 80))));
        assert_eq!(parsed("https://relay.example.org"), Some((true, ("relay.example.org", 443))));
        assert_eq!(parsed("https://[2001:db8::1]"), Some((true, ("2001:db8::1", 443))));
        assert_eq!(parsed("https://[::1]:8443/"), Some((true, ("::1", 8443))));
        for other in ["wss://a:1", "127.0.0.1:8080", "http://", "http://a/servers.json", "https://me@a"] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }
}
