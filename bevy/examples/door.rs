//! A server and a client of `cargo xtask bench doors` in Bevy: door rakwire|renet WINDOW SECONDS.
//!
//! Both run alternately in one thread without a pause, so each figure includes the frames of both. The client keeps
//! WINDOW messages of 64 bytes in flight. After a warm-up of half the time the program prints `connected` and waits for
//! a line. Then it measures for SECONDS, and prints the number of echoes and the elapsed seconds.

use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy_replicon::prelude::*;
use bevy_replicon_renet::netcode::{
    ClientAuthentication, NetcodeClientTransport, NetcodeServerTransport, ServerAuthentication, ServerConfig,
};
use bevy_replicon_renet::renet::ConnectionConfig;
use bevy_replicon_renet::{RenetChannelsExt, RenetClient, RenetServer, RepliconRenetPlugins};
use rakwire_bevy::{ClientSettings, RakwireClient, RakwireRepliconPlugins, RakwireServer, ServerSettings};
use serde::{Deserialize, Serialize};

/// Payload length of each message, in bytes.
const LENGTH: usize = 64;
/// Time limit for connecting.
const DEADLINE: Duration = Duration::from_secs(10);

/// A message from the client to the server.
#[derive(Deserialize, Message, Serialize)]
struct Ping(Vec<u8>);

/// A message from the server to the client.
#[derive(Deserialize, Message, Serialize)]
struct Pong(Vec<u8>);

/// The number of received messages.
#[derive(Default, Resource)]
struct Arrived(u64);

type Failure = Box<dyn Error>;

fn app<M>(backend: impl bevy::app::Plugins<M>, answers: bool) -> App {
    let mut app = App::new();
    let replicon = RepliconPlugins.set(ServerPlugin::new(PostUpdate));
    app.add_plugins((MinimalPlugins, StatesPlugin, replicon))
        .add_plugins(backend)
        .init_resource::<Arrived>()
        .add_client_message::<Ping>(Channel::Ordered)
        .add_server_message::<Pong>(Channel::Ordered)
        .add_systems(Update, count);
    if answers {
        app.add_systems(Update, answer);
    }
    app.finish();
    app.cleanup();
    app
}

fn count(mut pongs: MessageReader<Pong>, mut arrived: ResMut<Arrived>) {
    arrived.0 += pongs.read().count() as u64;
}

fn answer(mut pings: MessageReader<FromClient<Ping>>, mut pongs: MessageWriter<ToClients<Pong>>) {
    for ping in pings.read() {
        let targets = SendTargets::Single(ping.client_id);
        pongs.write(ToClients { targets, message: Pong(ping.message.0.clone()) });
    }
}

/// A server and a client.
struct Pair {
    server: App,
    client: App,
}

impl Pair {
    fn rakwire() -> Result<Self, Failure> {
        let (mut server, mut client) =
            (app(RakwireRepliconPlugins, true), app(RakwireRepliconPlugins, false));
        let listening = RakwireServer::bind("127.0.0.1:0", ServerSettings::new(8)?)?;
        client.insert_resource(RakwireClient::connect(listening.local_addr(), ClientSettings::new()?)?);
        server.insert_resource(listening);
        Ok(Self { server, client })
    }

    fn renet() -> Result<Self, Failure> {
        let (mut server, mut client) = (app(RepliconRenetPlugins, true), app(RepliconRenetPlugins, false));
        let config = |app: &App| {
            let channels = app.world().resource::<RepliconChannels>();
            ConnectionConfig {
                server_channels_config: channels.server_configs(),
                client_channels_config: channels.client_configs(),
                ..Default::default()
            }
        };
        let current_time = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let server_addr = socket.local_addr()?;
        let settings = ServerConfig {
            current_time,
            max_clients: 8,
            protocol_id: 0,
            authentication: ServerAuthentication::Unsecure,
            public_addresses: vec![server_addr],
        };
        let listening = RenetServer::new(config(&server));
        server.insert_resource(listening).insert_resource(NetcodeServerTransport::new(settings, socket)?);
        let authentication =
            ClientAuthentication::Unsecure { client_id: 1, protocol_id: 0, server_addr, user_data: None };
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let transport = NetcodeClientTransport::new(current_time, authentication, socket)?;
        let connecting = RenetClient::new(config(&client));
        client.insert_resource(connecting).insert_resource(transport);
        Ok(Self { server, client })
    }

    fn connected(mut self) -> Result<Self, Failure> {
        let begin = Instant::now();
        let mut clients = self.server.world_mut().query_filtered::<(), With<AuthorizedClient>>();
        while clients.iter(self.server.world()).count() == 0 {
            if begin.elapsed() > DEADLINE {
                return Err("the client did not connect within 10 s".into());
            }
            self.frame();
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(self)
    }

    fn frame(&mut self) {
        self.server.update();
        self.client.update();
    }

    fn arrived(&self) -> u64 {
        self.client.world().resource::<Arrived>().0
    }

    fn send(&mut self, count: u64) {
        for _ in 0..count {
            self.client.world_mut().write_message(Ping(vec![7; LENGTH]));
        }
    }

    /// Keeps messages in flight for a time, and then waits for the last echoes. Returns the number of echoes within the
    /// time.
    fn play(&mut self, window: u64, time: Duration) -> (u64, Duration) {
        let (begin, first) = (Instant::now(), self.arrived());
        let mut before = first;
        self.send(window);
        while begin.elapsed() < time {
            self.client.update();
            self.server.update();
            let arrived = self.arrived();
            self.send(arrived - before);
            before = arrived;
        }
        let result = (before - first, begin.elapsed());
        while self.arrived() < before + window {
            self.frame();
        }
        result
    }
}

fn wait_for_line() -> Result<(), Failure> {
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [backend, window, seconds] = &arguments[..] else {
        return Err("usage: door rakwire|renet WINDOW SECONDS".into());
    };
    let (window, time) = (window.parse()?, Duration::from_secs_f64(seconds.parse()?));
    let pair = match backend.as_str() {
        "rakwire" => Pair::rakwire()?,
        "renet" => Pair::renet()?,
        _ => return Err("the backend must be rakwire or renet".into()),
    };
    let mut pair = pair.connected()?;
    pair.play(window, time / 2);
    println!("connected");
    wait_for_line()?;
    let (echoes, elapsed) = pair.play(window, time);
    println!("{echoes} {}", elapsed.as_secs_f64());
    wait_for_line()
}
