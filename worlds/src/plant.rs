//! Faults that are put into a world on purpose, to show that its checks find them.

use clap::ValueEnum;

/// A fault of the simulated driver, one for each guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Plant {
    /// A message that arrived is not delivered to the server's application.
    LosesMessage,
    /// A message is delivered to the server's application twice.
    DoublesMessage,
    /// Two messages are delivered to the server's application in the wrong order.
    SwapsMessages,
    /// A byte of a message is changed.
    ChangesByte,
    /// The relay sends datagrams of one flow to the client of another one.
    MixesFlows,
    /// The relay forgets the flow of a client that may return.
    ForgetsFlow,
    /// The relay's driver never handles timeouts of its flows.
    KeepsFlow,
    /// The server's driver no longer sends to its first client.
    StarvesClient,
    /// The clients' driver calls no timeouts.
    MissesTimeouts,
    /// The server's driver drops a disconnection notification, and its timeouts are not handled after that.
    KeepsConnection,
}

impl Plant {
    /// Returns all of them.
    #[must_use]
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Returns its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
