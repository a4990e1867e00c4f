//! The command line.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use rakwire_relay::{AllowedOrigin, Config, Limits, TargetSpec, UDP_PAYLOAD_MAX};

/// Relays between browsers and game servers: one binary WebSocket message is one UDP datagram.
///
/// Browsers connect to ws://LISTEN/ws?target=NAME. They can reach the targets given here and nothing else.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    /// Address and port to listen on; port 0 picks a free one.
    ///
    /// The first line on stdout has the address. An address that other machines can reach requires --allow-origin.
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    listen: SocketAddr,

    /// A game server and its name for browsers. Can be repeated.
    ///
    /// The host is resolved once, at startup.
    #[arg(long = "target", value_name = "NAME=HOST:PORT")]
    targets: Vec<TargetSpec>,

    /// Serve the static files of this directory at /. It must have an index.html.
    #[arg(long, value_name = "DIR")]
    serve: Option<PathBuf>,

    /// Accept WebSockets only from pages of this origin, such as https://play.example.org; '*' accepts any. Can be
    /// repeated.
    ///
    /// Without it a relay on a loopback address accepts pages of this machine, and clients that are not browsers.
    #[arg(long = "allow-origin", value_name = "ORIGIN", num_args = 1..)]
    allow_origins: Vec<AllowedOrigin>,

    /// The maximum number of connected clients.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_clients: u32,

    /// The longest datagram that a client may send, in bytes.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1472,
        value_parser = clap::value_parser!(u32).range(1..=UDP_PAYLOAD_MAX as i64)
    )]
    max_datagram: u32,

    /// The length of the queue in each direction of a client; a full queue drops its oldest datagram.
    #[arg(long, value_name = "N", default_value = "256", value_parser = queue_length)]
    queue: NonZeroUsize,

    /// Close a session after this time without a datagram in either direction.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..=86_400)
    )]
    idle_timeout: u32,
}

impl Args {
    /// The configuration of these arguments.
    pub(crate) fn into_config(self) -> Config {
        let mut limits = Limits::default();
        limits.max_clients = self.max_clients as usize;
        limits.max_datagram = self.max_datagram as usize;
        limits.queue = self.queue;
        limits.idle_timeout = Duration::from_secs(self.idle_timeout.into());
        let mut config = Config::new(self.listen);
        config.targets = self.targets;
        config.serve = self.serve;
        config.allow_origins = self.allow_origins;
        config.limits = limits;
        config
    }
}

fn listen_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "write it as ADDRESS:PORT, as in 127.0.0.1:8080 or [::1]:8080")
}

fn queue_length(text: &str) -> Result<NonZeroUsize, &'static str> {
    const MAX: usize = 65_536;
    let length = text.parse().ok().filter(|length: &NonZeroUsize| length.get() <= MAX);
    length.ok_or("write a number from 1 to 65536")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn options_reach_the_configuration() {
        let line = "rakwire-relay --listen 127.0.0.1:0 --target a=127.0.0.1:1 --target b=127.0.0.1:2 --serve web \
                    --allow-origin https://a.example https://b.example --allow-origin * --max-clients 3 \
                    --max-datagram 1200 --queue 5 --idle-timeout 7";
        let config = Args::try_parse_from(line.split_whitespace()).unwrap().into_config();
        assert_eq!(config.targets.len(), 2);
        assert_eq!(config.serve, Some("web".into()));
        assert_eq!(config.allow_origins.len(), 3);
        assert_eq!(config.limits.max_clients, 3);
        assert_eq!(config.limits.max_datagram, 1200);
        assert_eq!(config.limits.queue.get(), 5);
        assert_eq!(config.limits.idle_timeout, Duration::from_secs(7));
    }

    #[test]
    fn the_command_line_has_the_defaults_of_the_library() {
        let line = ["rakwire-relay", "--listen", "127.0.0.1:0", "--target", "a=127.0.0.1:1"];
        assert_eq!(Args::try_parse_from(line).unwrap().into_config().limits, Limits::default());
    }
}
