//! The layers of a crate: a file may use its own layer and those below it.

use anyhow::{Result, bail};

use super::table::Layer;

/// Where a module stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing<'a> {
    /// The number of the layer, 0 for the lowest.
    pub(super) layer: usize,
    /// What of the layer it belongs to: in a layer whose parts are apart, others are out of reach.
    part: &'a str,
    is_apart: bool,
}

/// The standing of a module; an error if no entry names it.
pub(super) fn standing<'a>(layers: &[Layer], module: &'a str) -> Result<Standing<'a>> {
    let mut best: Option<(usize, Standing)> = None;
    for (number, layer) in layers.iter().enumerate() {
        for entry in layer.modules {
            let Some((weight, part)) = matched(entry, module) else { continue };
            if best.is_none_or(|(other, _)| weight > other) {
                best = Some((weight, Standing { layer: number, part, is_apart: layer.is_apart }));
            }
        }
    }
    match best {
        Some((_, standing)) => Ok(standing),
        None => bail!("{module} stands in no layer"),
    }
}

/// The entries that name no module, which are mistakes.
pub(super) fn unused<'a>(layers: &'a [Layer], modules: &[String]) -> Vec<&'a str> {
    let entries = layers.iter().flat_map(|layer| layer.modules.iter().copied());
    entries.filter(|entry| modules.iter().all(|module| matched(entry, module).is_none())).collect()
}

impl Standing<'_> {
    pub(super) fn may_use(&self, other: &Self) -> bool {
        let is_elsewhere = self.layer == other.layer && self.is_apart && self.part != other.part;
        self.layer >= other.layer && !is_elsewhere
    }
}

/// How closely an entry names a module, and which part of its layer that is.
///
/// `a::b` names the module and all below it, `a::b::*` only what is below it, where each child is a part by itself.
fn matched<'a>(entry: &str, module: &'a str) -> Option<(usize, &'a str)> {
    let outer = entry.strip_suffix("::*").unwrap_or(entry);
    let inside = module.strip_prefix(outer)?;
    let child = inside.strip_prefix("::").map(|inside| inside.split("::").next().unwrap_or(inside));
    let weight = 2 * outer.len();
    if outer != entry {
        return child.map(|child| (weight + 1, &module[..outer.len() + "::".len() + child.len()]));
    }
    (inside.is_empty() || child.is_some()).then(|| (weight, &module[..outer.len()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: [Layer; 3] = [
        Layer::apart(&["time", "wire", "peer::*"]),
        Layer::together(&["peer", "wire::high"]),
        Layer::together(&["crate"]),
    ];

    fn may(from: &str, to: &str) -> bool {
        standing(&LAYERS, from).unwrap().may_use(&standing(&LAYERS, to).unwrap())
    }

    #[test]
    fn the_closest_entry_counts() {
        let layer = |module| standing(&LAYERS, module).unwrap().layer;
        assert_eq!(["crate", "peer", "peer::a", "peer::a::b"].map(layer), [2, 1, 0, 0]);
        assert_eq!(["wire", "wire::low", "wire::high", "wire::high::er"].map(layer), [0, 0, 1, 1]);
        let error = standing(&LAYERS, "timer").unwrap_err();
        assert_eq!(error.to_string(), "timer stands in no layer");
    }

    #[test]
    fn arrows_point_down_and_parts_that_are_apart_do_not_meet() {
        assert!(may("peer", "time") && may("crate", "peer") && may("peer", "wire::high"));
        assert!(!may("time", "peer") && !may("peer", "crate") && !may("peer::a", "peer"));
        assert!(may("wire::a", "wire::b") && may("peer::a::b", "peer::a"));
        assert!(!may("peer::a", "peer::b") && !may("wire", "time"));
    }

    #[test]
    fn entries_that_name_nothing_are_found() {
        let modules = ["time", "wire", "peer", "peer::a", "crate"].map(str::to_owned);
        assert_eq!(unused(&LAYERS, &modules), ["wire::high"]);
    }
}
