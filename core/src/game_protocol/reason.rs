//! Why connections do not open, and why they end.

error_enum! {
    /// Why a connection could not be opened.
    #[non_exhaustive]
    pub enum ConnectFailure {
        /// No challenge came.
        NoAnswer => "the server does not answer",
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
