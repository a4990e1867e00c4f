//! The faults of the model of the Game Protocol.

/// A fault of the model of the Game Protocol, and the cases that must detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GameFault {
    /// No fault.
    None,
    /// Does not answer salts. Case 4101.
    Mute,
    /// Sends peppers of more than four bytes. Case 4102.
    LongPepper,
    /// Sends the same pepper to all ports. Cases 4103 and 4106.
    OneKey,
    /// Rejects the right seasoning. Case 4104.
    NeverOpens,
    /// Accepts a wrong seasoning. Case 4105.
    AnySeasoning,
    /// Acknowledges packets from unknown addresses. Case 4107.
    AcksStrangers,
    /// Answers datagrams of fewer than four bytes. Case 4108.
    AnswersShort,
    /// Sends each pepper twice. Case 4109.
    PepperTwice,
    /// Refuses a second connection. Case 4110.
    OneClient,
    /// Closes the connection after a repeated seasoning. Case 4111.
    SeasoningCloses,
    /// Does not answer a repeated salt. Case 4112.
    SaltOnce,
    /// Accepts salts of more than four bytes. Case 4113.
    LongSalts,
    /// Does not acknowledge packets. Case 4201.
    MuteAcks,
    /// Sends acknowledgements with a body. Case 4202.
    AckLong,
    /// Sends acknowledgements without FIN. Case 4203.
    AckWithoutFin,
    /// Acknowledges with the sequence in the wrong byte order. Case 4204.
    AckSwapped,
    /// Acknowledges chunk 0 instead of the received chunk. Case 4205.
    AckChunkZero,
    /// Acknowledges packets without REL. Case 4206.
    AcksUnreliable,
    /// Does not acknowledge a repeated packet. Case 4207.
    AckOnce,
    /// Acknowledges only the last chunk of a payload. Case 4208.
    AcksLastOnly,
    /// Acknowledges acknowledgements. Case 4209.
    AcksAcks,
    /// Drops packets with bits set in the high half of the flags. Case 4210.
    FlagsExact,
    /// Drops packets with a sequence more than 1,000 behind the newest. Case 4211.
    DropsOld,
    /// Does not wrap sequences at 2^16. Case 4212.
    NoWrap,
    /// Drops the first packet from a client if its sequence exceeds 1,000. Case 4213.
    FromZeroOnly,
    /// Delays acknowledgements by more than 100 ms. Case 4214.
    LateAcks,
    /// Drops bodies of more than 500 bytes. Case 4215.
    ShortBodies,
    /// Stops after a chunk longer than 504 bytes. Case 4216.
    DiesOfLongBody,
    /// Stops after a chunk shorter than 504 bytes without FIN. Case 4217.
    DiesOfShortChunk,
    /// Stops after chunk 255 without FIN. Case 4218.
    DiesOfEndless,
    /// Does not resend unacknowledged chunks. Case 4301.
    NeverResends,
    /// Resends without a delay. Case 4302.
    ResendsWildly,
    /// Resends acknowledged chunks. Case 4303.
    ResendsForever,
    /// Resends with a new sequence. Case 4304.
    ResendsRenumbered,
    /// Ignores acknowledgements without FIN. Case 4305.
    AckExact,
    /// Begins sequences with 1. Case 4306.
    FirstSequence,
    /// Skips sequences. Case 4307.
    SkipsSequences,
    /// Sets a bit in the high half of the flags. Case 4308.
    HighHalf,
    /// Drops reliable payloads. Case 4401.
    DropsReliable,
    /// Drops unreliable payloads. Case 4402.
    DropsUnreliable,
    /// Drops payloads of one byte. Case 4403.
    DropsOneByte,
    /// Truncates echoed payloads to this length in bytes. Cases 4404, 4405, 4406 and 4407.
    Truncates(usize),
    /// Drops payloads with reordered chunks. Case 4408.
    ChunksInOrder,
    /// Delivers repeated payloads again. Case 4409.
    DeliversTwice,
    /// Assembles only one payload at a time. Case 4410.
    OneAtATime,
    /// Delivers payloads only in order. Case 4411.
    InOrderOnly,
    /// Drops payloads that end in an empty chunk. Case 4412.
    NoEmptyChunk,
    /// Delivers payloads with a missing chunk. Case 4413.
    DeliversIncomplete,
    /// Sends every chunk with FIN. Case 4414.
    FinOnAll,
    /// Ignores END. Case 4501.
    IgnoresEnd,
    /// Answers END. Case 4502.
    AnswersEnd,
    /// Ignores END unless its flags are END and FIN. Cases 4503 and 4504.
    EndExact,
    /// Closes a connection after an END from another address. Case 4505.
    EndFromAnyone,
    /// Closes all connections after one END. Case 4506.
    EndEndsAll,
    /// Refuses the address of a closed connection. Case 4507.
    KeepsEnded,
    /// Keeps the connections of unresponsive clients. Case 4508.
    NeverGivesUp,
    /// Drops a responsive connection after half of the timeout. Case 4509.
    DropsIdle,
    /// Answers invalid datagrams from unknown addresses. Case 4601.
    EchoesGarbage,
    /// Stops after a packet with bits set in the high half of the flags. Case 4602.
    DiesOfGarbage,
    /// Stops after an acknowledgement of chunks that it never sent. Case 4603.
    DiesOfUnknownAck,
    /// Stops when more than 40 payloads of a connection are incomplete. Case 4604.
    DiesOfUnfinished,
    /// Stops after a datagram of more than 1,600 bytes. Cases 4605 and 4606.
    DiesOfLong,
    /// Stops after an empty datagram. Case 4607.
    DiesOfEmpty,
    /// Accepts packets from another port of a connected host. Case 4608.
    SharesConnections,
    /// Stops after more than 200 salts. Case 4609.
    DiesOfSalts,
}
