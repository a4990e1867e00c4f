//! The page of the game: it draws the replicated entities, and sends the input of keys and mouse.

use std::sync::Mutex;

use bevy::prelude::*;
use bevy_replicon::prelude::*;
use rakwire_bevy::rakwire::secure::ServerTrust;
use rakwire_bevy::{ClientSettings, RakwireClient, Status};
use snowfight::message::{
    ActionKind, Break, Direction, EntityId, EntityKind, Move, ObjectKind, Player, PlayerId, Point, Throw,
};
use wasm_bindgen::prelude::*;

use crate::game::{self, Act, Body, Id, Welcome};

#[wasm_bindgen(module = "/examples/snowballs/page.js")]
extern "C" {
    #[wasm_bindgen(js_name = draw)]
    fn draw_discs(discs: &[f32]);
    #[wasm_bindgen(js_name = report)]
    fn show(text: &str);
}

/// An input of the page.
enum Input {
    /// Walks in a direction.
    Walk(Direction),
    /// Points at a position, in tiles from the centre of the picture.
    Point(f32, f32),
}

/// The inputs since the last frame.
static INPUTS: Mutex<Vec<Input>> = Mutex::new(Vec::new());

fn push(input: Input) {
    if let Ok(mut inputs) = INPUTS.lock() {
        inputs.push(input);
    }
}

/// Walks in a direction: the sum of 1 (north), 2 (west), 4 (south) and 8 (east). 0 stops.
#[wasm_bindgen]
#[allow(unreachable_pub, reason = "JavaScript calls it")]
pub fn walk(direction: u8) {
    push(Input::Walk(Direction(direction)));
}

/// Throws the carried object at a position, in tiles from the centre of the picture. A player that carries nothing
/// breaks the object nearest to the position.
#[wasm_bindgen]
#[allow(unreachable_pub, reason = "JavaScript calls it")]
pub fn point(east: f32, north: f32) {
    push(Input::Point(east, north));
}

/// Plays on the server with the name `target` in the relay's configuration. With `key`, the public key of the server,
/// the connection is secure.
#[wasm_bindgen]
#[allow(unreachable_pub, reason = "JavaScript calls it")]
pub fn play(relay: String, target: String, key: Option<String>) -> Result<(), JsError> {
    let mut settings = ClientSettings::new()?;
    settings.trust = key.map(|key| key.parse()).transpose()?.map(ServerTrust::Key);
    let client = RakwireClient::connect_by_relay(relay, target, settings);
    game::app()
        .insert_resource(client)
        .init_resource::<Me>()
        .add_observer(|welcome: On<Welcome>, mut me: ResMut<Me>| me.0 = Some(welcome.0))
        .add_systems(Update, (act.run_if(in_state(ClientState::Connected)), draw, report).chain())
        .run();
    Ok(())
}

/// The player of this page.
#[derive(Default, Resource)]
struct Me(Option<PlayerId>);

/// A query for all objects and players of the game.
type Things<'w, 's> = Query<'w, 's, (&'static Id, &'static Body), With<Remote>>;

fn find(things: &Things<'_, '_>, me: &Me) -> Option<Player> {
    things.iter().find_map(|(_, body)| match body.0 {
        EntityKind::Player(player) if Some(player.owner) == me.0 => Some(player),
        _ => None,
    })
}

/// Converts the inputs to actions, and sends them.
fn act(things: Things<'_, '_>, me: Res<Me>, mut commands: Commands) {
    let inputs = INPUTS.lock().map(|mut inputs| std::mem::take(&mut *inputs)).unwrap_or_default();
    let Some(player) = find(&things, &me) else { return };
    for input in inputs {
        let action = match input {
            Input::Walk(direction) => ActionKind::Move(Move { direction }),
            Input::Point(east, north) => {
                let target = player.position + Point::new(east, north, 0.0);
                match player.holding {
                    Some(_) => ActionKind::Throw(Throw { target }),
                    None => ActionKind::Break(Break { entity: nearest(&things, target) }),
                }
            }
        };
        commands.client_trigger(Act(action));
    }
}

/// Returns the breakable object nearest to a position.
fn nearest(things: &Things<'_, '_>, place: Point) -> Option<EntityId> {
    let whole = things.iter().filter_map(|(id, body)| match body.0 {
        EntityKind::Object(object) if object.durability.is_some() => {
            Some((id.0, (object.position - place).length()))
        }
        _ => None,
    });
    whole.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(id, _)| id)
}

/// Draws all entities as discs, seen from above. The player of this page is in the centre and on top.
fn draw(things: Things<'_, '_>, me: Res<Me>) {
    let own = find(&things, &me).map(|player| player.position);
    let center = own.unwrap_or_default();
    let all = things.iter().filter_map(|(_, body)| disc(&body.0));
    let discs = all.chain(own.map(|position| (position, 0.5, 3.0)));
    let numbers = discs.flat_map(|(position, radius, colour)| {
        let from_center = position - center;
        [from_center.x, from_center.y + from_center.z, radius, colour]
    });
    draw_discs(&numbers.collect::<Vec<_>>());
}

/// Returns the position, the radius in tiles and the colour of an entity.
fn disc(kind: &EntityKind) -> Option<(Point, f32, f32)> {
    match kind {
        EntityKind::Object(object) => Some(match object.kind {
            ObjectKind::Tree => (object.position, 0.8, 0.0),
            ObjectKind::Mushroom => (object.position, 0.4, 1.0),
        }),
        EntityKind::Player(player) => Some((player.position, 0.5, 2.0)),
        EntityKind::Dead => None,
    }
}

/// Writes the state of the connection into the page.
fn report(client: Res<RakwireClient>, me: Res<Me>, things: Things<'_, '_>, mut last: Local<String>) {
    let text = match (client.status(), client.transport(), me.0) {
        (Status::Disconnected(cause), ..) => format!("disconnected: {cause}"),
        (Status::Connected, Some(transport), Some(player)) => {
            format!("player {} by {transport:?} sees {} entities", player.0, things.iter().count())
        }
        _ => "connecting".to_owned(),
    };
    if *last != text {
        show(&text);
        *last = text;
    }
}
