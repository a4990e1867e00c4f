//! The program behind `cargo xtask bench`.

#![forbid(unsafe_code)]

mod blocked_senders;
mod chart;
mod clients;
mod core_only;
mod doors;
mod environment;
mod fairness;
mod fields;
#[allow(unreachable_pub, reason = "another program includes this file too")]
mod flood;
mod game;
mod game_load;
mod goals;
mod idle;
mod instructions;
mod many_connections;
mod npm;
mod pairing;
mod path;
mod peer;
mod plots;
mod plugin_paths;
mod process;
mod proxy;
mod publish;
mod relay;
mod report;
#[path = "../../interop/shared/bench.rs"]
#[allow(unreachable_pub, reason = "other programs include this file too")]
mod role;
mod secure;
mod server_handshakes;
mod session;
mod spin;
mod summary;
mod transports;
mod udp;
mod udp_baseline;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rakwire_bench::hot_path::HotPath;

use self::plugin_paths::PluginPath;

/// Measures rakwire against other RakNet implementations and plain UDP, and the core without sockets.
#[derive(Debug, Parser)]
#[command(name = "rakwire-bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Repeat a hot path of the core, for callgrind and perf
    HotPath {
        /// The hot path
        path: HotPath,
        /// The number of repetitions
        repetitions: u64,
    },
    /// Repeat messages between peers with and without plugins, for callgrind and perf
    PluginPath {
        /// The attached hook or plugin
        path: PluginPath,
        /// The number of repetitions
        repetitions: u64,
    },
    Instructions(instructions::Options),
    Run(session::Options),
    Show(session::Show),
    Publish(publish::Options),
    ManyConnections(many_connections::Arguments),
    BlockedSenders(blocked_senders::Arguments),
    GameLoad(game_load::Arguments),
    Game(game::Options),
    Relay(relay::Options),
    Npm(npm::Options),
    Secure(secure::Options),
    Transports(transports::Options),
    Fields(fields::Options),
    Doors(doors::Options),
    Door(doors::client::Arguments),
    /// The game server behind the relay, for transports
    TransportsGame,
    /// Echo every WebSocket message, as the baseline for the relay
    WebsocketEcho,
    /// Keep a core busy until the end of the input
    Spin,
    #[command(subcommand)]
    Clients(clients::Role),
    Peer(peer::Arguments),
    #[command(subcommand)]
    Udp(udp::Role),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::HotPath { path, repetitions } => {
            path.run(repetitions);
            Ok(())
        }
        Command::PluginPath { path, repetitions } => path.run(repetitions),
        Command::Instructions(options) => instructions::run(&options),
        Command::Run(options) => session::run(&options),
        Command::Publish(options) => publish::run(&options),
        Command::Show(options) => session::show(&options),
        Command::ManyConnections(arguments) => many_connections::run(&arguments),
        Command::BlockedSenders(arguments) => blocked_senders::run(&arguments),
        Command::GameLoad(arguments) => game_load::run(&arguments),
        Command::Game(options) => game::run(&options),
        Command::Relay(options) => relay::run(&options),
        Command::Npm(options) => npm::run(&options),
        Command::Secure(options) => secure::run(&options),
        Command::Transports(options) => transports::run(&options),
        Command::Fields(options) => fields::run(&options),
        Command::Doors(options) => doors::run(&options),
        Command::Door(arguments) => doors::client::run(&arguments),
        Command::TransportsGame => transports::game_server::run(),
        Command::WebsocketEcho => relay::websocket_echo::run(),
        Command::Spin => spin::run(),
        Command::Clients(role) => clients::run(&role),
        Command::Peer(arguments) => peer::run(&arguments),
        Command::Udp(role) => udp::run(&role),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rakwire-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
