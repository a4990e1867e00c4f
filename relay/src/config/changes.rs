//! What a new configuration changes in a running relay.

use std::collections::BTreeSet;
use std::fmt;

use toml::Table;

use super::layers::find;
use super::model::Config;
use super::options::{Change, OPTIONS, OptionKind};

/// The keys that differ between two configurations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Those that apply to clients from now on.
    pub applied: Vec<String>,
    /// Those that wait for a restart.
    pub after_restart: Vec<String>,
}

impl Changes {
    /// What differs.
    #[must_use]
    pub fn between(old: &Config, new: &Config) -> Self {
        let (old, new) = (old.to_table(), new.to_table());
        let mut changes = Self::default();
        for option in OPTIONS.iter().filter(|option| option.kind != OptionKind::Targets) {
            let list = match option.change {
                Change::Reload => &mut changes.applied,
                Change::Restart => &mut changes.after_restart,
            };
            list.extend(differing(&old, &new, option.key));
        }
        changes
    }

    /// Moves those that this relay cannot apply while it runs.
    pub(crate) fn defer(&mut self, needs_restart: impl Fn(&str) -> bool) {
        let deferred = self.applied.extract_if(.., |key| needs_restart(key));
        self.after_restart.extend(deferred);
    }
}

fn differing(old: &Table, new: &Table, key: &str) -> BTreeSet<String> {
    let keys: Vec<&str> = key.split('.').collect();
    let (old, new) = (find(old, &keys), find(new, &keys));
    let in_one = |(path, _): &(Vec<String>, _)| path.join(".");
    let gone = old.iter().filter(|entry| !new.contains(entry)).map(in_one);
    let come = new.iter().filter(|entry| !old.contains(entry)).map(in_one);
    gone.chain(come).collect()
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.applied.as_slice() {
            [] => f.write_str("nothing changed")?,
            applied => write!(f, "changed: {}", applied.join(", "))?,
        }
        match self.after_restart.as_slice() {
            [] => Ok(()),
            waiting => write!(f, "; after a restart: {}", waiting.join(", ")),
        }
    }
}
