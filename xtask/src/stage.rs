//! Stages: named parts of a test run, each in a tier.

use anyhow::{Context, Error, Result, bail};

use crate::results::Runner;
use crate::schedule::{Constraints, Load, Resource};
use crate::setup::Need;
use crate::shell::Shell;
use crate::{tools_of_xtask, workspaces};

/// Tiers of stages, by how often they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Before a commit.
    Check,
    /// Tests of every part that need no long preparation.
    Test,
    /// Everything that a change must pass.
    Ci,
    /// All stages.
    Nightly,
}

impl Tier {
    /// All tiers, smallest first.
    pub const ALL: [Self; 4] = [Self::Check, Self::Test, Self::Ci, Self::Nightly];

    /// Returns its name, which is also the name of its command.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Test => "test",
            Self::Ci => "ci",
            Self::Nightly => "nightly",
        }
    }

    /// Returns true if the command of this tier also runs the stages of `other`. `test` does not include `check`.
    pub fn runs(self, other: Self) -> bool {
        other <= self && !(self == Self::Test && other == Self::Check)
    }
}

/// The code of a stage.
#[derive(Clone, Copy)]
enum Run {
    Here(fn(&Shell) -> Result<()>),
    /// A stage of the package `xtask-tools`, by name.
    InTools,
    /// The lints and tests of the workspace in the folder with the stage's name.
    InWorkspace,
}

/// A named part of a test run.
#[derive(Clone)]
pub struct Stage {
    /// Its name in commands and tables.
    pub name: &'static str,
    /// A short description of the check.
    pub about: &'static str,
    /// The tier, which determines how often it runs.
    pub tier: Tier,
    /// The reason for its tier.
    pub why: &'static str,
    /// The larger stage that includes this stage, and replaces it if both would run.
    pub part_of: Option<&'static str>,
    own_needs: &'static [Need],
    load: Load,
    resource: Option<Resource>,
    run: Run,
    /// The runner that repeats its failed tests.
    pub rerun: Option<Runner>,
}

impl Stage {
    /// Creates a stage that keeps a core busy.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        own_needs: &'static [Need],
        run: fn(&Shell) -> Result<()>,
    ) -> Self {
        Self::with(name, about, own_needs, Run::Here(run))
    }

    /// Creates a stage that runs in the program of the package `xtask-tools`, and keeps a core busy.
    pub const fn in_tools(name: &'static str, about: &'static str, own_needs: &'static [Need]) -> Self {
        Self::with(name, about, own_needs, Run::InTools)
    }

    /// Creates a stage that checks the workspace in the folder with this name: formatting, lints and tests.
    pub const fn in_workspace(name: &'static str, about: &'static str, own_needs: &'static [Need]) -> Self {
        Self::with(name, about, own_needs, Run::InWorkspace)
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

    /// Sets the tier and the reason for it.
    pub const fn tier(mut self, tier: Tier, why: &'static str) -> Self {
        self.tier = tier;
        self.why = why;
        self
    }

    /// Sets the larger stage that replaces this stage if both would run.
    pub const fn part_of(mut self, larger: &'static str) -> Self {
        self.part_of = Some(larger);
        self
    }

    /// Sets the load.
    pub const fn load(mut self, load: Load) -> Self {
        self.load = load;
        self
    }

    /// Sets the exclusive resource.
    pub const fn uses(mut self, resource: Resource) -> Self {
        self.resource = Some(resource);
        self
    }

    /// Sets the runner that repeats failed tests.
    pub const fn reruns(mut self, runner: Runner) -> Self {
        self.rerun = Some(runner);
        self
    }

    /// Returns all its needs.
    pub fn needs(&self) -> Vec<Need> {
        let own = match self.run {
            Run::Here(_) => None,
            Run::InTools => Some(Need::Tools),
            Run::InWorkspace => Some(Need::Components),
        };
        own.into_iter().chain(self.own_needs.iter().copied()).collect()
    }

    /// Returns true if it runs in the program of the package `xtask-tools`.
    pub const fn is_in_tools(&self) -> bool {
        matches!(self.run, Run::InTools)
    }

    /// Returns the constraints of a job that runs the stage after the jobs `after`.
    pub fn constraints(&self, after: Vec<usize>) -> Constraints {
        Constraints { load: self.load, resource: self.resource, after }
    }

    /// Runs the stage. Its needs must be met.
    pub fn run(&self, shell: &Shell) -> Result<()> {
        match self.run {
            Run::Here(run) => run(shell),
            Run::InTools => tools_of_xtask::stage(shell, self.name),
            Run::InWorkspace => workspaces::check(shell, self.name),
        }
    }

    /// Adds the name of the stage to a failure.
    pub fn explain(&self, error: Error) -> Error {
        error.context(format!("the stage {:?} failed", self.name))
    }
}

/// Returns the stages that the command of a tier runs.
pub fn of_tier(stages: &[Stage], tier: Tier) -> Vec<Stage> {
    let has_larger =
        |stage: &Stage| stages.iter().any(|other| stage.part_of == Some(other.name) && tier.runs(other.tier));
    stages.iter().filter(|stage| tier.runs(stage.tier) && !has_larger(stage)).cloned().collect()
}

/// Returns the stages with these names, in their own order and each once.
pub fn find(stages: &[Stage], names: &[String]) -> Result<Vec<Stage>> {
    let known: Vec<_> = stages.iter().map(|stage| stage.name).collect();
    let unknown = names.iter().find(|name| !known.contains(&name.as_str()));
    if let Some(name) = unknown {
        bail!("there is no stage {name:?}; the stages are {}", known.join(", "));
    }
    let found: Vec<_> =
        stages.iter().filter(|stage| names.iter().any(|name| name == stage.name)).cloned().collect();
    found.first().context("name at least one stage")?;
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
    fn selected_stages_are_unique_and_in_the_order_of_the_table() {
        let wanted = ["slow", "good", "slow"].map(str::to_owned);
        assert_eq!(names(&find(&stages(), &wanted).unwrap()), ["good", "slow"]);
        assert!(find(&stages(), &[]).is_err());
        let error = find(&stages()[..2], &["worse".to_owned()]).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "there is no stage \"worse\"; the stages are good, bad");
    }

    #[test]
    fn ci_and_nightly_include_lower_tiers_and_omit_parts_of_their_stages() {
        let of = |tier| of_tier(&stages(), tier).iter().map(|stage| stage.name).collect::<Vec<_>>();
        assert_eq!(of(Tier::Check), ["good"]);
        assert_eq!(of(Tier::Test), ["bad", "small"]);
        assert_eq!(of(Tier::Ci), ["good", "bad", "large"]);
        assert_eq!(of(Tier::Nightly), ["good", "bad", "large", "slow"]);
    }
}
