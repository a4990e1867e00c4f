//! Why connections do not open, and why they end.

error_enum! {
    /// Why a connection could not be opened.
    #[non_exhaustive]
    pub enum ConnectFailure {
        /// No challenge came.
        NoAnswer => "the server does not answer",
        /// The system or a router reports that nothing can be reached at the address: nothing listens at the port, or no route
        /// leads to the host. Only drivers that call
        /// [`handle_unreachable`](crate::endpoint::Peer::handle_unreachable) notice that; elsewhere it is [`NoAnswer`](Self::NoAnswer).
        Unreachable => "nothing listens at this address, or no route leads there",
        /// The application gave up.
        Cancelled => "the attempt was cancelled",
    }
}

error_enum! {
    /// Why a connection ended.
    #[non_exhaustive]
    pub enum DisconnectReason {
        /// This application asked for it.
        Local => "this side disconnected",
        /// The other peer sent END. A client that is told so before anything else came was not let in.
        Remote => "the other peer disconnected",
        /// The other peer fell silent.
        Lost => "the other peer fell silent",
        /// A reliable message of the other peer can never fit into the memory that one connection may take.
        MessageTooLarge => "a message of the other peer is larger than a connection may hold",
        /// The other peer began a reliable message and never finished it.
        MessageUnfinished => "the other peer began a message and never finished it",
    }
}
