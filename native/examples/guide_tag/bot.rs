//! A player without a screen: it runs after the nearest player when it is "it", and away from "it" otherwise.

use std::error::Error;

use rakwire_native::{Connection, DisconnectReason, Endpoint, Options};

use super::messages::{EVENTS, NEWEST, News, Request};
use super::world::{Cell, Direction, HEIGHT, WIDTH};

const MIDDLE: Cell = [WIDTH / 2, HEIGHT / 2];

/// Connects to a server and sends the name.
pub(crate) async fn join(server: &str, name: &str) -> Result<Connection, Box<dyn Error>> {
    let endpoint = Endpoint::bind("0.0.0.0:0", Options::client()?).await?;
    let connection = endpoint.connect(server.parse()?).await?;
    connection.send(&Request::Hello(name.to_owned()).encode(), EVENTS).await?;
    Ok(connection)
}

/// Plays until the connection closes, and returns the reason. `on_news` gets all messages except states.
pub(crate) async fn play(connection: Connection, mut on_news: impl FnMut(&News)) -> DisconnectReason {
    let mut me = None;
    while let Some(message) = connection.recv().await {
        match News::decode(&message.bytes) {
            Some(News::State(it, players)) => {
                if let Some(direction) = me.and_then(|me| direction(me, it, &players)) {
                    // Does not wait if the queue is full: the next state is newer.
                    let _ = connection.try_send(&Request::Steer(direction).encode(), NEWEST);
                }
            }
            Some(news) => {
                if let News::Welcome(number) = news {
                    me = Some(number);
                }
                on_news(&news);
            }
            None => {}
        }
    }
    connection.closed().await
}

/// Returns where player `me` should go.
fn direction(me: u8, it: u8, players: &[(u8, Cell)]) -> Option<Direction> {
    let cell = |wanted: u8| players.iter().find(|(number, _)| *number == wanted).map(|(_, cell)| *cell);
    let here = cell(me)?;
    if me != it {
        let away = |hunter| if hunter == here { towards(here, MIDDLE) } else { towards(hunter, here) };
        return cell(it).map(away);
    }
    // Alone, it stands still, but says so: the server disconnects players without a direction.
    let others = players.iter().filter(|(number, _)| *number != me);
    let nearest = others.min_by_key(|(_, cell)| distance(here, *cell));
    Some(nearest.map_or([0, 0], |(_, cell)| towards(here, *cell)))
}

fn towards([x, y]: Cell, [to_x, to_y]: Cell) -> Direction {
    [(i16::from(to_x) - i16::from(x)).signum() as i8, (i16::from(to_y) - i16::from(y)).signum() as i8]
}

fn distance([x, y]: Cell, [to_x, to_y]: Cell) -> u8 {
    x.abs_diff(to_x).max(y.abs_diff(to_y))
}
