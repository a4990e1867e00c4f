//! Findings of the judges.

use crate::rules::Rule;
use std::fmt;

/// A rule that a capture breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule.
    pub rule: Rule,
    /// The index of the datagram in the capture, unless the rule is broken by a missing datagram.
    pub record: Option<usize>,
    /// The offset in the datagram.
    pub offset: usize,
    /// The finding.
    pub why: String,
}

impl Broken {
    /// A rule that a datagram breaks.
    #[must_use]
    pub fn at(rule: Rule, record: usize, offset: usize, why: impl Into<String>) -> Self {
        Self { rule, record: Some(record), offset, why: why.into() }
    }

    /// A rule that is broken because a datagram is missing.
    #[must_use]
    pub fn missing(rule: Rule, why: impl Into<String>) -> Self {
        Self { rule, record: None, offset: 0, why: why.into() }
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
