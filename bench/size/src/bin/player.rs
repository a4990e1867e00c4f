//! A player of the snowball fight without a transport protocol. It decodes messages of the server with Rabbit, stores
//! the view of the world, and sends the input of a bot.

#![no_std]
#![no_main]

use rakwire_size::{now, receive, send};
use snowfight::client::{Client, Update, View};
use snowfight::message::Scope;
use snowfight::wanderer::{Button, Wanderer};

static mut WORLD: View<384> = View::new();
static mut BUFFER: [u8; 1_024] = [0; 1_024];

/// The entry point.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> ! {
    let (world, buffer) = (&raw mut WORLD, &raw mut BUFFER);
    // SAFETY: this function runs once, and nothing else accesses the statics.
    let (world, buffer) = unsafe { (&mut *world, &mut *buffer) };
    let (mut client, mut wanderer) = (Client::with_scope(Scope::Changes), Wanderer::default());
    client.handle_connected();
    loop {
        let message = receive(buffer);
        match client.handle_message(now(), &message) {
            Ok(Update::Joined { entities, .. }) => world.update(&entities),
            Ok(Update::Snapshot { time, entities, scope }) => world.take(time, &entities, scope),
            Ok(Update::Over(_)) => client.handle_disconnected(),
            Ok(Update::Rejected(why)) => why.chars().for_each(|letter| send(&[letter as u8])),
            Ok(Update::Pong { .. } | Update::Ignored) | Err(_) => {}
        }
        if let Some(player) = client.player() {
            let input = wanderer.decide(world.entities(), player, Button::Up);
            client.handle_frame(now(), input);
        }
        let mut packed = [0; 32];
        while let Some((_, message)) = client.poll_message(&mut packed) {
            send(message);
        }
    }
}
