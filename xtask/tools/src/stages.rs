//! The stages of this program. Their other properties are in the list of all stages, `xtask::stages`.

use anyhow::{Context, Result};
use xtask::shell::Shell;

use crate::{
    bench, boards, citations, documents, english, fuzz, mcu, modules, mutants, package, relay_package,
    release, size,
};

type Run = fn(&Shell) -> Result<()>;

const STAGES: [(&str, Run); 17] = [
    ("modules", modules::stage),
    ("english", english::stage),
    ("citations", citations::stage),
    ("docs", documents::stage),
    ("semver", release::semver::stage),
    ("package", package::stage),
    ("mcu", mcu::stage),
    ("size", size::guard),
    ("size-all", size::all),
    ("instructions", |shell| bench::run(shell, &["instructions"])),
    ("boards", boards::stage),
    ("mutants", mutants::stage),
    ("fuzz", fuzz::stage),
    ("soak", fuzz::soak_stage),
    ("relay-package", relay_package::stage),
    ("release-files", release::files::stage),
    ("bench", bench::smoke),
];

/// Runs a stage. Its needs must be met.
pub(crate) fn run(shell: &Shell, name: &str) -> Result<()> {
    let stage = STAGES.iter().find(|(stage, _)| *stage == name);
    let (_, run) = stage.with_context(|| format!("the stage {name:?} is not implemented in this program"))?;
    run(shell)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_stages_match_those_that_xtask_delegates() {
        let own: BTreeSet<_> = STAGES.iter().map(|(name, _)| *name).collect();
        let all = xtask::stages::all();
        let left: BTreeSet<_> =
            all.iter().filter(|stage| stage.is_in_tools()).map(|stage| stage.name).collect();
        assert_eq!(own, left);
        assert!(run(&Shell::new().unwrap(), "fmt").unwrap_err().to_string().contains("\"fmt\""));
    }
}
