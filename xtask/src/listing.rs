//! Lists of the stages: for a terminal, and as a table for CONTRIBUTING.md.

use std::fmt::Write;

use crate::history;
use crate::shell::Shell;
use crate::stage::{Stage, Tier, of_tier};

/// Returns a line per stage: its tier, last duration, purpose and needs.
pub fn list(shell: &Shell, stages: &[Stage]) -> String {
    let lines = stages.iter().map(|stage| {
        let seconds = history::seconds(shell, stage.name);
        let seconds = seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.0} s"));
        let needs: Vec<_> = stage.needs().iter().map(|need| need.name()).collect();
        let needs = if needs.is_empty() { String::new() } else { format!(" (needs {})", needs.join(", ")) };
        format!("{:<15} {:<8} {seconds:>7}  {}{needs}", stage.name, stage.tier.name(), stage.about)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a row per stage: the commands that run it, and the reason for its tier.
pub fn table(stages: &[Stage]) -> String {
    let mut text = "| stage | checks that | `check` | `test` | `ci` | `nightly` | why there |\n|---|---|---|---|---|---|---|".to_owned();
    let tiers = Tier::ALL.map(|tier| of_tier(stages, tier));
    for stage in stages {
        let marks = tiers.iter().map(|tier| tier.iter().any(|other| other.name == stage.name));
        let marks: Vec<_> = marks.map(|is_in| if is_in { "x" } else { "" }).collect();
        // Writing to a string cannot fail.
        let _ =
            write!(text, "\n| `{}` | {} | {} | {} |", stage.name, stage.about, marks.join(" | "), stage.why);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Need;

    fn stages() -> [Stage; 2] {
        [
            Stage::new("quick", "all is well", &[], |_| Ok(())).tier(Tier::Check, "a second"),
            Stage::new("never-ran", "more is well", &[Need::Node, Need::Qemu], |_| Ok(()))
                .tier(Tier::Ci, "slow"),
        ]
    }

    #[test]
    fn the_list_and_the_table_have_a_line_for_each_stage() {
        let expected = "\
quick           check          -  all is well
never-ran       ci             -  more is well (needs node, qemu)";
        assert_eq!(list(&Shell::new().unwrap(), &stages()), expected);
        let expected = "\
| stage | checks that | `check` | `test` | `ci` | `nightly` | why there |
|---|---|---|---|---|---|---|
| `quick` | all is well | x |  | x | x | a second |
| `never-ran` | more is well |  |  | x | x | slow |";
        assert_eq!(table(&stages()), expected);
    }
}
