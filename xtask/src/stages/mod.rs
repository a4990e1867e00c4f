//! All stages, with the purpose, needs and tier of each.

mod bevy;
mod boards;
mod lints;
mod packages;
mod suites;

pub use self::boards::{FUZZ, SIZE};
use crate::stage::Stage;

/// Returns all stages, lower tiers first. Of the stages that can start, the first does, so stages with a long preparation
/// precede others of their tier.
pub fn all() -> Vec<Stage> {
    let mut stages = lints::checks_of_texts().to_vec();
    stages.extend(lints::lints());
    stages.extend(suites::tests());
    stages.extend(suites::tests_of_all_peers());
    stages.extend(packages::packages());
    stages.extend(boards::boards());
    stages.extend(boards::generated_input());
    stages.extend(packages::workspaces());
    stages.extend(packages::products());
    stages
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::stage::{Tier, of_tier};

    fn names(tier: Tier) -> BTreeSet<&'static str> {
        of_tier(&all(), tier).iter().map(|stage| stage.name).collect()
    }

    #[test]
    fn stages_have_unique_names() {
        let stages = all();
        let names: BTreeSet<_> = stages.iter().map(|stage| stage.name).collect();
        assert_eq!(names.len(), stages.len());
    }

    #[test]
    fn ci_runs_every_stage_of_check_and_test_or_its_larger_stage() {
        let larger: Vec<_> = all().iter().filter_map(|stage| Some((stage.name, stage.part_of?))).collect();
        for stage in names(Tier::Test).union(&names(Tier::Check)) {
            let whole = larger.iter().find(|(part, _)| part == stage).map_or(*stage, |(_, whole)| *whole);
            assert!([*stage, whole].iter().any(|name| names(Tier::Ci).contains(name)), "{stage}");
        }
    }

    #[test]
    fn a_stage_and_its_part_are_never_in_one_tier() {
        assert!(names(Tier::Test).contains("interop-smoke") && !names(Tier::Ci).contains("interop-smoke"));
        assert!(names(Tier::Ci).contains("parts") && !names(Tier::Nightly).contains("parts"));
        for stage in all().iter().filter(|stage| stage.part_of.is_some()) {
            assert!(all().iter().any(|other| stage.part_of == Some(other.name)), "{}", stage.name);
        }
    }

    #[test]
    fn every_stage_gives_a_reason_for_its_tier() {
        assert!(all().iter().all(|stage| !stage.why.is_empty()));
    }
}
