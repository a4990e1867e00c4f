//! Measures round trips and messages per second over loopback, and compares them with replicon's renet backend.
//!
//! ```sh
//! cargo bench              # 5 rounds of 2 seconds for each figure
//! cargo bench -- 9 3       # 9 rounds of 3 seconds
//! ```
//!
//! A server and a client run alternately in one thread without a pause, so each figure includes the frames of both.
//! Rounds of rakwire and renet alternate. Each pair of rounds has a ratio, and the median of these ratios is reported:
//! load from other programs affects it less than it affects the absolute figures.

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
const LENGTH: usize = 100;
/// Messages that the server sends per frame.
const A_FRAME: usize = 200;
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

    /// Returns the number of round trips per second, with one ping in flight at a time.
    fn round_trips(&mut self, time: Duration) -> f64 {
        let (begin, first) = (Instant::now(), self.arrived());
        let mut before = first;
        self.client.world_mut().write_message(Ping(vec![7; LENGTH]));
        while begin.elapsed() < time {
            self.client.update();
            self.server.update();
            if self.arrived() > before {
                before = self.arrived();
                self.client.world_mut().write_message(Ping(vec![7; LENGTH]));
            }
        }
        (self.arrived() - first) as f64 / begin.elapsed().as_secs_f64()
    }

    /// Returns the number of messages per second from the server to the client.
    fn messages(&mut self, time: Duration) -> f64 {
        let (begin, first) = (Instant::now(), self.arrived());
        while begin.elapsed() < time {
            for _ in 0..A_FRAME {
                let message = Pong(vec![7; LENGTH]);
                let targets = SendTargets::CLIENTS_ONLY;
                self.server.world_mut().write_message(ToClients { targets, message });
            }
            self.frame();
        }
        (self.arrived() - first) as f64 / begin.elapsed().as_secs_f64()
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

fn main() -> Result<(), Failure> {
    // Cargo passes `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let time = Duration::from_secs(arguments.next().map_or(Ok(2), |text| text.parse())?);
    type Measure = fn(&mut Pair, Duration) -> f64;
    let kinds: [(&str, Measure); 2] = [("round trips", Pair::round_trips), ("messages", Pair::messages)];
    println!(
        "a second, medians of {rounds} rounds of {time:?}; messages of {LENGTH} bytes, reliable and ordered"
    );
    for (name, measure) in kinds {
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (our, their) = (
                measure(&mut Pair::rakwire()?.connected()?, time),
                measure(&mut Pair::renet()?.connected()?, time),
            );
            if our == 0.0 || their == 0.0 {
                return Err("no message arrived in a round".into());
            }
            ours.push(our);
            theirs.push(their);
            ratios.push(our / their);
        }
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        println!(
            "{name}: rakwire {:.0}, renet {:.0}; ratio {:.2}, {least:.2} to {most:.2}",
            median(ours),
            median(theirs),
            median(ratios)
        );
    }
    Ok(())
}
