//! Findings of the judges.

use crate::capture::End;
use crate::rules::Rule;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The side that broke a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The client.
    Client,
    /// The server.
    Server,
    /// One side or both; the capture does not show which.
    #[default]
    Both,
}

impl By {
    /// Returns its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Both => "both",
        }
    }
}

impl From<End> for By {
    fn from(end: End) -> Self {
        match end {
            End::Client => Self::Client,
            End::Server => Self::Server,
        }
    }
}

/// A finding: a rule that a capture breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule.
    pub rule: Rule,
    /// The side that broke it.
    pub by: By,
    /// The index of the datagram in the capture; `None` if the rule is broken by a missing datagram.
    pub record: Option<usize>,
    /// The offset in the datagram.
    pub offset: usize,
    /// The observation.
    pub why: String,
}

impl Broken {
    /// Creates a finding about a datagram.
    #[must_use]
    pub fn at(rule: Rule, by: impl Into<By>, record: usize, offset: usize, why: impl Into<String>) -> Self {
        Self { rule, by: by.into(), record: Some(record), offset, why: why.into() }
    }

    /// Creates a finding about a missing datagram.
    #[must_use]
    pub fn missing(rule: Rule, by: impl Into<By>, why: impl Into<String>) -> Self {
        Self { rule, by: by.into(), record: None, offset: 0, why: why.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule.name, self.why)?;
        if let Some(record) = self.record {
            write!(f, " (datagram {record}, offset {:#x})", self.offset)?;
        }
        Ok(())
    }
}
