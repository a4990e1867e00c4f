//! Stages: named parts of a test run.

use anyhow::{Context, Error, Result};

use crate::schedule::{Constraints, Load, Resource};
use crate::setup::Need;
use crate::shell::Shell;

/// A named part of a test run.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) needs: &'static [Need],
    load: Load,
    resource: Option<Resource>,
    run: fn(&Shell) -> Result<()>,
}

impl Stage {
    /// A stage that keeps a core busy.
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        needs: &'static [Need],
        run: fn(&Shell) -> Result<()>,
    ) -> Self {
        Self { name, about, needs, load: Load::Full, resource: None, run }
    }

    /// The same, which takes so much of the machine.
    pub(crate) const fn load(mut self, load: Load) -> Self {
        self.load = load;
        self
    }

    /// The same, which needs this for itself.
    pub(crate) const fn uses(mut self, resource: Resource) -> Self {
        self.resource = Some(resource);
        self
    }

    pub(crate) fn constraints(&self, after: Vec<usize>) -> Constraints {
        Constraints { load: self.load, resource: self.resource, after }
    }

    pub(crate) fn run(&self, shell: &Shell) -> Result<()> {
        (self.run)(shell)
    }

    /// A failure of the stage, with its name.
    pub(crate) fn explain(&self, error: Error) -> Error {
        error.context(format!("the stage {:?} failed", self.name))
    }
}

pub(crate) fn list(stages: &[Stage]) {
    for stage in stages {
        println!("{:<12} {}", stage.name, stage.about);
    }
}

pub(crate) fn find<'s>(stages: &'s [Stage], name: &str) -> Result<&'s Stage> {
    let names: Vec<_> = stages.iter().map(|stage| stage.name).collect();
    let found = stages.iter().find(|stage| stage.name == name);
    found.with_context(|| format!("there is no stage {name:?}; there are {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 2] = [
        Stage::new("good", "passes", &[], |_| Ok(())),
        Stage::new("bad", "fails", &[], |_| anyhow::bail!("broken")),
    ];

    #[test]
    fn a_stage_is_found_by_its_name() {
        assert_eq!(find(&STAGES, "bad").unwrap().about, "fails");
        let error = find(&STAGES, "worse").map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "there is no stage \"worse\"; there are good, bad");
    }
}
