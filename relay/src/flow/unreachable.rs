//! Why a game server is unreachable, by what the network and this machine report.

counted! {
    /// Why a game server is unreachable.
    pub enum Unreachable {
        /// Nothing listens at its port.
        ClosedPort,
        /// A firewall on the way forbids it. Where a router only finds no way, Linux keeps that from a connected socket.
        Host,
        /// There is no route to its network now.
        Network,
        /// A rule of this machine, or of a router over IPv6, forbids it now.
        Forbidden,
        /// An error of the network that is none of these.
        Other,
    }
}

impl Unreachable {
    /// What it means, in the words of the log.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ClosedPort => "nothing listens at its port",
            Self::Host => "a firewall on the way does not let datagrams through",
            Self::Network => "there is no route to its network",
            Self::Forbidden => "a rule of this machine or of a router forbids it",
            Self::Other => "the network reports another error",
        }
    }

    /// Whether the game server itself is absent. The others are about the path, which may come back by itself.
    #[must_use]
    pub const fn is_absence(self) -> bool {
        match self {
            Self::ClosedPort => true,
            Self::Host | Self::Network | Self::Forbidden | Self::Other => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_listed_in_the_order_of_their_values() {
        for (index, reason) in Unreachable::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
