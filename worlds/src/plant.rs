//! Planted faults: deliberate faults of a world that its checks must find.

use clap::ValueEnum;

/// A deliberate fault of the simulated drivers. There is at least one for each guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Plant {
    /// A message that arrived is not delivered to the server's application.
    LosesMessage,
    /// Messages from a client that has disconnected are not delivered to the server's application.
    LosesLastMessages,
    /// A message is delivered to the server's application twice.
    DoublesMessage,
    /// Two messages are delivered to the server's application in the wrong order.
    SwapsMessages,
    /// A byte of a message is changed.
    ChangesByte,
    /// The relay sends the datagrams of a flow to the client of another flow.
    MixesFlows,
    /// The relay refuses to resume the flow of a client that reconnects.
    ForgetsFlow,
    /// The relay's driver never handles timeouts of its flows.
    KeepsFlow,
    /// After 20 messages at the server, all datagrams from the server and the front to clients are dropped.
    StarvesClient,
    /// The clients' driver handles no timeouts.
    MissesTimeouts,
    /// The clients do not disconnect at the end.
    KeepsConnection,
}

impl Plant {
    /// Returns all planted faults.
    #[must_use]
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Returns the name of the fault on the command line.
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
