//! What an admission remembers, for those who test that it is bounded.

use super::Admission;
use super::used::UsedTokens;

/// How much an admission remembers.
#[allow(dead_code, reason = "the relay itself does not ask")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Clients with a slot, and connections.
    pub(crate) slots: [usize; 2],
    /// Networks of clients, and those of connections.
    pub(crate) networks: [usize; 2],
    /// Tokens that have been used.
    pub(crate) tokens: usize,
    /// The rates of tokens.
    pub(crate) rates: usize,
}

#[allow(dead_code, reason = "the relay itself does not ask")]
impl Admission {
    /// Remembers at most so many used tokens.
    pub(crate) fn with_used_tokens_max(self, max: usize) -> Self {
        Self { used: UsedTokens::new(max), ..self }
    }

    /// See [`Usage`].
    pub(crate) fn usage(&self) -> Usage {
        let policy = self.policy();
        let (clients, connections) = (policy.clients.len(), policy.connections.len());
        Usage {
            slots: [clients.0, connections.0],
            networks: [clients.1, connections.1],
            tokens: self.used.len(),
            rates: self.rates.len().0,
        }
    }
}
