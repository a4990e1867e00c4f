//! The rules of docs/game.md#rules.

use std::collections::BTreeSet;
use std::vec::Vec as StdVec;

use proptest::prelude::*;

use super::rules::PLAYER_SIZE;
use super::*;
use crate::message::{Break, Direction, Move, Object, ObjectKind, Player, Throw};

const A: PlayerId = PlayerId(1);
const B: PlayerId = PlayerId(2);

fn at(x: f32, y: f32) -> Point {
    Point::new(x, y, 0.0)
}

/// Creates a world with players at these positions and no objects.
fn players_at<const N: usize>(places: [Point; N]) -> World {
    let mut world = World::new(1);
    world.objects.clear();
    for place in places {
        world.join().expect("a free slot");
        world.players.last_mut().expect("the player has joined").position = place;
    }
    world
}

fn put(world: &mut World, id: u32, kind: ObjectKind, position: Point) -> EntityId {
    let object = ObjectBody::new(EntityId(id), kind, position);
    world.objects.push(object).expect("enough space");
    object.id
}

fn walk(world: &mut World, player: PlayerId, direction: Direction, ticks: u32) {
    world.act(player, ActionKind::Move(Move { direction }));
    run(world, ticks);
}

fn run(world: &mut World, ticks: u32) -> StdVec<PlayerId> {
    (0..ticks).flat_map(|_| world.tick()).collect()
}

fn start_breaking(world: &mut World, player: PlayerId, entity: EntityId) {
    world.act(player, ActionKind::Break(Break { entity: Some(entity) }));
}

fn throw(world: &mut World, player: PlayerId, target: Point) {
    world.act(player, ActionKind::Throw(Throw { target }));
}

fn player(world: &World, owner: PlayerId) -> Player {
    let find = |entity: Entity| match entity.kind {
        EntityKind::Player(player) if player.owner == owner => Some(player),
        EntityKind::Player(_) | EntityKind::Object(_) | EntityKind::Dead => None,
    };
    world.entities().into_iter().find_map(find).expect("the player exists")
}

fn object(world: &World, id: EntityId) -> Option<Object> {
    let find = |entity: Entity| match entity.kind {
        EntityKind::Object(object) if entity.id == id => Some(object),
        EntityKind::Player(_) | EntityKind::Object(_) | EntityKind::Dead => None,
    };
    world.entities().into_iter().find_map(find)
}

fn is_dead(world: &World, id: EntityId) -> bool {
    world.entities().contains(&Entity { id, kind: EntityKind::Dead })
}

/// Creates a world in which the first player holds the object `id`.
fn armed(places: &[Point], id: u32) -> World {
    let mut world = players_at([places[0]]);
    for place in &places[1..] {
        world.join().expect("a free slot");
        world.players.last_mut().expect("the player has joined").position = *place;
    }
    arm(&mut world, A, id);
    world
}

fn arm(world: &mut World, owner: PlayerId, id: u32) {
    let held = put(world, id, ObjectKind::Mushroom, at(0.0, 0.0));
    let index = world.players.iter().position(|body| body.owner == owner).expect("a player");
    let body = &mut world.players[index];
    body.holding = Some(held);
    let object = world.objects.last_mut().expect("the object was added");
    object.durability = None;
    object.place = Place::Held { by: body.id };
    world.carry();
}

#[test]
fn time_counts_ticks_and_wraps() {
    let mut world = World::new(1);
    assert_eq!(world.time(), 0);
    world.tick();
    assert_eq!(world.time(), 1);
    world.time = u32::MAX;
    world.tick();
    assert_eq!(world.time(), 0);
}

#[test]
fn one_advance_simulates_at_most_a_second() {
    let distance = |seconds: f32| {
        let mut world = players_at([at(0.0, 0.0)]);
        world.act(A, ActionKind::Move(Move { direction: Direction::NORTH }));
        world.advance(seconds);
        player(&world, A).position.y
    };
    assert!((distance(1.0 / 60.0) - 5.0 / 60.0).abs() < 1e-6);
    assert!((distance(0.0125) - 0.0625).abs() < 1e-6);
    assert!((distance(0.001) - 0.005).abs() < 1e-6);
    assert!((distance(10.0) - 5.0).abs() < 1e-3);
}

#[test]
fn new_world_has_trees_and_mushrooms_on_grass() {
    for seed in 0..20 {
        let world = World::new(seed);
        let mut tiles = BTreeSet::new();
        for (object, id) in world.objects.iter().zip(1..) {
            let kind = if id <= 150 { ObjectKind::Tree } else { ObjectKind::Mushroom };
            assert_eq!((object.id, object.kind), (EntityId(id), kind));
            let Point { x, y, z } = object.position;
            // A position half-way between two tiles may round to either; the free grass tile is the right one.
            let tile = ((x + 0.5).floor() as i32, (y + 0.5).floor() as i32);
            assert!(tiles.insert(tile) && tile != (0, 0) && z == 0.0, "{tile:?}");
            assert_eq!(Tile::at(tile.0, tile.1), Tile::Grass);
            assert_eq!((object.health, object.durability), (3, Some(1.0)));
        }
        assert_eq!(world.objects.len(), 300);
    }
    assert_ne!(World::new(1).objects, World::new(2).objects);
}

#[test]
fn players_and_objects_have_the_documented_sizes() {
    let size = |cuboid: cuboid::Cuboid| cuboid.max - cuboid.min;
    let object = |kind| size(ObjectBody::new(EntityId(1), kind, at(0.0, 0.0)).cuboid());
    assert_eq!(object(ObjectKind::Tree), Point::new(0.875, 0.1875, 1.875));
    assert_eq!(object(ObjectKind::Mushroom), Point::new(0.5625, 0.1875, 0.4375));
    assert_eq!(PLAYER_SIZE, Point::new(0.875, 0.1875, 1.3125));
}

#[test]
fn water_stops_players() {
    let mut world = players_at([at(20.0, 1.5)]);
    walk(&mut world, A, Direction::EAST, 600);
    assert_eq!(player(&world, A).position, at(27.0625, 1.5));
    // The player slides along the wall.
    walk(&mut world, A, Direction::EAST | Direction::SOUTH, 6);
    let position = player(&world, A).position;
    assert!(position.x == 27.0625 && position.y < 1.2, "{position:?}");
    walk(&mut world, A, Direction::WEST, 6);
    assert!(player(&world, A).position.x < 26.7);
}

#[test]
fn players_cannot_leave_the_land() {
    for direction in 0..16 {
        let mut world = World::new(3);
        world.join().expect("a free slot");
        walk(&mut world, A, Direction(direction), 1_200);
        let Point { x, y, z } = player(&world, A).position;
        assert!(x * x + y * y < 30.0 * 30.0 && z == 0.0, "{x} {y} {z}");
    }
}

#[test]
fn player_ids_are_reused_and_entity_ids_are_not() {
    let mut world = World::new(1);
    assert_eq!([world.join(), world.join(), world.join()], [A, B, PlayerId(3)].map(Some));
    world.leave(A);
    assert_eq!(world.join(), Some(A));
    let ids: StdVec<_> = world.entities().iter().take(3).map(|entity| entity.id.0).collect();
    assert_eq!(ids, [302, 303, 304]);
    while world.join().is_some() {}
    assert_eq!(world.players().count(), MAX_PLAYERS);
}

#[test]
fn players_join_near_the_middle_with_full_health() {
    let mut world = World::new(9);
    while let Some(owner) = world.join() {
        let Player { position: Point { x, y, z }, health, max_health, .. } = player(&world, owner);
        assert!((-0.5..0.5).contains(&x) && (-0.5..0.5).contains(&y) && z == 0.0);
        assert_eq!((health, max_health), (3, 3));
    }
}

#[test]
fn player_walks_five_tiles_a_second_until_the_next_move() {
    let walked = |direction| {
        let mut world = players_at([at(0.0, 0.0)]);
        walk(&mut world, A, direction, 60);
        player(&world, A).position
    };
    let near = |a: Point, b: Point| assert!((a - b).length() < 1e-3, "{a:?} {b:?}");
    near(walked(Direction::NORTH), at(0.0, 5.0));
    near(walked(Direction::WEST), at(-5.0, 0.0));
    near(walked(Direction::SOUTH), at(0.0, -5.0));
    near(walked(Direction::EAST), at(5.0, 0.0));
    let half = 5.0 / 2.0_f32.sqrt();
    near(walked(Direction::NORTH | Direction::EAST), at(half, half));
    near(walked(Direction::NORTH | Direction::SOUTH), at(0.0, 0.0));
    near(walked(Direction::NORTH | Direction::SOUTH | Direction::WEST), at(-5.0, 0.0));
    near(walked(Direction(0xF0)), at(0.0, 0.0));
}

#[test]
fn players_and_objects_block_movement() {
    let mut world = players_at([at(0.0, 0.0), at(3.0, 0.0)]);
    put(&mut world, 1, ObjectKind::Tree, at(-3.0, 0.0));
    walk(&mut world, A, Direction::EAST, 60);
    assert_eq!(player(&world, A).position, at(2.125, 0.0));
    walk(&mut world, A, Direction::WEST, 120);
    assert_eq!(player(&world, A).position, at(-2.125, 0.0));
}

#[test]
fn overlapping_players_are_separated() {
    let mut world = players_at([at(0.0, 0.0), at(0.0, 0.05)]);
    put(&mut world, 1, ObjectKind::Tree, at(0.0, 2.0));
    world.tick();
    assert!(!world.players[0].cuboid().overlaps(&world.players[1].cuboid()));
    assert!(player(&world, A).position.y < 0.0 && player(&world, B).position.y > 0.05);
    world.players[0].position = at(0.0, 1.95);
    world.tick();
    assert!(!world.players[0].cuboid().overlaps(&world.objects[0].cuboid()));
}

#[test]
fn object_within_reach_breaks_in_a_second_and_is_held() {
    let mut world = players_at([at(0.0, 0.0)]);
    let tree = put(&mut world, 1, ObjectKind::Tree, at(2.0, 0.0));
    start_breaking(&mut world, A, tree);
    run(&mut world, 30);
    let left = object(&world, tree).expect("the object exists").durability.expect("an unbroken object");
    assert!((left - 0.5).abs() < 1e-3, "{left}");
    run(&mut world, 31);
    let (holder, held) = (player(&world, A), object(&world, tree).expect("the object exists"));
    assert_eq!((holder.holding, holder.breaking, held.durability), (Some(tree), None, None));
    // A held object follows its player and is not an obstacle.
    walk(&mut world, A, Direction::EAST, 60);
    let (holder, held) = (player(&world, A), object(&world, tree).expect("the object exists"));
    assert_eq!(held.position, holder.position + Point::new(0.0, 0.0, 1.3125));
    assert!(holder.position.x > 4.9);
}

#[test]
fn durability_does_not_recover() {
    let mut world = players_at([at(0.0, 0.0)]);
    let tree = put(&mut world, 1, ObjectKind::Tree, at(1.0, 0.0));
    start_breaking(&mut world, A, tree);
    run(&mut world, 30);
    world.act(A, ActionKind::Break(Break { entity: None }));
    let before = object(&world, tree);
    run(&mut world, 60);
    assert_eq!((object(&world, tree), player(&world, A).breaking), (before, None));
}

#[test]
fn breaking_out_of_reach_is_shown_but_has_no_effect() {
    let mut world = players_at([at(0.0, 0.0)]);
    let tree = put(&mut world, 1, ObjectKind::Tree, at(2.1, 0.0));
    start_breaking(&mut world, A, tree);
    run(&mut world, 120);
    assert_eq!(player(&world, A).breaking, Some(tree));
    assert_eq!(object(&world, tree).expect("the object exists").durability, Some(1.0));
}

#[test]
fn unknown_entities_are_not_broken() {
    let mut world = players_at([at(0.0, 0.0), at(1.0, 0.0)]);
    start_breaking(&mut world, A, EntityId(u32::MAX));
    start_breaking(&mut world, B, EntityId(301));
    world.tick();
    assert_eq!((player(&world, A).breaking, player(&world, B).breaking), (None, Some(EntityId(301))));
    assert_eq!(player(&world, A).health, 3);
}

#[test]
fn player_that_holds_an_object_cannot_break_another() {
    let mut world = armed(&[at(0.0, 0.0)], 1);
    let tree = put(&mut world, 2, ObjectKind::Tree, at(1.0, 0.0));
    start_breaking(&mut world, A, tree);
    run(&mut world, 120);
    assert_eq!((player(&world, A).holding, player(&world, A).breaking), (Some(EntityId(1)), Some(tree)));
    assert_eq!(object(&world, tree).expect("the object exists").durability, Some(1.0));
}

#[test]
fn throw_lands_at_its_target() {
    for target in [at(10.0, 0.0), at(-7.0, 12.0), at(0.0, 20.0)] {
        let mut world = armed(&[at(0.0, 0.0)], 1);
        throw(&mut world, A, target);
        assert_eq!(player(&world, A).holding, None);
        let mut last = Point::default();
        while let Some(object) = object(&world, EntityId(1)) {
            last = object.position;
            world.tick();
            assert!(world.time() < 300, "the object still flies");
        }
        // An object in flight moves up to half a tile per tick.
        assert!((last - target).length() < 1.1, "{last:?} {target:?}");
        assert!(is_dead(&world, EntityId(1)));
    }
}

#[test]
fn player_without_an_object_cannot_throw() {
    let mut world = players_at([at(0.0, 0.0), at(3.0, 0.0)]);
    put(&mut world, 1, ObjectKind::Tree, at(1.0, 0.0));
    throw(&mut world, A, at(3.0, 0.0));
    let before = world.entities();
    world.tick();
    assert_eq!(world.entities(), before);
}

#[test]
fn player_dies_at_the_third_hit() {
    let mut world = players_at([at(0.0, 0.0), at(6.0, 0.0)]);
    for id in 1..=3 {
        assert_eq!(player(&world, B).health, 4 - id);
        arm(&mut world, A, id);
        throw(&mut world, A, at(6.0, 0.0));
        let fallen = run(&mut world, 60);
        assert_eq!(fallen, if id == 3 { std::vec![B] } else { std::vec![] });
        assert!(is_dead(&world, EntityId(id)));
    }
    assert!(is_dead(&world, EntityId(302)));
    assert_eq!(world.players().collect::<StdVec<_>>(), [A]);
    assert_eq!(player(&world, A).health, 3);
}

#[test]
fn object_dies_at_the_third_hit() {
    let mut world = players_at([at(0.0, 0.0)]);
    let tree = put(&mut world, 9, ObjectKind::Tree, at(6.0, 0.0));
    for id in 1..=3 {
        assert_eq!(object(&world, tree).map(|tree| tree.health), Some(4 - id));
        arm(&mut world, A, id);
        throw(&mut world, A, at(6.0, 0.0));
        run(&mut world, 60);
        assert!(is_dead(&world, EntityId(id)));
    }
    assert!(is_dead(&world, tree));
}

#[test]
fn wall_stops_a_throw() {
    let mut world = armed(&[at(26.0, 1.5)], 1);
    throw(&mut world, A, Point::new(40.0, 1.5, 1.0));
    let mut last = Point::default();
    while let Some(object) = object(&world, EntityId(1)) {
        last = object.position;
        world.tick();
        assert!(world.time() < 300, "the object still flies");
    }
    assert!(last.x < 27.5 && last.z > 0.5, "{last:?}");
}

#[test]
fn throw_never_hits_its_thrower() {
    let mut world = armed(&[at(0.0, 0.0)], 1);
    throw(&mut world, A, at(0.0, 0.0));
    let fallen = run(&mut world, 60);
    assert!(fallen.is_empty() && is_dead(&world, EntityId(1)));
    assert_eq!(player(&world, A).health, 3);
}

#[test]
fn throw_at_an_invalid_target_is_ignored() {
    let mut world = armed(&[at(0.0, 0.0)], 1);
    let own = object(&world, EntityId(1)).expect("the object exists").position;
    let nan = f32::NAN;
    let tiny = own + Point::new(0.0, f32::MIN_POSITIVE, 0.0);
    for target in [
        own,
        tiny,
        at(nan, 0.0),
        at(0.0, nan),
        Point::new(0.0, 0.0, nan),
        at(f32::INFINITY, 0.0),
        at(f32::MAX, 0.0),
    ] {
        throw(&mut world, A, target);
        world.tick();
        assert_eq!(player(&world, A).holding, Some(EntityId(1)), "{target:?}");
    }
}

#[test]
fn throw_beyond_the_maximum_keeps_its_direction() {
    let mut world = armed(&[at(0.0, 0.0)], 1);
    throw(&mut world, A, at(-1e9, 0.0));
    run(&mut world, 30);
    let position = object(&world, EntityId(1)).expect("a flying object").position;
    assert!(position.x < -10.0 && position.y == 0.0 && position.z > 5.0, "{position:?}");
    run(&mut world, 600);
    assert!(is_dead(&world, EntityId(1)));
}

#[test]
fn snapshots_list_players_then_objects_then_dead_entities() {
    let mut world = armed(&[at(0.0, 0.0), at(5.0, 5.0)], 1);
    throw(&mut world, A, at(0.0, 3.0));
    put(&mut world, 2, ObjectKind::Tree, at(-5.0, 0.0));
    run(&mut world, 60);
    let ids: StdVec<_> = world.entities().iter().map(|entity| entity.id.0).collect();
    assert_eq!(ids, [301, 302, 2, 1]);
}

#[test]
fn number_of_dead_entities_is_limited() {
    let mut world = players_at([]);
    (0..1_000).for_each(|id| world.record_death(EntityId(id)));
    let entities = world.entities();
    assert_eq!(entities.len(), MAX_DEAD);
    assert_eq!(entities.last().map(|entity| entity.id), Some(EntityId(999)));
}

/// As many objects regrow as were removed, on free grass and with the same result in every run.
#[test]
fn removed_objects_regrow_deterministically() {
    let mut world = World::new(4);
    world.join().expect("a free slot");
    let ended = [3, 7, 150, 151, 300].map(EntityId);
    ended.into_iter().for_each(|id| world.remove_object(id));
    let mut other = world.clone();
    run(&mut world, REGROWTH_TICKS - 1);
    assert_eq!(world.objects.len(), MAX_OBJECTS - ended.len());
    run(&mut world, 1);
    assert_eq!(world.objects.len(), MAX_OBJECTS);
    let trees = world.objects.iter().filter(|object| object.kind == ObjectKind::Tree).count();
    assert_eq!(trees, 150);
    let mut tiles = BTreeSet::from([Tile::below(world.players[0].position)]);
    for object in &world.objects {
        let (x, y) = Tile::below(object.position);
        assert!(tiles.insert((x, y)) && Tile::at(x, y) == Tile::Grass, "{object:?}");
        assert!(!is_dead(&world, object.id));
    }
    let new: StdVec<_> =
        world.objects.iter().filter(|object| object.id.0 > 301).map(|object| object.id.0).collect();
    assert_eq!(new, [302, 303, 304, 305, 306]);
    run(&mut world, 3 * REGROWTH_TICKS);
    assert_eq!(world.objects.len(), MAX_OBJECTS);
    run(&mut other, 4 * REGROWTH_TICKS);
    assert_eq!(digest(&other), digest(&world));
}

/// Four bots throw more objects than a new world has, and some objects remain.
#[test]
fn objects_remain_after_ten_minutes_of_bots() {
    let mut world = World::new(6);
    for _ in 0..600 * TICKS_PER_SECOND {
        while world.players().count() < 4 {
            world.join().expect("a free slot");
        }
        let entities = world.entities();
        let players: StdVec<_> = world.players().collect();
        for player in players {
            let input = crate::bot::decide(&entities, player);
            world.act(player, ActionKind::Move(Move { direction: input.movement }));
            world.act(player, ActionKind::Break(Break { entity: input.breaking }));
            if let Some(target) = input.throw {
                throw(&mut world, player, target);
            }
        }
        world.tick();
        assert!(world.objects.len() + world.ended == MAX_OBJECTS && world.objects.len() > 200);
    }
    let grown = world.objects.iter().filter(|object| object.id.0 >= FIRST_PLAYER_ENTITY).count();
    assert!(grown > 100, "only {grown} have grown");
}

/// The original game has the same bug (docs/game.md#faults).
#[test]
fn two_players_can_fall_in_one_tick() {
    let mut world = players_at([at(-3.0, 0.0), at(3.0, 0.0)]);
    world.players.iter_mut().for_each(|body| body.health = 1);
    arm(&mut world, A, 1);
    arm(&mut world, B, 2);
    // The two objects pass each other in flight.
    throw(&mut world, A, at(3.2, 0.0));
    throw(&mut world, B, at(-3.2, 0.0));
    world.objects[0].position.y = 0.09;
    world.objects[1].position.y = -0.1;
    let fallen = run(&mut world, 60);
    assert_eq!(fallen.len(), 2);
    assert_eq!(world.players().count(), 0);
}

/// The original game has the same bug.
#[test]
fn player_holds_nothing_after_its_held_object_dies() {
    let mut world = armed(&[at(0.0, 0.0), at(6.0, 0.0)], 1);
    world.objects[0].health = 1;
    arm(&mut world, B, 2);
    throw(&mut world, B, Point::new(0.0, 0.0, 1.4));
    run(&mut world, 60);
    assert!(is_dead(&world, EntityId(1)) && is_dead(&world, EntityId(2)));
    assert_eq!((player(&world, A).holding, player(&world, A).health), (None, 3));
    throw(&mut world, A, at(6.0, 0.0));
    run(&mut world, 60);
    assert_eq!(player(&world, B).health, 3);
}

/// The original game has the same bug.
#[test]
fn object_of_a_departed_player_can_be_picked_up() {
    let mut world = armed(&[at(0.0, 0.0), at(1.0, 0.0)], 1);
    world.leave(A);
    let object = object(&world, EntityId(1)).expect("an object");
    assert_eq!((object.position, object.durability), (at(0.0, 0.0), Some(0.0)));
    start_breaking(&mut world, B, EntityId(1));
    world.tick();
    assert_eq!(player(&world, B).holding, Some(EntityId(1)));
}

#[test]
fn actions_of_unknown_players_are_ignored() {
    let mut world = World::new(1);
    let before = world.entities();
    throw(&mut world, A, at(1.0, 1.0));
    start_breaking(&mut world, B, EntityId(1));
    world.leave(A);
    world.tick();
    assert_eq!(world.entities(), before);
}

/// Returns the FNV-1a hash of a packed snapshot.
fn digest(world: &World) -> u64 {
    let mut buffer = [0; 16_384];
    let bytes = rakwire::codec::rabbit::pack(world.entities().as_slice(), &mut buffer).expect("enough space");
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// Simulates twenty seconds of a busy game. The recorded hash must match on every machine.
#[test]
fn world_is_the_same_on_every_machine() {
    let mut world = World::new(42);
    let mut random = Pcg32::seed_from_u64(43);
    for tick in 0..1_200_u32 {
        if tick % 100 == 0 {
            world.join();
        }
        let players: StdVec<_> = world.players().collect();
        for player in players {
            let choice = random.next_u32();
            match choice % 64 {
                0 => world.act(player, ActionKind::Move(Move { direction: Direction((choice >> 8) as u8) })),
                1 => start_breaking(&mut world, player, EntityId(1 + (choice >> 8) % 300)),
                2 => {
                    let target = generate::offset(&mut random) * 40.0;
                    throw(&mut world, player, at(target, target / 2.0));
                }
                _ => {}
            }
        }
        world.tick();
    }
    assert_eq!(digest(&World::new(42)), NEW_WORLD);
    assert_eq!(digest(&world), OLD_WORLD);
}

const NEW_WORLD: u64 = 5_500_447_305_489_002_804;
const OLD_WORLD: u64 = 14_720_471_246_657_529_616;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// After arbitrary actions, all numbers in a snapshot are finite and all positions are valid.
    #[test]
    fn world_stays_valid_under_arbitrary_actions(
        seed: u64,
        actions in proptest::collection::vec((1..5_u32, 0..4_u8, any::<u8>(), any::<(f32, f32, f32)>()), 0..80),
    ) {
        let mut world = World::new(seed);
        (0..3).for_each(|_| { world.join(); });
        for (owner, kind, byte, (x, y, z)) in actions {
            let owner = PlayerId(owner);
            match kind {
                0 => walk(&mut world, owner, Direction(byte), u32::from(byte) / 8),
                1 => start_breaking(&mut world, owner, EntityId(u32::from(byte) + 60)),
                2 => throw(&mut world, owner, Point::new(x, y, z)),
                _ => {
                    // Breaks the nearest object loose, so that the player has something to throw.
                    if let Some(place) = world.position_of(owner) {
                        let near = world.objects.iter_mut().min_by(|a, b| {
                            (a.position - place).length().total_cmp(&(b.position - place).length())
                        });
                        let id = near.map(|object| { object.position = place + at(1.0, 0.5); object.id });
                        start_breaking(&mut world, owner, id.unwrap_or(EntityId(0)));
                        run(&mut world, 61);
                    }
                }
            }
            world.tick();
        }
        for entity in world.entities() {
            let position = match entity.kind {
                EntityKind::Object(object) => object.position,
                EntityKind::Player(player) => player.position,
                EntityKind::Dead => continue,
            };
            prop_assert!(position.length() < 1_000.0, "{:?}", entity);
        }
        let holders = world.players.iter().filter(|body| body.holding.is_some()).count();
        let held = world.objects.iter().filter(|object| matches!(object.place, Place::Held { .. })).count();
        prop_assert_eq!(holders, held);
    }
}
