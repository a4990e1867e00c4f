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
    /// Detected by the cases 101, 201 and 301.
    Mute(u8),
    /// Detected by the cases 102, 105, 109, 214 and 303.
    Flip(u8, usize),
    /// Detected by case 103.
    PongTimeSigned,
    /// Detected by case 104.
    PongOwnTimeForZero,
    /// Detected by case 106.
    LongPong,
    /// Detected by case 107.
    GuidUnassigned,
    /// Detected by case 108.
    GuidChanges,
    /// Detected by the cases 110 and 221.
    Twice(u8),
    /// Detected by case 111.
    IgnoresPingOpen,
    /// Detected by case 112.
    PingOpenTimeLost,
    /// Detected by case 113.
    AnswersShortPing,
    /// Detected by the cases 114, 219 and 315.
    IgnoresMagic,
    /// Detected by case 115.
    SearchesMagic,
    /// Detected by the cases 116, 220 and 316.
    PadsShortDatagrams,
    /// Detected by case 117.
    AnswersTiny,
    /// Detected by case 118.
    NoPongForConnected,
    /// Detected by case 119.
    PongPrefixWrong,
    /// Detected by case 120.
    AdvertisementShort,
    /// Detected by case 121.
    AnswersUnknownIds,
    /// Detected by case 122.
    AnswersReplies,
    /// Detected by case 123.
    AnswersRefusals,
    /// Detected by case 124.
    DiesOfOutOfBand,
    /// Detected by case 202.
    ReplyOneTail,
    /// Detected by case 203.
    MtuCap(u16),
    /// Detected by the cases 204 and 205.
    MtuConstant,
    /// Detected by case 206.
    MtuRounded,
    /// Detected by the cases 207 and 306.
    MtuUnlimited,
    /// Detected by the cases 208 and 307.
    MtuWithoutFloor,
    /// Detected by case 209.
    AnswersRequestOneOnce,
    /// Detected by case 210.
    RemembersMtu,
    /// Detected by case 211.
    SecurityByteOdd,
    /// Detected by case 212.
    AcceptsAnyVersion,
    /// Detected by the cases 213 and 1011.
    LongIncompatible,
    /// Detected by case 215.
    AcceptsVersionZero,
    /// Detected by case 216.
    NamesRefusedVersion,
    /// Detected by case 217.
    NamesWrongVersion,
    /// Detected by case 218.
    RefusesAndReplies,
    /// Detected by case 302.
    LongReplyTwo,
    /// Detected by the cases 304 and 404.
    WrongClientAddress,
    /// Detected by case 305.
    ReplyTwoMtuConstant,
    /// Detected by case 308.
    EncryptionByte,
    /// Detected by case 309.
    RefusesSecondRequestTwo,
    /// Detected by case 310.
    IgnoresKnownAddress,
    /// Detected by case 311.
    LongAlreadyConnected,
    /// Detected by case 312.
    RefusalWithClientGuid,
    /// Detected by case 313.
    IgnoresKnownGuid,
    /// Detected by case 314.
    ReplyTwoWhenConnected,
    /// Detected by case 317.
    ChecksServerAddress,
    /// Detected by case 318.
    NeedsRequestOne,
    /// Detected by case 319.
    OneClientOnly,
    /// Detected by case 331.
    NeverFull,
    /// Detected by case 332.
    LongNoFree,
    /// Detected by case 333.
    FullIgnoresPing,
    /// Detected by case 334.
    FullAnswersPingOpen,
    /// Detected by case 335.
    PlaceNeverFree,
    /// Detected by case 351.
    CookieOptional,
    /// Detected by case 352.
    CookieUnchecked,
    /// Detected by the cases 353 and 355.
    CookieForAll,
    /// Detected by case 354.
    CookieRefused,
    /// Detected by case 356.
    CookieOfLastRequest,
    /// Detected by case 357.
    CookieSpoiled,
    /// Detected by case 401.
    NoAckOfFirst,
    /// Detected by the cases 402, 411, 417 and 801.
    MuteControl(u8),
    /// Detected by case 403.
    AcceptedTimeWrong,
    /// Detected by case 405.
    AcceptedTail,
    /// Detected by case 406.
    AddressCount(usize),
    /// Detected by case 407.
    AcceptedUnreliable,
    /// Detected by case 408.
    NeverResends,
    /// Detected by case 409.
    FirstDatagram(u32),
    /// Detected by case 410.
    FirstOrder(u32),
    /// Detected by case 412.
    NoAckOfNewIncoming,
    /// Detected by the cases 413 and 414.
    NewIncomingCount,
    /// Detected by case 415.
    NewIncomingTen,
    /// Detected by case 416.
    ChecksNewIncoming,
    /// Detected by case 418.
    IgnoresPassword,
    /// Detected by case 419.
    RefusesAndAccepts,
    /// Detected by case 420.
    RefusesUnreliably,
    /// Detected by case 421.
    OpensAfterRefusal,
    /// Detected by case 422.
    RefusesEveryPassword,
    /// Detected by case 423.
    PasswordPrefix,
    /// Detected by case 424.
    PasswordLonger,
    /// Detected by case 425.
    PasswordOptional,
    /// Detected by case 426.
    AcksStrangers,
    /// Detected by case 427.
    AnswersBeforeRequest,
    /// Detected by case 428.
    ClockBackwards,
    /// Detected by case 429.
    OneConnectionOnly,
    /// Detected by the cases 430, 1115 and 1116.
    IgnoresMtu,
    /// Detected by case 501.
    AcksOnlyReliable,
    /// Detected by case 502.
    LateAcks,
    /// Detected by case 503.
    AckTail,
    /// Detected by case 504.
    AcksAcks,
    /// Detected by case 505.
    AcksNaks,
    /// Detected by case 506.
    NoNaks,
    /// Detected by case 507.
    NaksTooMany,
    /// Detected by the cases 508 and 517.
    NaksTwice,
    /// Detected by case 509.
    NaksAll,
    /// Detected by case 510.
    TakesAnyJump,
    /// Detected by case 511.
    JumpConfuses,
    /// Detected by case 512.
    RefusesJumps,
    /// Detected by case 513.
    NoAckOfDuplicates,
    /// Detected by the cases 514, 515, 618, 709, 1112 and 1127.
    DeliversDuplicates,
    /// Detected by the cases 516 and 1126.
    DropsLate,
    /// Detected by case 518.
    IgnoresNaks,
    /// Detected by case 519.
    ResendsSameDatagram,
    /// Detected by the cases 520 and 1114.
    ResendsRenumbered,
    /// Detected by case 521.
    ResendsForever,
    /// Detected by case 522.
    ReadsRunsAsSingles,
    /// Detected by case 523.
    FlagOneOnly,
    /// Detected by case 524.
    IgnoresSpeedForm,
    /// Detected by case 525.
    AckByteExact,
    /// Detected by case 526.
    DiesOfUnknownAck,
    /// Detected by case 527.
    DiesOfUnknownNak,
    /// Detected by case 528.
    DiesOfBackwardsRecord,
    /// Detected by case 529.
    DiesOfTruncatedAck,
    /// Detected by case 530.
    AcksLastOfBurst,
    /// Detected by case 531.
    AcksSingly,
    /// Detected by case 532.
    AcksOneMore,
    /// Detected by case 533.
    DataByteExact,
    /// Detected by case 534.
    NoWrap,
    /// Detected by case 535.
    NaksWrapped,
    /// Detected by case 536.
    DropsRepeatedNumbers,
    /// Detected by case 537.
    UnreliableTwice,
    /// Detected by the cases 600, 601, 602, 603, 604, 605, 606, 607, 1101, 1102, 1103, 1104 and 1105.
    DropsReliability(u8),
    /// Detected by case 608.
    CapsuleFlagsExact,
    /// Detected by case 609.
    FirstCapsuleOnly,
    /// Detected by case 610.
    FirstCapsulesOnly(usize),
    /// Detected by case 611.
    BitsRoundedDown,
    /// Detected by case 612.
    ZerosDropDatagram,
    /// Detected by case 613.
    SkipsEmptyCapsules,
    /// Detected by the cases 614 and 716.
    DeliversCutOff,
    /// Detected by the cases 615 and 616.
    ChannelLimit(u8),
    /// Detected by case 617.
    ReliableInOrder,
    /// Detected by the cases 619 and 1111.
    OrderedAtOnce,
    /// Detected by case 620.
    ForgetsWaiting,
    /// Detected by case 621.
    ReleasesReversed,
    /// Detected by the cases 622, 623 and 1124.
    OneChannelForAll,
    /// Detected by case 624.
    OrderedOldDelivered,
    /// Detected by the cases 625, 626 and 1123.
    SequencedOldDelivered,
    /// Detected by case 627.
    SequencedWaits,
    /// Detected by case 628.
    SequenceNoWrap,
    /// Detected by case 629.
    SequencingGoesOn,
    /// Detected by case 630.
    SequencedIgnoresOrder,
    /// Detected by case 631.
    ShortConnectedPing,
    /// Detected by case 632.
    LongConnectedPing,
    /// Detected by case 633.
    LongConnectedPong,
    /// Detected by case 634.
    PongReliable,
    /// Detected by case 635.
    PongClockStands,
    /// Detected by case 636.
    ConnectedPongTwice,
    /// Detected by the cases 637, 638, 639, 1015, 1016 and 1018.
    DiesOfId(u8),
    /// Detected by case 640.
    SkipsDatagramNumbers,
    /// Detected by case 701.
    NoSplits,
    /// Detected by the cases 702 and 1113.
    PartsInArrivalOrder,
    /// Detected by case 703.
    PartLimit(u32),
    /// Detected by case 704.
    DeliversIncomplete,
    /// Detected by case 705.
    OneSplitAtATime,
    /// Detected by case 706.
    OnePartADatagram,
    /// Detected by case 707.
    CountsPartsTwice,
    /// Detected by case 708.
    PartsIgnoreOrder,
    /// Detected by case 710.
    SplitIdOnce,
    /// Detected by case 711.
    RefusesOnePart,
    /// Detected by the cases 712 and 713.
    SplitIndexUnchecked,
    /// Detected by case 714.
    DiesOfSplitCount,
    /// Detected by case 715.
    TakesLastCount,
    /// Detected by case 717.
    DiesOfUnfinished(usize),
    /// Detected by case 718.
    AcksWholeOnly,
    /// Detected by case 802.
    PingsOnce,
    /// Detected by case 803.
    LongPingOfServer,
    /// Detected by case 804.
    DropsIdle,
    /// Detected by the cases 805 and 806.
    NeverGivesUp,
    /// Detected by case 807.
    SendsForever,
    /// Detected by case 808.
    KeepsHalfOpen,
    /// Detected by the cases 809, 810 and 1010.
    ResendsWildly,
    /// Detected by the cases 901 and 1125.
    NoAckOfDisconnection,
    /// Detected by case 902.
    GoesOnAfterDisconnection,
    /// Detected by case 903.
    IgnoresDisconnection,
    /// Detected by the cases 904 and 905.
    KeepsClosed,
    /// Detected by case 906.
    DisconnectionExact,
    /// Detected by case 907.
    ForgetsClosedAtOnce,
    /// Detected by case 908.
    DisconnectsAll,
    /// Detected by case 909.
    KeepsClosedHalfOpen,
    /// Detected by case 910.
    ReusesState,
    /// Detected by case 1001.
    EchoesGarbage,
    /// Detected by case 1002.
    DiesOfGarbage,
    /// Detected by case 1003.
    DiesOfTruncatedData,
    /// Detected by case 1004.
    DiesOfEmptyDatagram,
    /// Detected by the cases 1005 and 1006.
    DiesOfLongDatagram,
    /// Detected by case 1007.
    DropsLongerThanMtu,
    /// Detected by case 1008.
    PadsReplyOne,
    /// Detected by case 1009.
    RepeatsReplyTwo,
    /// Detected by the cases 1012 and 1013.
    SharesConnectionsOfHost,
    /// Detected by case 1014.
    BelievesRefusals,
    /// Detected by case 1017.
    DiesOfSecondNewIncoming,
    /// Detected by the cases 1019 and 1020.
    HangsOnWideAck,
    /// Detected by case 1021.
    DiesOfRequests(usize),
    /// Detected by case 1022.
    DiesOfShortControl,
    /// Detected by case 1023.
    AcceptsShortRequest,
    /// Detected by case 1024.
    HalfOpenLimit(usize),
    /// Detected by case 1106.
    DropsOneByte,
    /// Detected by the cases 1107, 1108 and 1109.
    EchoLimit(usize),
    /// Detected by case 1110.
    EchoesPairsSwapped,
    /// Detected by case 1117.
    PartsDiffer,
    /// Detected by case 1118.
    PartsShareNumber,
    /// Detected by case 1119.
    PartsUnreliable,
    /// Detected by case 1120.
    SkipsReliableNumbers,
    /// Detected by case 1121.
    SkipsOrder,
    /// Detected by case 1122.
    EchoesReserved,
    /// Detected by case 1128.
    EchoFlipsLast,
    /// Detected by case 2202.
    LongRequestOne,
    /// Detected by case 2203.
    LadderRises,
    /// Detected by case 2204.
    AsksOnce,
    /// Detected by case 2205.
    AsksWildly,
    /// Detected by case 2206.
    LadderStands,
    /// Detected by case 2207.
    LadderWithoutFloor,
    /// Detected by case 2208.
    AsksForever,
    /// Detected by case 2209.
    VersionChanges,
    /// Detected by the cases 2210, 2321, 2322, 2323, 2324, 2325 and 2423.
    IgnoresRefusal(u8),
    /// Detected by the cases 2213 and 2327.
    BelievesStrangers,
    /// Detected by case 2302.
    LongRequestTwo,
    /// Detected by case 2308.
    CookieSwapped,
    /// Detected by case 2309.
    CookieNotZero,
    /// Detected by case 2310.
    ChallengeFlag,
    /// Detected by case 2311.
    AnswersFirstReplyOnly,
    /// Detected by the cases 2312 and 2313.
    ReplyLengthExact,
    /// Detected by case 2314.
    SecurityByteExact,
    /// Detected by the cases 2315 and 3031.
    RepeatsRequestTwo,
    /// Detected by case 2319.
    RequestTwoUnasked,
    /// Detected by case 2331.
    OpensTwice,
    /// Detected by case 2332.
    AsksWhenAnswered,
    /// Detected by case 2333.
    EncryptionExact,
    /// Detected by case 2403.
    RequestTruncated,
    /// Detected by case 2404.
    RequestGuidDiffers,
    /// Detected by case 2405.
    RequestUnreliable,
    /// Detected by case 2407.
    RequestWantsSecurity,
    /// Detected by case 2420.
    Ipv4Only,
    /// Detected by case 2422.
    AcceptedOrderedOnly,
    /// Detected by case 2424.
    PasswordRefusalExact,
    /// Detected by case 2426.
    AnswersEveryAccepted,
    /// Detected by case 3032.
    AnswersLateReplies,
    /// A fault of the model of the Game Protocol.
    Game(GameFault),
    /// A fault of the model's secure connections.
    Secure(SecureFault),
}
