//! The faults of the model of the Game Protocol.

/// A fault of the model of the Game Protocol. The listed cases must detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GameFault {
    /// No fault.
    None,
    /// Detected by case 4101.
    Mute,
    /// Detected by case 4102.
    LongPepper,
    /// Detected by the cases 4103 and 4106.
    OneKey,
    /// Detected by case 4104.
    NeverOpens,
    /// Detected by case 4105.
    AnySeasoning,
    /// Detected by case 4107.
    AcksStrangers,
    /// Detected by case 4108.
    AnswersShort,
    /// Detected by case 4109.
    PepperTwice,
    /// Detected by case 4110.
    OneClient,
    /// Detected by case 4111.
    SeasoningCloses,
    /// Detected by case 4112.
    SaltOnce,
    /// Detected by case 4113.
    LongSalts,
    /// Detected by case 4201.
    MuteAcks,
    /// Detected by case 4202.
    AckLong,
    /// Detected by case 4203.
    AckWithoutFin,
    /// Detected by case 4204.
    AckSwapped,
    /// Detected by case 4205.
    AckChunkZero,
    /// Detected by case 4206.
    AcksUnreliable,
    /// Detected by case 4207.
    AckOnce,
    /// Detected by case 4208.
    AcksLastOnly,
    /// Detected by case 4209.
    AcksAcks,
    /// Detected by case 4210.
    FlagsExact,
    /// Detected by case 4211.
    DropsOld,
    /// Detected by case 4212.
    NoWrap,
    /// Detected by case 4213.
    FromZeroOnly,
    /// Detected by case 4214.
    LateAcks,
    /// Detected by case 4215.
    ShortBodies,
    /// Detected by case 4216.
    DiesOfLongBody,
    /// Detected by case 4217.
    DiesOfShortChunk,
    /// Detected by case 4218.
    DiesOfEndless,
    /// Detected by case 4301.
    NeverResends,
    /// Detected by case 4302.
    ResendsWildly,
    /// Detected by case 4303.
    ResendsForever,
    /// Detected by case 4304.
    ResendsRenumbered,
    /// Detected by case 4305.
    AckExact,
    /// Detected by case 4306.
    FirstSequence,
    /// Detected by case 4307.
    SkipsSequences,
    /// Detected by case 4308.
    HighHalf,
    /// Detected by case 4401.
    DropsReliable,
    /// Detected by case 4402.
    DropsUnreliable,
    /// Detected by case 4403.
    DropsOneByte,
    /// Detected by the cases 4404, 4405, 4406 and 4407.
    Truncates(usize),
    /// Detected by case 4408.
    ChunksInOrder,
    /// Detected by case 4409.
    DeliversTwice,
    /// Detected by case 4410.
    OneAtATime,
    /// Detected by case 4411.
    InOrderOnly,
    /// Detected by case 4412.
    NoEmptyChunk,
    /// Detected by case 4413.
    DeliversIncomplete,
    /// Detected by case 4414.
    FinOnAll,
    /// Detected by case 4501.
    IgnoresEnd,
    /// Detected by case 4502.
    AnswersEnd,
    /// Detected by the cases 4503 and 4504.
    EndExact,
    /// Detected by case 4505.
    EndFromAnyone,
    /// Detected by case 4506.
    EndEndsAll,
    /// Detected by case 4507.
    KeepsEnded,
    /// Detected by case 4508.
    NeverGivesUp,
    /// Detected by case 4509.
    DropsIdle,
    /// Detected by case 4601.
    EchoesGarbage,
    /// Detected by case 4602.
    DiesOfGarbage,
    /// Detected by case 4603.
    DiesOfUnknownAck,
    /// Detected by case 4604.
    DiesOfUnfinished,
    /// Detected by the cases 4605 and 4606.
    DiesOfLong,
    /// Detected by case 4607.
    DiesOfEmpty,
    /// Detected by case 4608.
    SharesConnections,
    /// Detected by case 4609.
    DiesOfSalts,
}
