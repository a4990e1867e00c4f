//! Tests replication, messages, events, and invalid messages over a connection.

use std::time::{Duration, Instant};

use bevy::prelude::*;
use bevy_replicon::prelude::*;
use bevy_replicon::shared::backend::channels::ServerChannel;
use rakwire_bevy::rakwire_native::raknet::ConnectionId;
use rakwire_bevy::rakwire_native::rakwire::endpoint::Event as EndpointEvent;
use rakwire_bevy::rakwire_native::{Delivery, Options, RakNet, Reliability, polled};
use rakwire_bevy::{
    ChannelId, ClientSettings, DisconnectCause, RakwireClient, RakwireServer, ServerSettings,
};

use crate::support::{Bell, Data, Game, Heard, Input, LOCAL, state};

#[test]
fn entities_are_replicated_changed_and_despawned() {
    let mut game = Game::new(2);
    let world = game.server.world_mut();
    let [first, second] = [1, 2].map(|number| world.spawn((Replicated, Data(vec![number]))).id());
    game.until("both clients see both entities", |game| (0..2).all(|client| game.seen(client) == [[1], [2]]));
    game.server.world_mut().get_mut::<Data>(first).expect("the entity exists").0 = vec![3];
    game.until("both clients see the change", |game| (0..2).all(|client| game.seen(client) == [[2], [3]]));
    game.server.world_mut().despawn(second);
    game.until("both clients see the despawn", |game| (0..2).all(|client| game.seen(client) == [[3]]));
    game.join(ClientSettings::new().expect("entropy"));
    game.until("a client that joins later sees the remaining entity", |game| game.seen(2) == [[3]]);
}

#[test]
fn messages_and_events_arrive_in_both_directions() {
    let mut game = Game::new(2);
    game.tell_all(1);
    game.server
        .world_mut()
        .commands()
        .server_trigger(ToClients { targets: SendTargets::CLIENTS_ONLY, message: Bell(2) });
    let heard = |app: &App| app.world().resource::<Heard>().0.clone();
    game.until("both clients have received the note and the event", |game| {
        (0..2).all(|client| game.notes(client) == [1] && heard(&game.clients[client]) == [2])
    });
    for (number, client) in game.clients.iter_mut().enumerate() {
        client.world_mut().write_message(Input(10 + number as u32));
        client.world_mut().commands().client_trigger(Bell(20 + number as u32));
    }
    let sorted = |mut numbers: Vec<u32>| {
        numbers.sort_unstable();
        numbers
    };
    game.until("the server has received both inputs and both events", |game| {
        sorted(game.inputs().to_vec()) == [10, 11] && sorted(heard(&game.server)) == [20, 21]
    });
}

#[test]
fn a_message_to_one_client_reaches_only_that_client() {
    let mut game = Game::new(2);
    let client = game.connected()[0];
    let targets = SendTargets::Single(ClientId::Client(client));
    game.server.world_mut().write_message(ToClients { targets, message: crate::support::Note(6) });
    game.until("one client has received the note", |game| (0..2).any(|client| game.notes(client) == [6]));
    game.run_for(Duration::from_millis(50));
    let count: usize = (0..2).map(|client| game.notes(client).len()).sum();
    assert_eq!(count, 1);
}

#[test]
fn a_large_component_is_replicated_without_flooding_the_connection() {
    let mut game = Game::new(2);
    let large: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
    game.server.world_mut().spawn((Replicated, Data(large.clone())));
    game.until("both clients see the component", |game| {
        (0..2).all(|client| game.seen(client) == [&large[..]])
    });
    let world = game.server.world_mut();
    let mut all = world.query::<&mut Data>();
    all.single_mut(world).expect("one entity").0[100_000] = 255;
    let mut changed = large;
    changed[100_000] = 255;
    game.until("both clients see the change", |game| {
        (0..2).all(|client| game.seen(client) == [&changed[..]])
    });
    // Replicon resends the change in each frame until it is acknowledged. The upper limit permits a few copies.
    let mut server = game.server.world_mut().resource_mut::<RakwireServer>();
    let peer = server.endpoint_mut().peer();
    for id in peer.connections() {
        let pushed = peer.connection_stats(id).expect("an open connection").bytes_pushed.total;
        assert!((400_000..1_000_000).contains(&pushed), "{pushed}");
    }
}

#[test]
fn ordered_messages_arrive_in_order_over_a_lossy_network() {
    const COUNT: u32 = 300;
    let network = "loss=5%,latency=10ms,jitter=5ms,reorder=2%,duplicate=1%,seed=3";
    let mut settings = ServerSettings::new(8).expect("entropy");
    settings.options.simulate = Some(network.parse().expect("a simulation"));
    let mut game = Game::with(settings);
    game.join(ClientSettings::new().expect("entropy"));
    game.join(ClientSettings::new().expect("entropy"));
    game.until("both clients are connected", Game::all_connected);
    let entity = game.server.world_mut().spawn((Replicated, Data(vec![0]))).id();
    for number in 0..COUNT {
        game.tell_all(number);
        game.clients[0].world_mut().write_message(Input(number));
        game.server.world_mut().get_mut::<Data>(entity).expect("the entity exists").0 =
            number.to_be_bytes().to_vec();
        game.run_for(Duration::from_millis(2));
    }
    let all: Vec<u32> = (0..COUNT).collect();
    let last = (COUNT - 1).to_be_bytes();
    game.until("all inputs, notes and mutations have arrived", |game| {
        game.inputs().len() == all.len()
            && (0..2).all(|client| game.notes(client).len() == all.len() && game.seen(client) == [last])
    });
    assert_eq!((game.inputs(), game.notes(0), game.notes(1)), (&all[..], &all[..], &all[..]));
    let world = game.server.world_mut();
    let lost: u64 = {
        let mut server = world.remove_resource::<RakwireServer>().expect("the server resource");
        let endpoint = server.endpoint_mut().peer();
        let stats = endpoint.connections().filter_map(|id| endpoint.connection_stats(id));
        stats.map(|stats| stats.datagrams_lost).sum()
    };
    assert!(lost > 0, "the simulated network must lose datagrams");
}

#[test]
fn statistics_are_reported_to_replicon() {
    let mut settings = ServerSettings::new(8).expect("entropy");
    settings.options.simulate = Some("latency=20ms".parse().expect("a simulation"));
    let mut game = Game::with(settings);
    game.join(ClientSettings::new().expect("entropy"));
    game.until("the client is connected", Game::all_connected);
    let begin = Instant::now();
    game.until("client and server have measured the connection", |game| {
        assert!(begin.elapsed() < Duration::from_secs(20));
        game.tell_all(1);
        let here = *game.clients[0].world().resource::<ClientStats>();
        let client = game.connected()[0];
        let there = game.server.world().get::<ConnectedClientStats>(client).expect("a required component").0;
        [here, there]
            .iter()
            .all(|stats| stats.rtt >= 0.04 && stats.sent_bps > 0.0 && stats.received_bps > 0.0)
    });
    let here = game.clients[0].world().resource::<ClientStats>();
    assert!(here.rtt < 10.0 && (0.0..=100.0).contains(&here.packet_loss), "{here:?}");
}

/// Connects a client without replicon to the server of a game.
fn raw_client(game: &mut Game) -> (polled::Endpoint<RakNet>, ConnectionId) {
    let to = game.server.world().resource::<RakwireServer>().local_addr();
    let mut raw =
        polled::Endpoint::<RakNet>::bind(LOCAL, Options::client().expect("entropy")).expect("a free port");
    let id = raw.connect(to).expect("a free slot");
    let mut is_open = false;
    let world = game.server.world_mut();
    let mut clients = world.query::<&ConnectedClient>();
    let count = clients.iter(world).count();
    game.until("the connection is open", |game| {
        raw.update();
        while let Some(event) = raw.poll_event() {
            is_open |= matches!(event, EndpointEvent::Connected { .. });
        }
        is_open && clients.iter(game.server.world()).count() > count
    });
    (raw, id)
}

#[test]
fn messages_with_unknown_channels_are_counted_and_dropped() {
    let mut game = Game::new(1);
    let (mut raw, id) = raw_client(&mut game);
    let unknown = [&[0x1C][..], &[0x85, 1, 2], &[0xFE, 1], &[0xFF], &[0xFF, 0], &[0xFF, 0xFF, 0xFF, 1]];
    for message in unknown {
        raw.send(id, message, Delivery::RELIABLE_ORDERED).expect("an open connection");
    }
    for channel in 0..4 {
        for payload in [&[][..], &[0xFF; 40], &[0x80; 9], &[1, 2, 3]] {
            let message = [ChannelId::new(channel).expect("a channel").prefix(), payload].concat();
            raw.send(id, &message, Delivery::RELIABLE_ORDERED).expect("an open connection");
        }
    }
    game.until("the server has dropped the unknown messages", |game| {
        raw.update();
        game.server.world().resource::<RakwireServer>().dropped().unknown_channel >= unknown.len() as u64
    });
    game.tell_all(5);
    game.until("the other client still receives notes", |game| {
        raw.update();
        game.notes(0) == [5]
    });
    assert_eq!(state(&game.clients[0]), ClientState::Connected);
}

#[test]
fn a_mutation_of_max_size_is_sent_unsplit() {
    let mut game = Game::with(ServerSettings::new(8).expect("entropy"));
    let (mut raw, _) = raw_client(&mut game);
    let world = game.server.world_mut();
    let mut clients = world.query::<(Entity, &ConnectedClient)>();
    let (client, connected) = clients.single(world).expect("one client");
    let max_size = connected.max_size;
    assert!(max_size > 1_300, "{max_size}");
    let mut received = Vec::new();
    for size in [max_size, max_size + 200] {
        let mut messages = game.server.world_mut().resource_mut::<ServerMessages>();
        messages.send(client, ServerChannel::Mutations, vec![7; size]);
        game.until("the message has arrived", |_| {
            raw.update();
            let count = received.len();
            while let Some(event) = raw.poll_event() {
                if let EndpointEvent::Message { delivery, message, .. } = event
                    && message.len() == size + 1
                {
                    received.push(delivery.reliability);
                }
            }
            received.len() > count
        });
    }
    // RakNet makes the parts of a longer message reliable.
    assert_eq!(received, [Reliability::Unreliable, Reliability::Reliable]);
}

/// Creates settings for one connection with little send memory.
fn narrow(backlog: usize) -> ServerSettings {
    let mut settings = ServerSettings::new(1).expect("entropy");
    settings.options.capacity.connections = 1;
    settings.options.capacity.blocks = 128;
    settings.backlog = backlog;
    settings
}

#[test]
fn reliable_messages_are_queued_while_the_send_memory_is_full() {
    const COUNT: u32 = 5_000;
    let mut game = Game::with(narrow(1 << 20));
    game.join(ClientSettings::new().expect("entropy"));
    game.until("the client is connected", Game::all_connected);
    (0..COUNT).for_each(|number| game.tell_all(number));
    game.until("all notes have arrived", |game| game.notes(0).len() == COUNT as usize);
    assert!(game.notes(0).is_sorted());
}

#[test]
fn queued_messages_arrive_before_the_disconnect() {
    const COUNT: u32 = 2_000;
    let mut game = Game::with(narrow(1 << 20));
    game.join(ClientSettings::new().expect("entropy"));
    game.until("the client is connected", Game::all_connected);
    (0..COUNT).for_each(|number| game.tell_all(number));
    let client = game.connected()[0];
    game.server.world_mut().write_message(DisconnectRequest { client });
    game.server.update();
    assert!(game.connected().is_empty());
    game.until("the client is disconnected", |game| game.cause(0).is_some());
    assert_eq!(game.notes(0).len(), COUNT as usize);
}

#[test]
fn a_client_whose_backlog_overflows_is_disconnected() {
    let mut game = Game::with(narrow(64));
    game.join(ClientSettings::new().expect("entropy"));
    game.until("the client is connected", Game::all_connected);
    (0..5_000).for_each(|number| game.tell_all(number));
    game.until("the server has despawned the client", |game| game.connected().is_empty());
    game.until("the client is disconnected", |game| game.cause(0).is_some());
}

#[test]
fn a_reliable_message_above_the_maximum_length_closes_the_connection() {
    let mut game = Game::new(1);
    let mut client = game.clients[0].world_mut().resource_mut::<RakwireClient>();
    let longest = client.max_message_len().expect("an open connection");
    assert!(longest > 1_000_000, "{longest}");
    let mut messages = game.clients[0].world_mut().resource_mut::<ClientMessages>();
    messages.send(0_usize, vec![0; longest + 8]);
    game.until("the client is disconnected", |game| game.cause(0).is_some());
    assert_eq!(game.cause(0), Some(DisconnectCause::TooLarge));
    let client = game.clients[0].world().resource::<RakwireClient>();
    assert_eq!(client.dropped().too_large, 1);
    game.until("the server has despawned the client", |game| game.connected().is_empty());
}
