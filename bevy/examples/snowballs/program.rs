//! The commands: a server, a bot, a watching client, and a demo of a server with two bots.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use bevy::prelude::*;

use crate::{bot, server};

const USAGE: &str = "usage: snowballs [demo SECONDS | server ADDRESS SECONDS [KEY_FILE] | client|watch ADDRESS SECONDS [KEY]]";

/// The time until the program stops.
#[derive(Resource)]
struct End(Timer);

/// Stops the app after this time.
pub(crate) fn end_after(app: &mut App, time: Duration) {
    app.insert_resource(End(Timer::new(time, TimerMode::Once))).add_systems(Update, end_in_time);
}

fn end_in_time(mut end: ResMut<End>, time: Res<Time>, mut exit: MessageWriter<AppExit>) {
    if end.0.tick(time.delta()).just_finished() {
        exit.write(AppExit::Success);
    }
}

/// Runs a server and two bots in one process.
fn demo(time: Duration) -> Result<(), Box<dyn Error>> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let (bound, address) = std::sync::mpsc::channel();
    let serve = std::thread::spawn(move || {
        let (mut app, listening) = server::app(any, None).map_err(|error| error.to_string())?;
        end_after(&mut app, time + Duration::from_secs(2));
        bound.send(listening).map_err(|error| error.to_string())?;
        app.run();
        Ok::<(), String>(())
    });
    let address = address.recv()?;
    let play = || bot::run(address, time, None).map_err(|error| error.to_string());
    let played = std::thread::scope(|scope| {
        let bots = [(); 2].map(|()| scope.spawn(play));
        bots.map(|bot| bot.join().unwrap_or_else(|_| Err("a bot failed".to_owned())))
    });
    serve.join().map_err(|_| "the server failed")??;
    for had_a_game in played {
        if !had_a_game? {
            return Err("a bot saw no game".into());
        }
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds = |text: &str| Ok::<_, Box<dyn Error>>(Duration::from_secs(text.parse()?));
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => demo(Duration::from_secs(20)),
        ["demo", time] => demo(seconds(time)?),
        ["server", address, time, ref key_file @ ..] if key_file.len() < 2 => {
            let (mut app, bound) = server::app(address.parse()?, key_file.first().copied())?;
            end_after(&mut app, seconds(time)?);
            println!("listening on {bound}");
            app.run();
            Ok(())
        }
        ["client", address, time, ref key @ ..] if key.len() < 2 => {
            bot::run(address.parse()?, seconds(time)?, key.first().copied()).map(|_| ())
        }
        ["watch", address, time, ref key @ ..] if key.len() < 2 => {
            bot::watch(address.parse()?, seconds(time)?, key.first().copied())
        }
        _ => Err(USAGE.into()),
    }
}
