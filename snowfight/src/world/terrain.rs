//! The tiles of the ground.

use super::cuboid::Cuboid;
use crate::message::Point;

/// A tile of the ground (docs/game.md#land).
///
/// ```
/// use snowfight::world::Tile;
///
/// assert_eq!(Tile::at(0, 0), Tile::Grass);
/// assert_eq!(Tile::at(28, 0), Tile::Sand);
/// assert_eq!(Tile::at(28, 1), Tile::Water);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tile {
    /// Grass, on which objects grow.
    Grass,
    /// Sand at the shore.
    Sand,
    /// Water, which is impassable. Everything beyond the tiles of the world is water too.
    Water,
}

impl Tile {
    /// The largest coordinate of a tile. Tiles are centred on whole coordinates.
    pub const RADIUS: i32 = 30;
    /// The square of the radius of the land, in tiles.
    const LAND: i32 = 784;

    /// Returns the tile at these coordinates.
    #[must_use]
    pub const fn at(x: i32, y: i32) -> Self {
        if x.saturating_abs() > Self::RADIUS || y.saturating_abs() > Self::RADIUS {
            return Self::Water;
        }
        let square = x * x + y * y;
        if square > Self::LAND {
            Self::Water
        } else if 10 * square >= 7 * Self::LAND {
            Self::Sand
        } else {
            Self::Grass
        }
    }

    /// Returns the coordinates of the tile below a point.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that is too large becomes the largest integer"
    )]
    pub(super) fn below(point: Point) -> (i32, i32) {
        let tile = |at: f32| libm::floorf(at + 0.5) as i32;
        (tile(point.x), tile(point.y))
    }

    /// Returns all tiles of grass, row by row.
    pub(super) fn all_grass() -> impl Iterator<Item = (i32, i32)> {
        let range = -Self::RADIUS..=Self::RADIUS;
        let all = range.clone().flat_map(move |y| range.clone().map(move |x| (x, y)));
        all.filter(|(x, y)| Self::at(*x, *y) == Self::Grass)
    }
}

/// The height of the invisible walls above water, in tiles.
const WALL_HEIGHT: f32 = 2.0;

/// Returns the walls above water that touch a box.
pub(super) fn walls_near(region: &Cuboid) -> impl Iterator<Item = Cuboid> + use<> {
    let (west, east) = tiles_between(region.min.x, region.max.x);
    let (south, north) = tiles_between(region.min.y, region.max.y);
    let tiles = (south..=north).flat_map(move |y| (west..=east).map(move |x| (x, y)));
    tiles.filter(|(x, y)| Tile::at(*x, *y) == Tile::Water).map(|(x, y)| wall(x, y))
}

/// Returns the first and the last tile that a range covers, clamped to one tile beyond the edge of the world.
#[expect(clippy::cast_possible_truncation, reason = "the tiles are at most one beyond the radius")]
fn tiles_between(from: f32, to: f32) -> (i32, i32) {
    let edge = Tile::RADIUS as f32 + 1.0;
    let tile = |at: f32| libm::floorf(at.clamp(-edge, edge) + 0.5) as i32;
    (tile(from), tile(to))
}

#[expect(clippy::cast_precision_loss, reason = "the coordinates of a tile have at most two digits")]
fn wall(x: i32, y: i32) -> Cuboid {
    let base = Point::new(x as f32, y as f32, 0.0);
    Cuboid::standing(base, Point::new(1.0, 1.0, WALL_HEIGHT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn land_is_round_with_a_shore() {
        let count = |tile| {
            let range = -Tile::RADIUS..=Tile::RADIUS;
            let all = range.clone().flat_map(|y| range.clone().map(move |x| Tile::at(x, y)));
            all.filter(|at| *at == tile).count()
        };
        let (grass, sand, water) = (count(Tile::Grass), count(Tile::Sand), count(Tile::Water));
        assert_eq!(grass + sand + water, 61 * 61);
        assert_eq!(Tile::all_grass().count(), grass);
        // 0.7 * 784 is 548.8: 548 is grass, 549 is sand.
        assert_eq!((Tile::at(22, 8), Tile::at(18, 15)), (Tile::Grass, Tile::Sand));
        assert_eq!((Tile::at(-28, 0), Tile::at(0, -29)), (Tile::Sand, Tile::Water));
        assert_eq!((Tile::at(31, 0), Tile::at(i32::MIN, 0)), (Tile::Water, Tile::Water));
    }

    #[test]
    fn only_water_has_walls() {
        let at = |x, y| Cuboid::standing(Point::new(x, y, 0.0), Point::new(0.5, 0.5, 1.0));
        assert_eq!(walls_near(&at(0.0, 0.0)).count(), 0);
        assert_eq!(walls_near(&at(28.0, 1.5)).count(), 2);
        assert_eq!(walls_near(&at(f32::INFINITY, f32::NAN)).count(), 1);
    }
}
