//! The layers of a crate: a file may use its own layer and those below it.

use anyhow::{Result, bail};

use super::table::{Layer, Never};

/// Where a module stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing<'a> {
    /// The number of the layer, 0 for the lowest.
    pub(super) layer: usize,
    /// What of the layer it belongs to: in a layer whose parts are apart, others are out of reach.
    part: &'a str,
    is_apart: bool,
    /// Whether the entry is `a::*`, which places everything in `a`.
    is_each: bool,
}

/// The standing of a module; an error if no entry names it.
pub(super) fn standing<'a>(layers: &[Layer], module: &'a str) -> Result<Standing<'a>> {
    let mut best: Option<(usize, Standing)> = None;
    for (number, layer) in layers.iter().enumerate() {
        for entry in layer.modules {
            let Some((weight, part)) = matched(entry, module) else { continue };
            if best.is_none_or(|(other, _)| weight > other) {
                let is_each = entry.ends_with("::*");
                best = Some((weight, Standing { layer: number, part, is_apart: layer.is_apart, is_each }));
            }
        }
    }
    let Some((_, standing)) = best else { bail!("{module} stands in no layer") };
    // A folder whose files stand in several layers names each of them, so that a new one is placed by somebody.
    let is_only_folder = standing.part != module && !standing.is_each;
    if is_only_folder && is_split(layers, standing.part, standing.layer) {
        bail!("{module} stands in no layer of its own, but {} has files in several", standing.part);
    }
    Ok(standing)
}

/// Whether something in a folder stands in another layer than the folder.
fn is_split(layers: &[Layer], folder: &str, layer: usize) -> bool {
    let others = layers.iter().enumerate().filter(|(number, _)| *number != layer);
    let is_inside = |entry: &str| entry.strip_prefix(folder).is_some_and(|rest| rest.starts_with("::"));
    others.flat_map(|(_, layer)| layer.modules).any(|entry| is_inside(entry))
}

/// Whether a rule keeps one module from using another.
pub(super) fn forbids(rule: &Never, user: &str, used: &str) -> bool {
    let names = |entries: &[&str], module| entries.iter().any(|entry| matched(entry, module).is_some());
    names(rule.from, user) && names(rule.to, used)
}

/// The entries of a rule that name no module, which are mistakes.
pub(super) fn unused_of<'a>(rule: &'a Never, modules: &'a [String]) -> impl Iterator<Item = &'a str> {
    let entries = rule.from.iter().chain(rule.to).copied();
    entries.filter(|entry| modules.iter().all(|module| matched(entry, module).is_none()))
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
        Layer::apart(&["time", "wire", "wire::low", "peer::*"]),
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
        let error = |module| standing(&LAYERS, module).unwrap_err().to_string();
        assert_eq!(error("timer"), "timer stands in no layer");
    }

    #[test]
    fn a_new_file_of_a_folder_with_several_layers_stands_in_none() {
        let error = |module| standing(&LAYERS, module).unwrap_err().to_string();
        let expected = "wire::new stands in no layer of its own, but wire has files in several";
        assert_eq!(error("wire::new"), expected);
        assert!(standing(&LAYERS, "wire::low::new").is_ok() && standing(&LAYERS, "peer::new").is_ok());
    }

    #[test]
    fn arrows_point_down_and_parts_that_are_apart_do_not_meet() {
        assert!(may("peer", "time") && may("crate", "peer") && may("peer", "wire::high"));
        assert!(!may("time", "peer") && !may("peer", "crate") && !may("peer::a", "peer"));
        assert!(may("wire::low::a", "wire::low::b") && may("peer::a::b", "peer::a"));
        assert!(!may("peer::a", "peer::b") && !may("wire", "time"));
    }

    #[test]
    fn entries_that_name_nothing_are_found() {
        let modules = ["time", "wire", "peer", "peer::a", "crate"].map(str::to_owned);
        assert_eq!(unused(&LAYERS, &modules), ["wire::low", "wire::high"]);
    }
}
