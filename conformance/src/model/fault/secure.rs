//! The faults of the model's secure connections.

/// A fault of the model's secure connections. The listed cases must detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecureFault {
    /// No fault.
    None,
    /// Detected by the cases 5101 and 5118.
    KeyTail,
    /// Detected by case 5102.
    SuiteOdd,
    /// Detected by case 5103.
    MtuOnce,
    /// Detected by case 5104.
    FlagsOdd,
    /// Detected by case 5105.
    AnswersShortRequest,
    /// Detected by case 5106.
    AcceptsPlain,
    /// Detected by case 5107.
    AnswerBroken,
    /// Detected by case 5108.
    AnswerOfAnother,
    /// Detected by case 5109.
    TagUnchecked,
    /// Detected by case 5110.
    MtuUncovered,
    /// Detected by case 5111.
    GuidUncovered,
    /// Detected by case 5112.
    CookieUnchecked,
    /// Detected by case 5113.
    AnyPattern,
    /// Detected by case 5115.
    NewAnswer,
    /// Detected by case 5116.
    AnyNumber,
    /// Detected by case 5117.
    KeepsFirst,
    /// Detected by case 5119.
    RepeatsAnswer,
    /// Detected by case 5201.
    NeverAccepts,
    /// Detected by the cases 5202, 5203 and 5204.
    OpensPlain,
    /// Detected by case 5205.
    ProofUnchecked,
    /// Detected by case 5206.
    ProofOptional,
    /// Detected by case 5207.
    TakesReplays,
    /// Detected by case 5208.
    IgnoresTag,
    /// Detected by case 5209.
    BadSealEnds,
    /// Detected by case 5210.
    DiesOfShortSeal,
    /// Detected by case 5211.
    CounterStands,
    /// Detected by case 5212.
    InOrderOnly,
    /// Detected by case 5213.
    WindowEndless,
    /// Detected by case 5214.
    AnyEpoch,
}
