//! `list`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rakwire_relay::directory::ServerList;

use super::{Failure, print_out};
use crate::args::ListArgs;

/// How long the relay has for its answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// More than the longest list.
const LONGEST: u64 = 4 * 1024 * 1024;

pub(crate) fn list(args: &ListArgs) -> Result<(), Failure> {
    let Some(host) = host_of(&args.relay) else {
        return Err(Failure::misconfigured("write the address of the relay as http://HOST:PORT"));
    };
    let failed = |error: std::io::Error| Failure::Failed(format!("no answer from {} ({error})", args.relay));
    let answer = get(host).map_err(failed)?;
    let unexpected = || Failure::Failed(format!("{} answers with something other than a list", args.relay));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(unexpected)?;
    let is_found = head.split_whitespace().nth(1) == Some("200");
    let list: ServerList = serde_json::from_str(body).ok().filter(|_| is_found).ok_or_else(unexpected)?;
    if args.json { print_out(&format!("{}\n", body.trim_end())) } else { print_out(&list.to_table()) }
}

/// The host and port of a URL without a path.
fn host_of(url: &str) -> Option<&str> {
    let host = url.strip_prefix("http://")?;
    let host = host.strip_suffix('/').unwrap_or(host);
    (!host.is_empty() && !host.contains('/')).then_some(host)
}

fn get(host: &str) -> std::io::Result<String> {
    let address = if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    // An answer to version 1.0 has no chunks.
    write!(stream, "GET /servers.json HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn the_address_of_a_relay_has_no_path() {
        assert_eq!(host_of("http://127.0.0.1:8080"), Some("127.0.0.1:8080"));
        assert_eq!(host_of("http://relay.example.org/"), Some("relay.example.org"));
        for other in ["https://a:1", "127.0.0.1:8080", "http://", "http://a/servers.json"] {
            assert_eq!(host_of(other), None, "{other}");
        }
    }
}
