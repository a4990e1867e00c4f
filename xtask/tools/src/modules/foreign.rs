//! What a path means outside of its crate, through the names that imports give to other crates.

use super::tree::{ModuleId, Tree};

/// How many imports one name may lead through.
const STEPS: usize = 5;

/// All paths that this one may be, from the names of other crates on.
pub(super) fn meanings(tree: &Tree, module: ModuleId, path: &[String]) -> Vec<Vec<String>> {
    let mut found = vec![path.to_vec()];
    follow(tree, module, path, STEPS, &mut found);
    found
}

fn follow(tree: &Tree, module: ModuleId, path: &[String], steps: usize, found: &mut Vec<Vec<String>>) {
    let mut at = module;
    let mut rest = path;
    while let [first, after @ ..] = rest {
        at = match (first.as_str(), tree.modules[at].parent) {
            ("crate", _) => 0,
            ("super", Some(parent)) => parent,
            ("self", _) => at,
            (name, _) => match tree.modules[at].children.get(name) {
                Some(child) => *child,
                None => break,
            },
        };
        rest = after;
    }
    let ([first, after @ ..], Some(steps)) = (rest, steps.checked_sub(1)) else { return };
    for import in &tree.modules[at].imports {
        let behind = match &import.name {
            Some(name) if name == first => after,
            None if import.is_glob => rest,
            Some(_) | None => continue,
        };
        let meaning: Vec<_> = import.path.iter().chain(behind).cloned().collect();
        if !found.contains(&meaning) {
            found.push(meaning.clone());
            follow(tree, at, &meaning, steps, found);
        }
    }
}
