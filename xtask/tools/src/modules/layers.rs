//! The layers of a crate: a file may use its own layer and those below it.

use super::table::{Layer, Never};

/// The position of a module.
#[derive(Clone, Copy)]
pub(super) struct Standing<'a> {
    /// The number of the layer, 0 for the lowest.
    pub(super) layer: usize,
    /// The part of the layer. In a layer with separate parts, each is out of reach of the others.
    part: &'a str,
    is_apart: bool,
}

/// Returns the position of a module, by the most specific entry.
///
/// A folder with files in several layers needs an entry for each, so that a new file has to be placed.
pub(super) fn standing<'a>(layers: &[Layer], module: &'a str) -> Result<Standing<'a>, String> {
    let entries = layers.iter().enumerate().flat_map(|(number, layer)| {
        layer.modules.iter().filter_map(move |entry| {
            let (weight, part) = matched(entry, module)?;
            Some((weight, entry.ends_with("::*"), Standing { layer: number, part, is_apart: layer.is_apart }))
        })
    });
    let best = entries.max_by_key(|(weight, ..)| *weight);
    let (_, is_each, standing) = best.ok_or_else(|| format!("{module} is in no layer"))?;
    let is_inside =
        |entry: &&str| entry.strip_prefix(standing.part).is_some_and(|rest| rest.starts_with("::"));
    let mut others = layers.iter().enumerate().filter(|(number, _)| *number != standing.layer);
    if standing.part != module && !is_each && others.any(|(_, layer)| layer.modules.iter().any(&is_inside)) {
        return Err(format!(
            "{module} has no entry of its own, but {} has files in several layers",
            standing.part
        ));
    }
    Ok(standing)
}

impl Standing<'_> {
    pub(super) fn may_use(&self, other: &Self) -> bool {
        let is_elsewhere = self.layer == other.layer && self.is_apart && self.part != other.part;
        self.layer >= other.layer && !is_elsewhere
    }
}

/// Returns true if a rule forbids one module to use another.
pub(super) fn forbids(rule: &Never, user: &str, used: &str) -> bool {
    let names = |entries: &[&str], module| entries.iter().any(|entry| matched(entry, module).is_some());
    names(rule.from, user) && names(rule.to, used)
}

/// Returns how specifically an entry matches a module, and the part of its layer.
///
/// `a::b` matches the module and everything below it; `a::b::*` matches only modules below it, and each child is a
/// separate part.
pub(super) fn matched<'a>(entry: &str, module: &'a str) -> Option<(usize, &'a str)> {
    let outer = entry.strip_suffix("::*").unwrap_or(entry);
    let inside = module.strip_prefix(outer)?;
    let child = inside.strip_prefix("::").map(|inside| inside.split("::").next().unwrap_or(inside));
    let weight = 2 * outer.len();
    if outer != entry {
        return child.map(|child| (weight + 1, &module[..outer.len() + "::".len() + child.len()]));
    }
    (inside.is_empty() || child.is_some()).then(|| (weight, &module[..outer.len()]))
}
