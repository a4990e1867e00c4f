//! The deliberate faults of the model.

mod game;
mod secure;

pub use game::GameFault;
pub use secure::SecureFault;

/// A deliberate fault of the built-in model. The listed cases must detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// Found by 101, 201, 301.
    Mute(u8),
    /// Found by 102, 105, 109, 214, 303.
    Flip(u8, usize),
    /// Found by 103.
    PongTimeSigned,
    /// Found by 104.
    PongOwnTimeForZero,
    /// Found by 106.
    LongPong,
    /// Found by 107.
    GuidUnassigned,
    /// Found by 108.
    GuidChanges,
    /// Found by 110, 221.
    Twice(u8),
    /// Found by 111.
    IgnoresPingOpen,
    /// Found by 112.
    PingOpenTimeLost,
    /// Found by 113.
    AnswersShortPing,
    /// Found by 114, 219, 315.
    IgnoresMagic,
    /// Found by 115.
    SearchesMagic,
    /// Found by 116, 220, 316.
    PadsShortDatagrams,
    /// Found by 117.
    AnswersTiny,
    /// Found by 118.
    NoPongForConnected,
    /// Found by 119.
    PongPrefixWrong,
    /// Found by 120.
    AdvertisementShort,
    /// Found by 121.
    AnswersUnknownIds,
    /// Found by 122.
    AnswersReplies,
    /// Found by 123.
    AnswersRefusals,
    /// Found by 124.
    DiesOfOutOfBand,
    /// Found by 202.
    ReplyOneTail,
    /// Found by 203.
    MtuCap(u16),
    /// Found by 204, 205.
    MtuConstant,
    /// Found by 206.
    MtuRounded,
    /// Found by 207, 306.
    MtuUnlimited,
    /// Found by 208, 307.
    MtuWithoutFloor,
    /// Found by 209.
    AnswersRequestOneOnce,
    /// Found by 210.
    RemembersMtu,
    /// Found by 211.
    SecurityByteOdd,
    /// Found by 212.
    AcceptsAnyVersion,
    /// Found by 213, 1011.
    LongIncompatible,
    /// Found by 215.
    AcceptsVersionZero,
    /// Found by 216.
    NamesRefusedVersion,
    /// Found by 217.
    NamesWrongVersion,
    /// Found by 218.
    RefusesAndReplies,
    /// Found by 302.
    LongReplyTwo,
    /// Found by 304, 404.
    WrongClientAddress,
    /// Found by 305.
    ReplyTwoMtuConstant,
    /// Found by 308.
    EncryptionByte,
    /// Found by 309.
    RefusesSecondRequestTwo,
    /// Found by 310.
    IgnoresKnownAddress,
    /// Found by 311.
    LongAlreadyConnected,
    /// Found by 312.
    RefusalWithClientGuid,
    /// Found by 313.
    IgnoresKnownGuid,
    /// Found by 314.
    ReplyTwoWhenConnected,
    /// Found by 317.
    ChecksServerAddress,
    /// Found by 318.
    NeedsRequestOne,
    /// Found by 319.
    OneClientOnly,
    /// Found by 331.
    NeverFull,
    /// Found by 332.
    LongNoFree,
    /// Found by 333.
    FullIgnoresPing,
    /// Found by 334.
    FullAnswersPingOpen,
    /// Found by 335.
    PlaceNeverFree,
    /// Found by 351.
    CookieOptional,
    /// Found by 352.
    CookieUnchecked,
    /// Found by 353, 355.
    CookieForAll,
    /// Found by 354.
    CookieRefused,
    /// Found by 356.
    CookieOfLastRequest,
    /// Found by 357.
    CookieSpoiled,
    /// Found by 401.
    NoAckOfFirst,
    /// Found by 402, 411, 417, 801.
    MuteControl(u8),
    /// Found by 403.
    AcceptedTimeWrong,
    /// Found by 405.
    AcceptedTail,
    /// Found by 406.
    AddressCount(usize),
    /// Found by 407.
    AcceptedUnreliable,
    /// Found by 408.
    NeverResends,
    /// Found by 409.
    FirstDatagram(u32),
    /// Found by 410.
    FirstOrder(u32),
    /// Found by 412.
    NoAckOfNewIncoming,
    /// Found by 413, 414.
    NewIncomingCount,
    /// Found by 415.
    NewIncomingTen,
    /// Found by 416.
    ChecksNewIncoming,
    /// Found by 418.
    IgnoresPassword,
    /// Found by 419.
    RefusesAndAccepts,
    /// Found by 420.
    RefusesUnreliably,
    /// Found by 421.
    OpensAfterRefusal,
    /// Found by 422.
    RefusesEveryPassword,
    /// Found by 423.
    PasswordPrefix,
    /// Found by 424.
    PasswordLonger,
    /// Found by 425.
    PasswordOptional,
    /// Found by 426.
    AcksStrangers,
    /// Found by 427.
    AnswersBeforeRequest,
    /// Found by 428.
    ClockBackwards,
    /// Found by 429.
    OneConnectionOnly,
    /// Found by 430, 1115, 1116.
    IgnoresMtu,
    /// Found by 501.
    AcksOnlyReliable,
    /// Found by 502.
    LateAcks,
    /// Found by 503.
    AckTail,
    /// Found by 504.
    AcksAcks,
    /// Found by 505.
    AcksNaks,
    /// Found by 506.
    NoNaks,
    /// Found by 507.
    NaksTooMany,
    /// Found by 508, 517.
    NaksTwice,
    /// Found by 509.
    NaksAll,
    /// Found by 510.
    TakesAnyJump,
    /// Found by 511.
    JumpConfuses,
    /// Found by 512.
    RefusesJumps,
    /// Found by 513.
    NoAckOfDuplicates,
    /// Found by 514, 515, 618, 709, 1112, 1127.
    DeliversDuplicates,
    /// Found by 516, 1126.
    DropsLate,
    /// Found by 518.
    IgnoresNaks,
    /// Found by 519.
    ResendsSameDatagram,
    /// Found by 520, 1114.
    ResendsRenumbered,
    /// Found by 521.
    ResendsForever,
    /// Found by 522.
    ReadsRunsAsSingles,
    /// Found by 523.
    FlagOneOnly,
    /// Found by 524.
    IgnoresSpeedForm,
    /// Found by 525.
    AckByteExact,
    /// Found by 526.
    DiesOfUnknownAck,
    /// Found by 527.
    DiesOfUnknownNak,
    /// Found by 528.
    DiesOfBackwardsRecord,
    /// Found by 529.
    DiesOfTruncatedAck,
    /// Found by 530.
    AcksLastOfBurst,
    /// Found by 531.
    AcksSingly,
    /// Found by 532.
    AcksOneMore,
    /// Found by 533.
    DataByteExact,
    /// Found by 534.
    NoWrap,
    /// Found by 535.
    NaksWrapped,
    /// Found by 536.
    DropsRepeatedNumbers,
    /// Found by 537.
    UnreliableTwice,
    /// Found by 600, 601, 602, 603, 604, 605, 606, 607, 1101, 1102, 1103, 1104, 1105.
    DropsReliability(u8),
    /// Found by 608.
    CapsuleFlagsExact,
    /// Found by 609.
    FirstCapsuleOnly,
    /// Found by 610.
    FirstCapsulesOnly(usize),
    /// Found by 611.
    BitsRoundedDown,
    /// Found by 612.
    ZerosDropDatagram,
    /// Found by 613.
    SkipsEmptyCapsules,
    /// Found by 614, 716.
    DeliversCutOff,
    /// Found by 615, 616.
    ChannelLimit(u8),
    /// Found by 617.
    ReliableInOrder,
    /// Found by 619, 1111.
    OrderedAtOnce,
    /// Found by 620.
    ForgetsWaiting,
    /// Found by 621.
    ReleasesReversed,
    /// Found by 622, 623, 1124.
    OneChannelForAll,
    /// Found by 624.
    OrderedOldDelivered,
    /// Found by 625, 626, 1123.
    SequencedOldDelivered,
    /// Found by 627.
    SequencedWaits,
    /// Found by 628.
    SequenceNoWrap,
    /// Found by 629.
    SequencingGoesOn,
    /// Found by 630.
    SequencedIgnoresOrder,
    /// Found by 631.
    ShortConnectedPing,
    /// Found by 632.
    LongConnectedPing,
    /// Found by 633.
    LongConnectedPong,
    /// Found by 634.
    PongReliable,
    /// Found by 635.
    PongClockStands,
    /// Found by 636.
    ConnectedPongTwice,
    /// Found by 637, 638, 639, 1015, 1016, 1018.
    DiesOfId(u8),
    /// Found by 640.
    SkipsDatagramNumbers,
    /// Found by 701.
    NoSplits,
    /// Found by 702, 1113.
    PartsInArrivalOrder,
    /// Found by 703.
    PartLimit(u32),
    /// Found by 704.
    DeliversIncomplete,
    /// Found by 705.
    OneSplitAtATime,
    /// Found by 706.
    OnePartADatagram,
    /// Found by 707.
    CountsPartsTwice,
    /// Found by 708.
    PartsIgnoreOrder,
    /// Found by 710.
    SplitIdOnce,
    /// Found by 711.
    RefusesOnePart,
    /// Found by 712, 713.
    SplitIndexUnchecked,
    /// Found by 714.
    DiesOfSplitCount,
    /// Found by 715.
    TakesLastCount,
    /// Found by 717.
    DiesOfUnfinished(usize),
    /// Found by 718.
    AcksWholeOnly,
    /// Found by 802.
    PingsOnce,
    /// Found by 803.
    LongPingOfServer,
    /// Found by 804.
    DropsIdle,
    /// Found by 805, 806.
    NeverGivesUp,
    /// Found by 807.
    SendsForever,
    /// Found by 808.
    KeepsHalfOpen,
    /// Found by 809, 810, 1010.
    ResendsWildly,
    /// Found by 901, 1125.
    NoAckOfDisconnection,
    /// Found by 902.
    GoesOnAfterDisconnection,
    /// Found by 903.
    IgnoresDisconnection,
    /// Found by 904, 905.
    KeepsClosed,
    /// Found by 906.
    DisconnectionExact,
    /// Found by 907.
    ForgetsClosedAtOnce,
    /// Found by 908.
    DisconnectsAll,
    /// Found by 909.
    KeepsClosedHalfOpen,
    /// Found by 910.
    ReusesState,
    /// Found by 1001.
    EchoesGarbage,
    /// Found by 1002.
    DiesOfGarbage,
    /// Found by 1003.
    DiesOfTruncatedData,
    /// Found by 1004.
    DiesOfEmptyDatagram,
    /// Found by 1005, 1006.
    DiesOfLongDatagram,
    /// Found by 1007.
    DropsLongerThanMtu,
    /// Found by 1008.
    PadsReplyOne,
    /// Found by 1009.
    RepeatsReplyTwo,
    /// Found by 1012, 1013.
    SharesConnectionsOfHost,
    /// Found by 1014.
    BelievesRefusals,
    /// Found by 1017.
    DiesOfSecondNewIncoming,
    /// Found by 1019, 1020.
    HangsOnWideAck,
    /// Found by 1021.
    DiesOfRequests(usize),
    /// Found by 1022.
    DiesOfShortControl,
    /// Found by 1023.
    AcceptsShortRequest,
    /// Found by 1024.
    HalfOpenLimit(usize),
    /// Found by 1106.
    DropsOneByte,
    /// Found by 1107, 1108, 1109.
    EchoLimit(usize),
    /// Found by 1110.
    EchoesPairsSwapped,
    /// Found by 1117.
    PartsDiffer,
    /// Found by 1118.
    PartsShareNumber,
    /// Found by 1119.
    PartsUnreliable,
    /// Found by 1120.
    SkipsReliableNumbers,
    /// Found by 1121.
    SkipsOrder,
    /// Found by 1122.
    EchoesReserved,
    /// Found by 1128.
    EchoFlipsLast,
    /// Found by 2202.
    LongRequestOne,
    /// Found by 2203.
    LadderRises,
    /// Found by 2204.
    AsksOnce,
    /// Found by 2205.
    AsksWildly,
    /// Found by 2206.
    LadderStands,
    /// Found by 2207.
    LadderWithoutFloor,
    /// Found by 2208.
    AsksForever,
    /// Found by 2209.
    VersionChanges,
    /// Found by 2210, 2321, 2322, 2323, 2324, 2325, 2423.
    IgnoresRefusal(u8),
    /// Found by 2213, 2327.
    BelievesStrangers,
    /// Found by 2302.
    LongRequestTwo,
    /// Found by 2308.
    CookieSwapped,
    /// Found by 2309.
    CookieNotZero,
    /// Found by 2310.
    ChallengeFlag,
    /// Found by 2311.
    AnswersFirstReplyOnly,
    /// Found by 2312, 2313.
    ReplyLengthExact,
    /// Found by 2314.
    SecurityByteExact,
    /// Found by 2315, 3031.
    RepeatsRequestTwo,
    /// Found by 2319.
    RequestTwoUnasked,
    /// Found by 2331.
    OpensTwice,
    /// Found by 2332.
    AsksWhenAnswered,
    /// Found by 2333.
    EncryptionExact,
    /// Found by 2403.
    RequestTruncated,
    /// Found by 2404.
    RequestGuidDiffers,
    /// Found by 2405.
    RequestUnreliable,
    /// Found by 2407.
    RequestWantsSecurity,
    /// Found by 2420.
    Ipv4Only,
    /// Found by 2422.
    AcceptedOrderedOnly,
    /// Found by 2424.
    PasswordRefusalExact,
    /// Found by 2426.
    AnswersEveryAccepted,
    /// Found by 3032.
    AnswersLateReplies,
    /// A fault of the model of the Game Protocol.
    Game(GameFault),
    /// A fault of the model's secure connections.
    Secure(SecureFault),
}
