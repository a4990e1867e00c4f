//! The faults of the model of the Game Protocol.

/// A fault of the model of the Game Protocol. The listed cases must detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GameFault {
    /// No fault.
    None,
    /// Found by 4101.
    Mute,
    /// Found by 4102.
    LongPepper,
    /// Found by 4103, 4106.
    OneKey,
    /// Found by 4104.
    NeverOpens,
    /// Found by 4105.
    AnySeasoning,
    /// Found by 4107.
    AcksStrangers,
    /// Found by 4108.
    AnswersShort,
    /// Found by 4109.
    PepperTwice,
    /// Found by 4110.
    OneClient,
    /// Found by 4111.
    SeasoningCloses,
    /// Found by 4112.
    SaltOnce,
    /// Found by 4113.
    LongSalts,
    /// Found by 4201.
    MuteAcks,
    /// Found by 4202.
    AckLong,
    /// Found by 4203.
    AckWithoutFin,
    /// Found by 4204.
    AckSwapped,
    /// Found by 4205.
    AckChunkZero,
    /// Found by 4206.
    AcksUnreliable,
    /// Found by 4207.
    AckOnce,
    /// Found by 4208.
    AcksLastOnly,
    /// Found by 4209.
    AcksAcks,
    /// Found by 4210.
    FlagsExact,
    /// Found by 4211.
    DropsOld,
    /// Found by 4212.
    NoWrap,
    /// Found by 4213.
    FromZeroOnly,
    /// Found by 4214.
    LateAcks,
    /// Found by 4215.
    ShortBodies,
    /// Found by 4216.
    DiesOfLongBody,
    /// Found by 4217.
    DiesOfShortChunk,
    /// Found by 4218.
    DiesOfEndless,
    /// Found by 4301.
    NeverResends,
    /// Found by 4302.
    ResendsWildly,
    /// Found by 4303.
    ResendsForever,
    /// Found by 4304.
    ResendsRenumbered,
    /// Found by 4305.
    AckExact,
    /// Found by 4306.
    FirstSequence,
    /// Found by 4307.
    SkipsSequences,
    /// Found by 4308.
    HighHalf,
    /// Found by 4401.
    DropsReliable,
    /// Found by 4402.
    DropsUnreliable,
    /// Found by 4403.
    DropsOneByte,
    /// Found by 4404, 4405, 4406, 4407.
    Truncates(usize),
    /// Found by 4408.
    ChunksInOrder,
    /// Found by 4409.
    DeliversTwice,
    /// Found by 4410.
    OneAtATime,
    /// Found by 4411.
    InOrderOnly,
    /// Found by 4412.
    NoEmptyChunk,
    /// Found by 4413.
    DeliversIncomplete,
    /// Found by 4414.
    FinOnAll,
    /// Found by 4501.
    IgnoresEnd,
    /// Found by 4502.
    AnswersEnd,
    /// Found by 4503, 4504.
    EndExact,
    /// Found by 4505.
    EndFromAnyone,
    /// Found by 4506.
    EndEndsAll,
    /// Found by 4507.
    KeepsEnded,
    /// Found by 4508.
    NeverGivesUp,
    /// Found by 4509.
    DropsIdle,
    /// Found by 4601.
    EchoesGarbage,
    /// Found by 4602.
    DiesOfGarbage,
    /// Found by 4603.
    DiesOfUnknownAck,
    /// Found by 4604.
    DiesOfUnfinished,
    /// Found by 4605, 4606.
    DiesOfLong,
    /// Found by 4607.
    DiesOfEmpty,
    /// Found by 4608.
    SharesConnections,
    /// Found by 4609.
    DiesOfSalts,
}
