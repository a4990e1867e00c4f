//! The named scripts and the table of documented differences.

use crate::script::{Script, ScriptError, parse};

/// The contents of `differences.txt`.
pub const DIFFERENCES: &str = include_str!("../differences.txt");

const FILES: [&str; 5] = [
    include_str!("../scripts/connecting.txt"),
    include_str!("../scripts/messages.txt"),
    include_str!("../scripts/paths.txt"),
    include_str!("../scripts/ending.txt"),
    include_str!("../scripts/unconnected.txt"),
];

/// Returns all named scripts.
pub fn all() -> Result<Vec<Script>, ScriptError> {
    let scripts: Result<Vec<_>, _> = FILES.into_iter().map(parse).collect();
    Ok(scripts?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn named_scripts_are_valid_and_have_different_names() {
        let scripts = all().expect("scripts of the language");
        let names: BTreeSet<_> = scripts.iter().map(|script| &script.name).collect();
        assert!(names.len() >= 40, "{} scripts", names.len());
        assert_eq!(names.len(), scripts.len());
    }
}
