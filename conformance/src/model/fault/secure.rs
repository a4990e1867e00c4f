//! The faults of the model's secure connections.

/// A fault of the model's secure connections. The listed cases must detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecureFault {
    /// No fault.
    None,
    /// Found by 5101, 5118.
    KeyTail,
    /// Found by 5102.
    SuiteOdd,
    /// Found by 5103.
    MtuOnce,
    /// Found by 5104.
    FlagsOdd,
    /// Found by 5105.
    AnswersShortRequest,
    /// Found by 5106.
    AcceptsPlain,
    /// Found by 5107.
    AnswerBroken,
    /// Found by 5108.
    AnswerOfAnother,
    /// Found by 5109.
    TagUnchecked,
    /// Found by 5110.
    MtuUncovered,
    /// Found by 5111.
    GuidUncovered,
    /// Found by 5112.
    CookieUnchecked,
    /// Found by 5113.
    AnyPattern,
    /// Found by 5115.
    NewAnswer,
    /// Found by 5116.
    AnyNumber,
    /// Found by 5117.
    KeepsFirst,
    /// Found by 5119.
    RepeatsAnswer,
    /// Found by 5201.
    NeverAccepts,
    /// Found by 5202, 5203, 5204.
    OpensPlain,
    /// Found by 5205.
    ProofUnchecked,
    /// Found by 5206.
    ProofOptional,
    /// Found by 5207.
    TakesReplays,
    /// Found by 5208.
    IgnoresTag,
    /// Found by 5209.
    BadSealEnds,
    /// Found by 5210.
    DiesOfShortSeal,
    /// Found by 5211.
    CounterStands,
    /// Found by 5212.
    InOrderOnly,
    /// Found by 5213.
    WindowEndless,
    /// Found by 5214.
    AnyEpoch,
}
