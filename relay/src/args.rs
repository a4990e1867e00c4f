//! The command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand, ValueEnum};
use ipnet::IpNet;
use rakwire_relay::config::{
    LoadError, Loaded, OPTIONS, OptionInfo, OptionKind, Override, Source, parse_duration,
    parse_socket_address,
};
use rakwire_relay::protocol::ProtocolKind;
use rakwire_relay::{HostPort, Origin, TargetName};

/// Relays between browsers and game servers: one binary WebSocket message is one UDP datagram.
///
/// Browsers connect to ws://LISTEN/ws?target=NAME. They can reach the targets given here and nothing else.
///
/// Options can also be set in a file or as environment variables. The command line takes precedence over the
/// environment, and the environment over the file.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Task>,
    #[command(flatten)]
    run: ConfigArgs,
}

impl Cli {
    /// Returns the requested task; without a command the relay runs.
    pub(crate) fn into_task(self) -> Task {
        self.command.unwrap_or(Task::Run(self.run))
    }
}

/// The commands of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Run the relay. This is the default without a command.
    Run(ConfigArgs),
    /// Check a configuration without running it.
    Check(ConfigArgs),
    /// Print the configuration in the syntax of the file.
    Config(ExplainArgs),
    /// Make a running relay reload its configuration.
    Reload(ReloadArgs),
    /// Print the list of servers of a running relay.
    List(ListArgs),
    /// List the clients of a running relay.
    Clients(ClientsArgs),
    /// End flows of a running relay.
    Kick(KickArgs),
    /// Ban an address or network from a running relay, and end its flows.
    Ban(BanArgs),
    /// Lift a ban imposed with `ban`.
    Unban(UnbanArgs),
    /// List the bans imposed with `ban`.
    Bans(BansArgs),
    /// Announce a game server to relays until this command ends.
    Announce(AnnounceArgs),
    /// Generate a key for tokens.
    Keygen(KeygenArgs),
    /// Create a token.
    Token(TokenArgs),
    /// Print shell completions.
    Completions(CompletionsArgs),
    /// Print the manual page.
    Man,
}

/// The layers of a configuration above its defaults.
#[derive(Debug, Clone)]
pub(crate) struct ConfigArgs {
    file: Option<PathBuf>,
    overrides: Vec<Override>,
}

impl ConfigArgs {
    /// Reads the file and applies the environment and the command line on top of it.
    pub(crate) fn load(&self) -> Result<Loaded, LoadError> {
        Loaded::load(self.file.as_deref(), &self.overrides)
    }

    /// Like `load`, without checking the configuration as a whole.
    pub(crate) fn read(&self) -> Result<Loaded, LoadError> {
        Loaded::read(self.file.as_deref(), &self.overrides)
    }
}

const CONFIG: &str = "config";

impl Args for ConfigArgs {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new(CONFIG)
            .long(CONFIG)
            .env("RAKWIRE_RELAY_CONFIG")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Configuration file in TOML");
        let options = OPTIONS.iter().filter(|option| !option.flag.is_empty());
        command.arg(file).args(options.map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ConfigArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // The command line takes precedence over the environment.
        let mut overrides: Vec<Override> =
            OPTIONS.iter().filter_map(|option| given(option, matches)).collect();
        overrides.sort_by_key(|given| matches!(given.source, Source::Flag(_)));
        Ok(Self { file: matches.get_one(CONFIG).cloned(), overrides })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The argument of an option.
fn argument(option: &'static OptionInfo) -> Arg {
    let mut help = option.help.to_owned();
    if matches!(option.kind, OptionKind::Number { .. } | OptionKind::Time { .. } | OptionKind::Choice(_)) {
        help.push_str(&format!(" [{}; default: {}]", option.values(), option.default_value()));
    }
    let argument = Arg::new(option.flag).long(option.flag).help(help).hide_env_values(true);
    let argument = match option.variable() {
        Some(variable) => argument.env(variable),
        None => argument,
    };
    let argument = argument.value_name(option.value_name());
    if option.kind == OptionKind::Switch {
        return argument.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    if matches!(option.kind, OptionKind::Texts(_)) {
        return argument.num_args(1..).action(ArgAction::Append);
    }
    if option.kind == OptionKind::Targets { argument.action(ArgAction::Append) } else { argument }
}

/// Returns the value of an option from the environment or the command line, if any.
fn given(option: &'static OptionInfo, matches: &ArgMatches) -> Option<Override> {
    let variable = option.variable()?;
    let values: Vec<String> = matches.get_many(option.flag)?.cloned().collect();
    let given_by = matches.value_source(option.flag)?;
    if given_by == ValueSource::CommandLine {
        return Some(Override { option, source: Source::Flag(format!("--{}", option.flag)), values });
    }
    let values = values_of_variable(option, values);
    let is_given = given_by == ValueSource::EnvVariable && !values.is_empty();
    is_given.then_some(Override { option, source: Source::Variable(variable), values })
}

/// Splits the value of a variable at semicolons. An empty variable counts as unset.
fn values_of_variable(option: &OptionInfo, values: Vec<String>) -> Vec<String> {
    let is_list = matches!(option.kind, OptionKind::Texts(_) | OptionKind::Targets);
    let split = |value: String| -> Vec<String> {
        if is_list { value.split(';').map(|part| part.trim().to_owned()).collect() } else { vec![value] }
    };
    values.into_iter().flat_map(split).filter(|value| !value.is_empty()).collect()
}

/// Prints a configuration.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Add the documentation, default and unit of each option, and the source of its value.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print the table of all options in Markdown.
    #[arg(long, conflicts_with = "explain")]
    pub(crate) reference: bool,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// Makes a running relay reload its configuration.
///
/// The command uses the relay's admin address, whose response lists the changes, or otherwise its process id file. If
/// neither is given, both are read from the configuration file.
#[derive(Debug, Args)]
pub(crate) struct ReloadArgs {
    /// File with the configuration of the relay.
    #[arg(long, value_name = "FILE", env = "RAKWIRE_RELAY_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Admin address of the relay.
    #[arg(long, value_name = "ADDR", env = "RAKWIRE_RELAY_ADMIN_LISTEN", value_parser = parse_socket_address)]
    pub(crate) admin_listen: Option<SocketAddr>,
    /// File containing the process id of the relay.
    #[arg(long, value_name = "FILE", env = "RAKWIRE_RELAY_PID_FILE")]
    pub(crate) pid_file: Option<PathBuf>,
}

/// Prints the list of servers of a running relay, as served at `GET /servers.json`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Address of the relay, as http://HOST:PORT or https://HOST.
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) relay: String,
    /// Print the raw JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The admin socket of the relay, or the configuration that names it.
#[derive(Debug, Args)]
pub(crate) struct SocketArgs {
    /// Admin socket of the relay.
    #[arg(long, value_name = "FILE", env = "RAKWIRE_RELAY_ADMIN_SOCKET")]
    pub(crate) admin_socket: Option<PathBuf>,
    /// Configuration file of the relay, which names the admin socket.
    #[arg(long, value_name = "FILE", env = "RAKWIRE_RELAY_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// Lists the clients of a running relay that have a flow.
#[derive(Debug, Args)]
pub(crate) struct ClientsArgs {
    /// List only the clients of an address or network.
    #[arg(value_name = "NETWORK", value_parser = network)]
    pub(crate) network: Option<IpNet>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

/// Ends one flow of a running relay, or all flows of an address or network. The clients may connect again.
#[derive(Debug, Args)]
pub(crate) struct KickArgs {
    /// Number of the flow, as shown by `clients` and in the log, or an address or network.
    #[arg(value_name = "FLOW|NETWORK", value_parser = kicked)]
    pub(crate) selected: Kicked,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

/// Selects the flows to end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kicked {
    Flow(u64),
    Network(IpNet),
}

/// Bans an address or network and ends its flows. Without `--for`, the ban lasts until the relay stops.
#[derive(Debug, Args)]
pub(crate) struct BanArgs {
    /// The address or network.
    #[arg(value_name = "NETWORK", value_parser = network)]
    pub(crate) network: IpNet,
    /// Duration of the ban; by default until the relay stops.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

/// Lifts a ban imposed with `ban`.
#[derive(Debug, Args)]
pub(crate) struct UnbanArgs {
    /// The address or network, as `bans` lists it.
    #[arg(value_name = "NETWORK", value_parser = network)]
    pub(crate) network: IpNet,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

/// Lists the bans of a running relay that were imposed with `ban`.
#[derive(Debug, Args)]
pub(crate) struct BansArgs {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
}

/// Announces a game server to relays that run with --discover, until this command ends.
#[derive(Debug, Args)]
pub(crate) struct AnnounceArgs {
    /// Redis or Valkey, as redis://HOST:PORT/, rediss://HOST:PORT/ (TLS) or unix:///PATH.
    #[arg(long, value_name = "URL", env = "RAKWIRE_RELAY_DISCOVER")]
    pub(crate) redis: String,
    /// PEM file with the certificate authority, for rediss://; by default the system's trust store.
    #[arg(long, value_name = "FILE", env = "RAKWIRE_RELAY_DISCOVER_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// Name by which clients request the server.
    #[arg(long)]
    pub(crate) name: TargetName,
    /// Address of the server, as reachable from the relays.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) address: HostPort,
    /// The protocol of the server: raknet, game-protocol or raw.
    #[arg(long, default_value_t)]
    pub(crate) kind: ProtocolKind,
    /// Time after which relays remove the server if this command stops without withdrawing it.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_duration)]
    pub(crate) lifetime: Duration,
}

/// The algorithm of a key.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Algorithm {
    /// A key pair: the relay has the public half, and cannot create tokens.
    Ed25519,
    /// A secret that the issuer and the relay share.
    HmacSha256,
}

/// Generates a key.
#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// The algorithm.
    #[arg(long, value_enum, default_value_t = Algorithm::Ed25519)]
    pub(crate) algorithm: Algorithm,
    /// Output file for the key, which must not exist. For Ed25519 the public key, which the relay needs, is written to
    /// FILE.pub.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

/// Creates a token.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// File with the key, as generated by `keygen`.
    #[arg(long, value_name = "FILE", env = "RAKWIRE_RELAY_SIGNING_KEY")]
    pub(crate) key: PathBuf,
    /// Target for which the token is valid.
    #[arg(long, value_name = "NAME")]
    pub(crate) target: String,
    /// The only address or network that may use the token.
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    pub(crate) address: Option<IpNet>,
    /// The only page origin that may use the token, such as https://play.example.org. Data channels require it if
    /// --allow-origin is a list.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Option<Origin>,
    /// Validity period of the token.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    pub(crate) expires: Duration,
    /// Id of the token; random by default.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

/// Prints completions.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

fn kicked(text: &str) -> Result<Kicked, &'static str> {
    let error = "write the number of a flow, or an address or network such as 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32";
    text.parse().map(Kicked::Flow).or_else(|_| network(text).map(Kicked::Network)).map_err(|_| error)
}

fn network(text: &str) -> Result<IpNet, &'static str> {
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    network.map_err(|_| "write it as 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use rakwire_relay::Config;

    use super::*;

    fn config(line: &str) -> Config {
        let Task::Run(args) = Cli::try_parse_from(line.split_whitespace()).unwrap().into_task() else {
            panic!("another command: {line}");
        };
        args.read().unwrap().config
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_reach_the_configuration() {
        for command in ["rakwire-relay", "rakwire-relay run"] {
            let config = config(&format!(
                "{command} --listen 127.0.0.1:0 --target a=127.0.0.1:1 --target b=127.0.0.1:2 --serve web \
                 --allow-origin https://a.example https://b.example --allow-origin * --max-clients 3 \
                 --max-datagram 1200 --queue 5 --idle-timeout 7 --allow-any-origin --log-hash-addresses=false"
            ));
            assert_eq!(config.targets.len(), 2);
            assert_eq!(config.serve, Some("web".into()));
            assert_eq!(config.admission.allow_origins.len(), 3);
            assert_eq!(config.limits.max_clients, 3);
            assert_eq!(config.limits.max_datagram, 1200);
            assert_eq!(config.limits.queue.get(), 5);
            assert_eq!(config.limits.idle_timeout, Duration::from_secs(7));
            assert!(config.admission.allow_any_origin && !config.log.hash_addresses);
        }
    }

    #[test]
    fn the_command_line_has_the_defaults_of_the_library() {
        let config = config("rakwire-relay --listen 127.0.0.1:0 --target a=127.0.0.1:1");
        let target = "a=127.0.0.1:1".parse().unwrap();
        assert_eq!(config, Config::new("127.0.0.1:0".parse().unwrap()).with_target(target));
    }
}
