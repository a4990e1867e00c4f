//! Stages: named parts of a test run, each of a tier.

use anyhow::{Context, Error, Result, bail};

use crate::rerun::Runner;
use crate::schedule::{Constraints, Load, Resource};
use crate::setup::Need;
use crate::shell::Shell;
use crate::tools_of_xtask;

/// How often a stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Before a commit.
    Check,
    /// The tests of every part that need no long preparation.
    Test,
    /// All that a change must pass.
    Ci,
    /// All that there is.
    Nightly,
}

impl Tier {
    /// All tiers, the smallest first.
    pub const ALL: [Self; 4] = [Self::Check, Self::Test, Self::Ci, Self::Nightly];

    /// Its name, which is that of the command.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Test => "test",
            Self::Ci => "ci",
            Self::Nightly => "nightly",
        }
    }

    /// Whether its command runs the stages of this other tier. `test` is for what `check` does not look at.
    pub fn runs(self, other: Self) -> bool {
        other <= self && !(self == Self::Test && other == Self::Check)
    }
}

/// Where a stage runs.
#[derive(Clone, Copy)]
enum Run {
    Here(fn(&Shell) -> Result<()>),
    /// In the program of the package `xtask-tools`, by the name of the stage.
    InTools,
}

/// A named part of a test run.
#[derive(Clone)]
pub struct Stage {
    /// Its name in commands and tables.
    pub name: &'static str,
    /// The thing that is checked, in a few words.
    pub about: &'static str,
    /// How often it runs.
    pub tier: Tier,
    /// Why it is of this tier.
    pub why: &'static str,
    /// The stage that does the same and more, and takes its place where both would run.
    pub part_of: Option<&'static str>,
    own_needs: &'static [Need],
    load: Load,
    resource: Option<Resource>,
    run: Run,
    /// The runner of its tests, where those that fail run once more.
    pub rerun: Option<Runner>,
}

impl Stage {
    /// A stage that keeps a core busy.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        own_needs: &'static [Need],
        run: fn(&Shell) -> Result<()>,
    ) -> Self {
        Self::with(name, about, own_needs, Run::Here(run))
    }

    /// The same, which runs in the program of the package `xtask-tools`.
    pub const fn in_tools(name: &'static str, about: &'static str, own_needs: &'static [Need]) -> Self {
        Self::with(name, about, own_needs, Run::InTools)
    }

    const fn with(name: &'static str, about: &'static str, own_needs: &'static [Need], run: Run) -> Self {
        let (tier, why, part_of) = (Tier::Nightly, "", None);
        Self {
            name,
            about,
            tier,
            why,
            part_of,
            own_needs,
            load: Load::Full,
            resource: None,
            run,
            rerun: None,
        }
    }

    /// The same, of this tier and for this reason.
    pub const fn tier(mut self, tier: Tier, why: &'static str) -> Self {
        self.tier = tier;
        self.why = why;
        self
    }

    /// The same, which is left out where this larger one runs.
    pub const fn part_of(mut self, larger: &'static str) -> Self {
        self.part_of = Some(larger);
        self
    }

    /// The same, which takes so much of the machine.
    pub const fn load(mut self, load: Load) -> Self {
        self.load = load;
        self
    }

    /// The same, which needs this for itself.
    pub const fn uses(mut self, resource: Resource) -> Self {
        self.resource = Some(resource);
        self
    }

    /// The same, whose tests that fail run once more, by this runner.
    pub const fn reruns(mut self, runner: Runner) -> Self {
        self.rerun = Some(runner);
        self
    }

    /// All that it needs.
    pub fn needs(&self) -> Vec<Need> {
        let program = self.is_in_tools().then_some(Need::Tools);
        program.into_iter().chain(self.own_needs.iter().copied()).collect()
    }

    /// Whether it runs in the program of the package `xtask-tools`.
    pub const fn is_in_tools(&self) -> bool {
        matches!(self.run, Run::InTools)
    }

    /// The constraints of a job that runs it after those jobs.
    pub fn constraints(&self, after: Vec<usize>) -> Constraints {
        Constraints { load: self.load, resource: self.resource, after }
    }

    /// Runs it; its needs are there.
    pub fn run(&self, shell: &Shell) -> Result<()> {
        match self.run {
            Run::Here(run) => run(shell),
            Run::InTools => tools_of_xtask::stage(shell, self.name),
        }
    }

    /// A failure of the stage, with its name.
    pub fn explain(&self, error: Error) -> Error {
        error.context(format!("the stage {:?} failed", self.name))
    }
}

/// The stages that the command of a tier runs.
pub fn of_tier(stages: &[Stage], tier: Tier) -> Vec<Stage> {
    let has_larger =
        |stage: &Stage| stages.iter().any(|other| stage.part_of == Some(other.name) && tier.runs(other.tier));
    stages.iter().filter(|stage| tier.runs(stage.tier) && !has_larger(stage)).cloned().collect()
}

/// The stages of these names, in their own order and each once.
pub fn find(stages: &[Stage], names: &[String]) -> Result<Vec<Stage>> {
    let known: Vec<_> = stages.iter().map(|stage| stage.name).collect();
    let unknown = names.iter().find(|name| !known.contains(&name.as_str()));
    if let Some(name) = unknown {
        bail!("there is no stage {name:?}; there are {}", known.join(", "));
    }
    let found: Vec<_> =
        stages.iter().filter(|stage| names.iter().any(|name| name == stage.name)).cloned().collect();
    found.first().context("no stage is named")?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages() -> [Stage; 5] {
        [
            Stage::new("good", "passes", &[], |_| Ok(())).tier(Tier::Check, ""),
            Stage::new("bad", "fails", &[], |_| bail!("broken")).tier(Tier::Test, ""),
            Stage::new("small", "is a part", &[], |_| Ok(())).tier(Tier::Test, "").part_of("large"),
            Stage::new("large", "does more", &[], |_| Ok(())).tier(Tier::Ci, ""),
            Stage::in_tools("slow", "takes hours", &[Need::Node]).tier(Tier::Nightly, ""),
        ]
    }

    fn names(stages: &[Stage]) -> Vec<&str> {
        stages.iter().map(|stage| stage.name).collect()
    }

    #[test]
    fn a_stage_is_found_by_its_name() {
        let found = find(&stages(), &["bad".to_owned()]).unwrap();
        assert_eq!(found[0].about, "fails");
        let error = find(&stages()[..2], &["worse".to_owned()]).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "there is no stage \"worse\"; there are good, bad");
    }

    #[test]
    fn several_stages_are_found_in_their_order_and_once() {
        let wanted = ["slow", "good", "slow"].map(str::to_owned);
        assert_eq!(names(&find(&stages(), &wanted).unwrap()), ["good", "slow"]);
        assert!(find(&stages(), &[]).is_err());
    }

    #[test]
    fn a_tier_has_what_is_below_it_and_no_part_beside_the_whole() {
        let of = |tier| of_tier(&stages(), tier).iter().map(|stage| stage.name).collect::<Vec<_>>();
        assert_eq!(of(Tier::Check), ["good"]);
        assert_eq!(of(Tier::Test), ["bad", "small"]);
        assert_eq!(of(Tier::Ci), ["good", "bad", "large"]);
        assert_eq!(of(Tier::Nightly), ["good", "bad", "large", "slow"]);
    }

    #[test]
    fn a_stage_in_the_tools_needs_these() {
        assert_eq!(stages()[4].needs(), [Need::Tools, Need::Node]);
        assert!(stages()[0].needs().is_empty());
    }
}
