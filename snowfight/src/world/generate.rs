//! Generates a world from a seed.

use heapless::Vec;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

use super::body::ObjectBody;
use super::rules::{MAX_OBJECTS, OBJECTS_PER_KIND};
use super::terrain::Tile;
use crate::message::{EntityId, ObjectKind, Point};

/// The number of tiles of the world.
const MAX_TILES: usize = 61 * 61;

/// Generates trees, then mushrooms, with consecutive ids from 1. Each object is on its own grass tile outside the
/// middle.
pub(super) fn objects(random: &mut Pcg32) -> Vec<ObjectBody, MAX_OBJECTS> {
    let grass = Tile::all_grass().filter(|tile| *tile != (0, 0));
    let mut tiles: Vec<(i32, i32), MAX_TILES> = grass.take(MAX_TILES).collect();
    shuffle(&mut tiles, random);
    let trees = core::iter::repeat_n(ObjectKind::Tree, OBJECTS_PER_KIND as usize);
    let mushrooms = core::iter::repeat_n(ObjectKind::Mushroom, OBJECTS_PER_KIND as usize);
    let numbered = (1..).zip(trees.chain(mushrooms)).zip(&tiles);
    let object = |((id, kind), (x, y)): ((u32, ObjectKind), &(i32, i32))| {
        let middle = Point::new(*x as f32, *y as f32, 0.0);
        let jitter = Point::new(offset(random), offset(random), 0.0);
        ObjectBody::new(EntityId(id), kind, middle + jitter)
    };
    numbered.map(object).take(MAX_OBJECTS).collect()
}

/// Returns a position on a free grass tile outside the middle. The search starts at a random tile.
pub(super) fn free_position(random: &mut Pcg32, is_taken: impl Fn((i32, i32)) -> bool) -> Option<Point> {
    let grass = || Tile::all_grass().filter(|tile| *tile != (0, 0));
    let start = random.next_u32() as usize % grass().count().max(1);
    let mut tiles = grass().skip(start).chain(grass().take(start));
    let (x, y) = tiles.find(|tile| !is_taken(*tile))?;
    Some(Point::new(x as f32 + offset(random), y as f32 + offset(random), 0.0))
}

/// Returns a random number in -0.5..0.5.
pub(super) fn offset(random: &mut Pcg32) -> f32 {
    const STEPS: u32 = 1 << 24;
    (random.next_u32() % STEPS) as f32 / STEPS as f32 - 0.5
}

/// Shuffles tiles (Fisher-Yates).
fn shuffle(tiles: &mut [(i32, i32)], random: &mut Pcg32) {
    for left in (1..tiles.len()).rev() {
        let other = random.next_u32() as usize % (left + 1);
        tiles.swap(left, other);
    }
}
