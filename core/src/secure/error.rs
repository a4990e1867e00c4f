//! Why something was not accepted.

error_enum! {
    /// Why a step of a handshake was refused (docs/secure.md#the-handshake).
    #[non_exhaustive]
    pub enum HandshakeError {
        /// The key or the challenge belongs to another suite, as that of the original's own security.
        OtherSuite => "the other peer has another kind of security",
        /// The server's key is not the one that the client trusts.
        KeyMismatch => "the server has another key than the one that is trusted",
        /// A field has another length than it should, or a value that means nothing.
        Malformed => "a field of the handshake is malformed",
        /// The tag does not fit: something was changed on the way, or the other peer has another key.
        DoesNotOpen => "a message of the handshake does not open",
        /// Somebody on the path made the client use another version of the protocol than it would have.
        Downgrade => "the version of the protocol was changed on the way",
        /// One attempt has made or tried as many of them as it may.
        TooMany => "the connection attempt has got too many different answers",
        /// What reply 2 says in clear is not what the server said.
        Contradiction => "reply 2 was changed on the way",
    }
}

error_enum! {
    /// What is wrong with the client's part of the connection request; the value is the type of packet 0A.
    #[non_exhaustive]
    pub enum IdentityError {
        /// The server requires an identity, and there is none.
        Missing => "the client did not show its identity",
        /// The identity does not open, or the proof does not fit.
        Invalid => "the client's identity or proof is not right",
    }
}

error_enum! {
    /// Why a sealed datagram was not opened.
    #[non_exhaustive]
    pub enum OpenError {
        /// It is too short, or its first bit is not set.
        Malformed => "the datagram is no sealed one",
        /// It was opened before, or is too old to know.
        Replayed => "the datagram was opened before, or is too old",
        /// Its tag does not fit, or it is of an epoch whose key is not there.
        Forged => "the datagram was not sealed by the other peer, or was changed on the way",
    }
}
