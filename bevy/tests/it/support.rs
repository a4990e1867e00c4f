//! Runs a server and clients as headless apps over loopback.

use std::time::{Duration, Instant};

use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy_replicon::prelude::*;
use rakwire_bevy::{
    ClientSettings, DisconnectCause, RakwireClient, RakwireRepliconPlugins, RakwireServer, ServerSettings,
    Status,
};
use serde::{Deserialize, Serialize};

pub(crate) const LOCAL: &str = "127.0.0.1:0";

/// The time limit of each wait in a test.
const DEADLINE: Duration = Duration::from_secs(120);

/// A component that is replicated.
#[derive(Clone, Component, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Data(pub(crate) Vec<u8>);

/// A message from the server to its clients.
#[derive(Clone, Debug, Deserialize, Message, Serialize)]
pub(crate) struct Note(pub(crate) u32);

/// A message from a client to the server.
#[derive(Clone, Debug, Deserialize, Message, Serialize)]
pub(crate) struct Input(pub(crate) u32);

/// A remote event for both directions.
#[derive(Clone, Debug, Deserialize, Event, Serialize)]
pub(crate) struct Bell(pub(crate) u32);

/// The received bell events.
#[derive(Debug, Default, Resource)]
pub(crate) struct Heard(pub(crate) Vec<u32>);

/// The received notes, which Bevy would drop after two frames.
#[derive(Debug, Default, Resource)]
pub(crate) struct Notes(pub(crate) Vec<u32>);

/// The inputs that the server received.
#[derive(Debug, Default, Resource)]
pub(crate) struct Inputs(pub(crate) Vec<u32>);

/// Creates an app that registers everything that the tests send.
pub(crate) fn app() -> App {
    let mut app = App::new();
    app.add_plugins((
        MinimalPlugins,
        StatesPlugin,
        RepliconPlugins.set(ServerPlugin::new(PostUpdate)),
        RakwireRepliconPlugins,
    ))
    .init_resource::<Heard>()
    .init_resource::<Notes>()
    .init_resource::<Inputs>()
    .replicate::<Data>()
    .add_server_message::<Note>(Channel::Ordered)
    .add_client_message::<Input>(Channel::Ordered)
    .add_server_event::<Bell>(Channel::Unordered)
    .add_client_event::<Bell>(Channel::Unordered)
    .add_observer(|bell: On<Bell>, mut heard: ResMut<Heard>| heard.0.push(bell.0))
    .add_observer(|bell: On<FromClient<Bell>>, mut heard: ResMut<Heard>| heard.0.push(bell.message.0))
    .add_systems(Update, (keep_notes, keep_inputs))
    .finish();
    app
}

fn keep_notes(mut notes: MessageReader<Note>, mut kept: ResMut<Notes>) {
    kept.0.extend(notes.read().map(|note| note.0));
}

fn keep_inputs(mut inputs: MessageReader<FromClient<Input>>, mut kept: ResMut<Inputs>) {
    kept.0.extend(inputs.read().map(|input| input.message.0));
}

/// A server and its clients.
pub(crate) struct Game {
    pub(crate) server: App,
    pub(crate) clients: Vec<App>,
}

impl Game {
    /// Creates a server with these settings and no clients.
    pub(crate) fn with(settings: ServerSettings) -> Self {
        let mut server = app();
        server.insert_resource(RakwireServer::bind(LOCAL, settings).expect("a free port"));
        Self { server, clients: Vec::new() }
    }

    /// Creates a server with this many clients, all of them connected.
    pub(crate) fn new(clients: usize) -> Self {
        let mut game = Self::with(ServerSettings::new(8).expect("entropy"));
        for _ in 0..clients {
            game.join(ClientSettings::new().expect("entropy"));
        }
        game.until("all clients are connected", |game| game.all_connected());
        game
    }

    /// Adds a client that starts connecting.
    pub(crate) fn join(&mut self, settings: ClientSettings) {
        let mut client = app();
        client.insert_resource(self.connect(settings));
        self.clients.push(client);
    }

    /// Returns a client resource that starts connecting to the server.
    pub(crate) fn connect(&self, settings: ClientSettings) -> RakwireClient {
        let to = self.server.world().resource::<RakwireServer>().local_addr();
        RakwireClient::connect(to, settings).expect("an address")
    }

    /// Runs frames of all apps until `condition` holds. Panics after [`DEADLINE`].
    pub(crate) fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        let begin = Instant::now();
        while !condition(self) {
            assert!(begin.elapsed() < DEADLINE, "timed out before {what}");
            self.server.update();
            self.clients.iter_mut().for_each(App::update);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs frames of all apps for `time`.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let begin = Instant::now();
        self.until("time passes", |_| begin.elapsed() >= time);
    }

    /// Returns true if all clients are connected, both in their own view and in the server's.
    pub(crate) fn all_connected(&mut self) -> bool {
        let count = self.clients.len();
        self.clients.iter().all(|client| state(client) == ClientState::Connected)
            && self.connected().len() == count
    }

    /// Returns the entities of the clients that are connected and authorized.
    pub(crate) fn connected(&mut self) -> Vec<Entity> {
        let world = self.server.world_mut();
        let mut clients = world.query_filtered::<Entity, (With<ConnectedClient>, With<AuthorizedClient>)>();
        clients.iter(world).collect()
    }

    /// Returns the replicated data of a client, sorted.
    pub(crate) fn seen(&mut self, client: usize) -> Vec<Vec<u8>> {
        let world = self.clients[client].world_mut();
        let mut data = world.query_filtered::<&Data, With<Remote>>();
        let mut all: Vec<_> = data.iter(world).map(|data| data.0.clone()).collect();
        all.sort();
        all
    }

    /// Sends a note to all clients.
    pub(crate) fn tell_all(&mut self, note: u32) {
        let message = ToClients { targets: SendTargets::CLIENTS_ONLY, message: Note(note) };
        self.server.world_mut().write_message(message);
    }

    /// Returns the reason why a client is disconnected, or `None` if it is connecting or connected.
    pub(crate) fn cause(&self, client: usize) -> Option<DisconnectCause> {
        match self.clients[client].world().resource::<RakwireClient>().status() {
            Status::Disconnected(cause) => Some(cause),
            Status::Connecting | Status::Connected => None,
        }
    }

    /// Returns the inputs that the server received.
    pub(crate) fn inputs(&self) -> &[u32] {
        &self.server.world().resource::<Inputs>().0
    }

    /// Returns the notes that a client received.
    pub(crate) fn notes(&self, client: usize) -> &[u32] {
        &self.clients[client].world().resource::<Notes>().0
    }
}

/// Returns replicon's state of a client.
pub(crate) fn state(client: &App) -> ClientState {
    *client.world().resource::<State<ClientState>>().get()
}
