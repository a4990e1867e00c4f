//! The faults of the model's secure connections.

/// A fault of the model's secure connections, and the cases that must detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecureFault {
    /// No fault.
    None,
    /// Appends a byte to reply 1. Cases 5101 and 5118.
    KeyTail,
    /// Names an unknown cipher suite in its key. Case 5102.
    SuiteOdd,
    /// Does not put the MTU of each reply 1 into its key. Case 5103.
    MtuOnce,
    /// Sets an unused flag in its key. Case 5104.
    FlagsOdd,
    /// Answers a request 1 of fewer than 96 bytes. Case 5105.
    AnswersShortRequest,
    /// Accepts request 2 without a challenge. Case 5106.
    AcceptsPlain,
    /// Sends an answer that cannot be decrypted. Case 5107.
    AnswerBroken,
    /// Seals an MTU in the answer that differs from the unencrypted MTU of reply 2. Case 5108.
    AnswerOfAnother,
    /// Accepts challenges that fail authentication. Case 5109.
    TagUnchecked,
    /// Does not authenticate the MTU of request 2. Case 5110.
    MtuUncovered,
    /// Does not authenticate the GUID of request 2. Case 5111.
    GuidUncovered,
    /// Accepts a challenge with a wrong cookie. Case 5112.
    CookieUnchecked,
    /// Accepts unknown patterns in challenges. Case 5113.
    AnyPattern,
    /// Answers a repeated request 2 with a different reply 2. Case 5115.
    NewAnswer,
    /// Answers a second challenge without a higher number. Case 5116.
    AnyNumber,
    /// Ignores a second challenge with a higher number. Case 5117.
    KeepsFirst,
    /// Sends reply 2 eight times. Case 5119.
    RepeatsAnswer,
    /// Rejects the right proof. Case 5201.
    NeverAccepts,
    /// Accepts plain datagrams in a secure connection. Cases 5202, 5203 and 5204.
    OpensPlain,
    /// Accepts a wrong proof. Case 5205.
    ProofUnchecked,
    /// Accepts connection requests without a proof. Case 5206.
    ProofOptional,
    /// Accepts replayed datagrams. Case 5207.
    TakesReplays,
    /// Acknowledges sealed datagrams that fail authentication. Case 5208.
    IgnoresTag,
    /// Closes the connection after a datagram that fails authentication. Case 5209.
    BadSealEnds,
    /// Stops after a truncated sealed datagram. Case 5210.
    DiesOfShortSeal,
    /// Seals every datagram with the counter 0. Case 5211.
    CounterStands,
    /// Drops sealed datagrams that arrive out of order. Case 5212.
    InOrderOnly,
    /// Accepts sealed datagrams older than the window. Case 5213.
    WindowEndless,
    /// Accepts datagrams with another key epoch. Case 5214.
    AnyEpoch,
}
