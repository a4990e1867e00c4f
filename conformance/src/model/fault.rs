//! The deliberate faults of the model.

mod game;
mod secure;

pub use game::GameFault;
pub use secure::SecureFault;

/// A deliberate fault of the built-in model, and the cases that must detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// Does not send offline messages with this id. Cases 101, 201 and 301.
    Mute(u8),
    /// Inverts bits of the byte at this offset in offline messages with this id. Cases 102, 105, 109, 214 and
    /// 303.
    Flip(u8, usize),
    /// Clears the highest bit of the time in a pong. Case 103.
    PongTimeSigned,
    /// Answers a ping of time zero with its own time. Case 104.
    PongOwnTimeForZero,
    /// Sends pongs with more than 399 bytes of data. Case 106.
    LongPong,
    /// Uses the GUID of all ones, which means unassigned. Case 107.
    GuidUnassigned,
    /// Uses a different GUID in each pong or request 2. Case 108.
    GuidChanges,
    /// Sends offline messages with this id twice. Cases 110 and 221.
    Twice(u8),
    /// Does not answer ping 02, which requires a free slot. Case 111.
    IgnoresPingOpen,
    /// Answers ping 02 with the time 0. Case 112.
    PingOpenTimeLost,
    /// Answers pings without a GUID. Case 113.
    AnswersShortPing,
    /// Accepts offline messages with a wrong magic. Cases 114, 219 and 315.
    IgnoresMagic,
    /// Accepts pings with a magic one byte too early. Case 115.
    SearchesMagic,
    /// Pads truncated offline messages instead of ignoring them. Cases 116, 220 and 316.
    PadsShortDatagrams,
    /// Answers datagrams of two bytes or fewer. Case 117.
    AnswersTiny,
    /// Does not answer pings from an address with a connection. Case 118.
    NoPongForConnected,
    /// Writes a wrong length before the data of a pong. Case 119.
    PongPrefixWrong,
    /// Sends an advertisement without the required fields. Case 120.
    AdvertisementShort,
    /// Answers datagrams with unknown message ids. Case 121.
    AnswersUnknownIds,
    /// Answers messages that only servers send (06, 08, 19, 1C). Case 122.
    AnswersReplies,
    /// Answers refusals (11, 12, 14, 17, 1A). Case 123.
    AnswersRefusals,
    /// Stops working after an out-of-band message (0D). Every name with "Dies" means that the model stops working.
    /// Case 124.
    DiesOfOutOfBand,
    /// Appends a byte that is not zero to reply 1. Case 202.
    ReplyOneTail,
    /// Offers at most this MTU in reply 1. Case 203.
    MtuCap(u16),
    /// Uses the same MTU for every size of request 1. Cases 204 and 205.
    MtuConstant,
    /// Rounds the MTU of reply 1 down to a multiple of four. Case 206.
    MtuRounded,
    /// Accepts MTUs above 1492. Cases 207 and 306.
    MtuUnlimited,
    /// Accepts MTUs below 576. Cases 208 and 307.
    MtuWithoutFloor,
    /// Does not answer a repeated request 1. Case 209.
    AnswersRequestOneOnce,
    /// Answers a request 1 of another size with the MTU of the first one. Case 210.
    RemembersMtu,
    /// Sends an invalid security byte in reply 1. Case 211.
    SecurityByteOdd,
    /// Accepts unknown protocol versions. Case 212.
    AcceptsAnyVersion,
    /// Sends incompatible protocol version (19) with excess bytes. Cases 213 and 1011.
    LongIncompatible,
    /// Accepts protocol version 0. Case 215.
    AcceptsVersionZero,
    /// Names the refused version in incompatible protocol version (19). Case 216.
    NamesRefusedVersion,
    /// Names a version that it does not accept in incompatible protocol version (19). Case 217.
    NamesWrongVersion,
    /// Sends reply 1 in addition to incompatible protocol version (19). Case 218.
    RefusesAndReplies,
    /// Sends reply 2 with excess bytes. Case 302.
    LongReplyTwo,
    /// Sends the peer's address with a wrong port. Cases 304 and 404.
    WrongClientAddress,
    /// Ignores the MTU of request 2 in reply 2. Case 305.
    ReplyTwoMtuConstant,
    /// Sets the encryption byte of reply 2 without the secure mode. Case 308.
    EncryptionByte,
    /// Refuses a repeated request 2. Case 309.
    RefusesSecondRequestTwo,
    /// Accepts request 2 from a connected address with another GUID. Case 310.
    IgnoresKnownAddress,
    /// Sends already connected (12) with excess bytes. Case 311.
    LongAlreadyConnected,
    /// Sends the client's GUID in refusals. Case 312.
    RefusalWithClientGuid,
    /// Accepts request 2 from another address with a connected GUID. Case 313.
    IgnoresKnownGuid,
    /// Answers request 2 from an open connection with reply 2. Case 314.
    ReplyTwoWhenConnected,
    /// Rejects request 2 if it contains a server address other than its own. Case 317.
    ChecksServerAddress,
    /// Rejects request 2 from an address that sent no request 1. Case 318.
    NeedsRequestOne,
    /// Refuses further clients while any has a connection. Case 319.
    OneClientOnly,
    /// Accepts clients beyond its capacity. Case 331.
    NeverFull,
    /// Sends no free incoming connections (14) with excess bytes. Case 332.
    LongNoFree,
    /// Does not answer ping 01 while full. Case 333.
    FullIgnoresPing,
    /// Answers ping 02 while full. Case 334.
    FullAnswersPingOpen,
    /// Does not free the slot of a closed connection. Case 335.
    PlaceNeverFree,
    /// Accepts request 2 without a cookie; as a client, sends none. Case 351.
    CookieOptional,
    /// Accepts request 2 with any cookie. Case 352.
    CookieUnchecked,
    /// Uses a constant cookie. Cases 353 and 355.
    CookieForAll,
    /// Rejects its own cookie. Case 354.
    CookieRefused,
    /// Rejects a cookie once it has sent another reply 1. Case 356.
    CookieOfLastRequest,
    /// Rejects the right cookie after a wrong one from the same address. Case 357.
    CookieSpoiled,
    /// Does not acknowledge datagram 0. Case 401.
    NoAckOfFirst,
    /// Does not send control messages with this id. Cases 402, 411, 417 and 801.
    MuteControl(u8),
    /// Sends connection request accepted (10) with a wrong request time. Case 403.
    AcceptedTimeWrong,
    /// Appends a byte to connection request accepted (10). Case 405.
    AcceptedTail,
    /// Lists this number of addresses. Case 406.
    AddressCount(usize),
    /// Sends its handshake message (10 or 13) unreliably. Case 407.
    AcceptedUnreliable,
    /// Does not resend unacknowledged messages. Case 408.
    NeverResends,
    /// Numbers datagrams from this number on. Case 409.
    FirstDatagram(u32),
    /// Numbers ordered messages from this index on. Case 410.
    FirstOrder(u32),
    /// Does not acknowledge new incoming connection (13). Case 412.
    NoAckOfNewIncoming,
    /// Rejects address lists that do not have ten addresses. Cases 413 and 414.
    NewIncomingCount,
    /// Rejects address lists with ten addresses. Case 415.
    NewIncomingTen,
    /// Rejects handshake messages in which its own address differs from that of its socket. Case 416.
    ChecksNewIncoming,
    /// Accepts every password. Case 418.
    IgnoresPassword,
    /// Sends connection request accepted (10) after invalid password (18). Case 419.
    RefusesAndAccepts,
    /// Sends invalid password (18) unreliably. Case 420.
    RefusesUnreliably,
    /// Opens the connection after a wrong password. Case 421.
    OpensAfterRefusal,
    /// Refuses the right password. Case 422.
    RefusesEveryPassword,
    /// Accepts a prefix of the password. Case 423.
    PasswordPrefix,
    /// Accepts the password with excess bytes. Case 424.
    PasswordLonger,
    /// Accepts requests without a password. Case 425.
    PasswordOptional,
    /// Acknowledges datagrams from addresses without a connection. Case 426.
    AcksStrangers,
    /// Answers connected pings before the connection request (09). Case 427.
    AnswersBeforeRequest,
    /// Sends times that decrease. Case 428.
    ClockBackwards,
    /// Refuses a second open connection. Case 429.
    OneConnectionOnly,
    /// Sends datagrams longer than the MTU. Cases 430, 1115 and 1116.
    IgnoresMtu,
    /// Does not acknowledge datagrams without reliable messages. Case 501.
    AcksOnlyReliable,
    /// Delays acknowledgements by more than 100 ms. Case 502.
    LateAcks,
    /// Appends a byte to acknowledgements. Case 503.
    AckTail,
    /// Acknowledges acknowledgements. Case 504.
    AcksAcks,
    /// Acknowledges NAKs. Case 505.
    AcksNaks,
    /// Does not report missing datagrams. Case 506.
    NoNaks,
    /// Reports received datagrams as missing. Case 507.
    NaksTooMany,
    /// Reports a gap repeatedly. Cases 508 and 517.
    NaksTwice,
    /// Reports every number of a long gap. Case 509.
    NaksAll,
    /// Accepts datagram numbers more than 50,000 ahead. Case 510.
    TakesAnyJump,
    /// Ignores all datagrams after it has ignored a jump in the datagram numbers. Case 511.
    JumpConfuses,
    /// Ignores jumps of more than 100 datagram numbers. Case 512.
    RefusesJumps,
    /// Does not acknowledge repeated datagrams. Case 513.
    NoAckOfDuplicates,
    /// Delivers repeated reliable messages again. Cases 514, 515, 618, 709, 1112 and 1127.
    DeliversDuplicates,
    /// Drops late datagrams. Cases 516 and 1126.
    DropsLate,
    /// Does not resend after a NAK. Case 518.
    IgnoresNaks,
    /// Resends with the old datagram number. Case 519.
    ResendsSameDatagram,
    /// Resends with a new reliable message number. Cases 520 and 1114.
    ResendsRenumbered,
    /// Resends acknowledged messages. Case 521.
    ResendsForever,
    /// Reads a range in an acknowledgement as its first number only. Case 522.
    ReadsRunsAsSingles,
    /// Reads record flags other than 0 and 1 as a range. Case 523.
    FlagOneOnly,
    /// Ignores acknowledgements with the arrival speed (E0). Case 524.
    IgnoresSpeedForm,
    /// Ignores acknowledgements with unused bits set in their first byte. Case 525.
    AckByteExact,
    /// Stops after an acknowledgement of numbers that it never sent. Case 526.
    DiesOfUnknownAck,
    /// Stops after a NAK of numbers that it never sent. Case 527.
    DiesOfUnknownNak,
    /// Stops after a range with its last number below its first. Case 528.
    DiesOfBackwardsRecord,
    /// Stops after a truncated acknowledgement. Case 529.
    DiesOfTruncatedAck,
    /// Acknowledges only the last datagram of a burst. Case 530.
    AcksLastOfBurst,
    /// Sends an acknowledgement for each datagram of a burst. Case 531.
    AcksSingly,
    /// Acknowledges a datagram that was not sent. Case 532.
    AcksOneMore,
    /// Ignores datagrams with unknown hint bits in their first byte. Case 533.
    DataByteExact,
    /// Does not wrap datagram numbers at 2^24. Case 534.
    NoWrap,
    /// Reports a gap across the wrap as one range. Case 535.
    NaksWrapped,
    /// Drops the reliable messages of a datagram with a repeated number. Case 536.
    DropsRepeatedNumbers,
    /// Delivers the unreliable messages of a repeated datagram again. Case 537.
    UnreliableTwice,
    /// Drops application messages with this reliability. Cases 600, 601, 602, 603, 604, 605, 606, 607, 1101,
    /// 1102, 1103, 1104 and 1105.
    DropsReliability(u8),
    /// Rejects capsules with unused flag bits set. Case 608.
    CapsuleFlagsExact,
    /// Reads only the first capsule of a datagram. Case 609.
    FirstCapsuleOnly,
    /// Reads only this number of capsules of a datagram. Case 610.
    FirstCapsulesOnly(usize),
    /// Rounds a length in bits down to bytes. Case 611.
    BitsRoundedDown,
    /// Drops a datagram with zeros after its last capsule. Case 612.
    ZerosDropDatagram,
    /// Reads further capsules after a capsule of length 0. Case 613.
    SkipsEmptyCapsules,
    /// Delivers truncated capsules. Cases 614 and 716.
    DeliversCutOff,
    /// Accepts only this number of channels. Cases 615 and 616.
    ChannelLimit(u8),
    /// Delivers reliable unordered messages in order. Case 617.
    ReliableInOrder,
    /// Delivers ordered messages that arrive too early. Cases 619 and 1111.
    OrderedAtOnce,
    /// Drops ordered messages that arrive too early. Case 620.
    ForgetsWaiting,
    /// Delivers queued ordered messages in reverse order. Case 621.
    ReleasesReversed,
    /// Orders messages across all channels. Cases 622, 623 and 1124.
    OneChannelForAll,
    /// Delivers a message whose ordering index was already delivered. Case 624.
    OrderedOldDelivered,
    /// Delivers outdated sequenced messages. Cases 625, 626 and 1123.
    SequencedOldDelivered,
    /// Delivers a sequenced message only if none before it is missing. Case 627.
    SequencedWaits,
    /// Does not wrap sequencing indices at 2^24. Case 628.
    SequenceNoWrap,
    /// Does not restart sequencing after an ordered message. Case 629.
    SequencingGoesOn,
    /// Delivers sequenced messages before the ordered messages that precede them. Case 630.
    SequencedIgnoresOrder,
    /// Answers connected pings of 8 bytes. Case 631.
    ShortConnectedPing,
    /// Answers connected pings of 10 bytes. Case 632.
    LongConnectedPing,
    /// Sends connected pongs with excess bytes. Case 633.
    LongConnectedPong,
    /// Sends connected pongs reliably. Case 634.
    PongReliable,
    /// Sends the time 0 as its own in connected pongs. Case 635.
    PongClockStands,
    /// Answers a connected ping twice. Case 636.
    ConnectedPongTwice,
    /// Stops after a message with this id in an open connection. Cases 637, 638, 639, 1015, 1016 and 1018.
    DiesOfId(u8),
    /// Skips datagram numbers. Case 640.
    SkipsDatagramNumbers,
    /// Drops split messages. Case 701.
    NoSplits,
    /// Assembles parts in order of arrival. Cases 702 and 1113.
    PartsInArrivalOrder,
    /// Drops messages of more than this number of parts. Case 703.
    PartLimit(u32),
    /// Delivers messages with a missing part. Case 704.
    DeliversIncomplete,
    /// Assembles only one split message at a time. Case 705.
    OneSplitAtATime,
    /// Reads only the first part in a datagram. Case 706.
    OnePartADatagram,
    /// Counts repeated parts. Case 707.
    CountsPartsTwice,
    /// Delivers ordered split messages out of order. Case 708.
    PartsIgnoreOrder,
    /// Drops messages with a reused split id. Case 710.
    SplitIdOnce,
    /// Drops split messages of one part. Case 711.
    RefusesOnePart,
    /// Accepts split indices that are not below the count. Cases 712 and 713.
    SplitIndexUnchecked,
    /// Stops after a split count above a million. Case 714.
    DiesOfSplitCount,
    /// Accepts a part with a contradicting count. Case 715.
    TakesLastCount,
    /// Stops when this number of split messages is incomplete. Case 717.
    DiesOfUnfinished(usize),
    /// Does not acknowledge datagrams with parts. Case 718.
    AcksWholeOnly,
    /// Sends only one connected ping. Case 802.
    PingsOnce,
    /// Sends connected pings with excess bytes. Case 803.
    LongPingOfServer,
    /// Drops a responsive connection after half of the timeout. Case 804.
    DropsIdle,
    /// Keeps the connections of unresponsive clients. Cases 805 and 806.
    NeverGivesUp,
    /// Keeps sending to a client after its timeout. Case 807.
    SendsForever,
    /// Keeps half-open connections of unresponsive clients. Case 808.
    KeepsHalfOpen,
    /// Resends without a delay. Cases 809, 810 and 1010.
    ResendsWildly,
    /// Does not acknowledge the disconnection notification (15). Cases 901 and 1125.
    NoAckOfDisconnection,
    /// Answers connected pings after a disconnection notification (15). Case 902.
    GoesOnAfterDisconnection,
    /// Ignores the disconnection notification (15). Case 903.
    IgnoresDisconnection,
    /// Keeps the address of a closed connection in use. Cases 904 and 905.
    KeepsClosed,
    /// Ignores a disconnection notification (15) with additional bytes. Case 906.
    DisconnectionExact,
    /// Does not acknowledge a repeated disconnection notification (15). Case 907.
    ForgetsClosedAtOnce,
    /// Closes all connections after one disconnection notification (15). Case 908.
    DisconnectsAll,
    /// Keeps the address of a half-open connection that disconnected. Case 909.
    KeepsClosedHalfOpen,
    /// Continues the counters of the address's previous connection. Case 910.
    ReusesState,
    /// Answers invalid datagrams from unknown addresses. Case 1001.
    EchoesGarbage,
    /// Stops after an invalid datagram. Case 1002.
    DiesOfGarbage,
    /// Stops after a truncated data datagram. Case 1003.
    DiesOfTruncatedData,
    /// Stops after an empty datagram. Case 1004.
    DiesOfEmptyDatagram,
    /// Stops after a datagram of more than 1,600 bytes. Cases 1005 and 1006.
    DiesOfLongDatagram,
    /// Drops received datagrams that exceed the MTU less the IP and UDP headers. Case 1007.
    DropsLongerThanMtu,
    /// Pads reply 1 to 1,480 bytes. Case 1008.
    PadsReplyOne,
    /// Sends reply 2 eight times. Case 1009.
    RepeatsReplyTwo,
    /// Accepts data from another port of a connected host. Cases 1012 and 1013.
    SharesConnectionsOfHost,
    /// Closes an open connection after a refusal. Case 1014.
    BelievesRefusals,
    /// Stops after a second new incoming connection (13). Case 1017.
    DiesOfSecondNewIncoming,
    /// Hangs on an acknowledgement of all numbers. Cases 1019 and 1020.
    HangsOnWideAck,
    /// Stops after more than this number of requests 1. Case 1021.
    DiesOfRequests(usize),
    /// Stops after a truncated control message. Case 1022.
    DiesOfShortControl,
    /// Accepts truncated handshake messages in a connection. Case 1023.
    AcceptsShortRequest,
    /// Refuses clients while this number of connections is half-open. Case 1024.
    HalfOpenLimit(usize),
    /// Drops messages of one byte. Case 1106.
    DropsOneByte,
    /// Truncates echoed messages to this length in bytes. Cases 1107, 1108 and 1109.
    EchoLimit(usize),
    /// Echoes messages in swapped pairs. Case 1110.
    EchoesPairsSwapped,
    /// Uses different ordering indices for the parts of a message. Case 1117.
    PartsDiffer,
    /// Uses one reliable message number for all parts of a message. Case 1118.
    PartsShareNumber,
    /// Sends parts unreliably. Case 1119.
    PartsUnreliable,
    /// Skips reliable message numbers. Case 1120.
    SkipsReliableNumbers,
    /// Skips ordering indices. Case 1121.
    SkipsOrder,
    /// Echoes a message with a reserved id. Case 1122.
    EchoesReserved,
    /// Changes the last byte of echoed messages. Case 1128.
    EchoFlipsLast,
    /// Sends a request 1 that exceeds the MTU 1492. Case 2202.
    LongRequestOne,
    /// Increases the size of request 1. Case 2203.
    LadderRises,
    /// Does not repeat request 1. Case 2204.
    AsksOnce,
    /// Repeats request 1 without a delay. Case 2205.
    AsksWildly,
    /// Does not reduce the size of request 1. Case 2206.
    LadderStands,
    /// Reduces request 1 below the MTU 576. Case 2207.
    LadderWithoutFloor,
    /// Repeats request 1 without end. Case 2208.
    AsksForever,
    /// Changes the protocol version during an attempt. Case 2209.
    VersionChanges,
    /// Ignores refusals with this id. Cases 2210, 2321, 2322, 2323, 2324, 2325 and 2423.
    IgnoresRefusal(u8),
    /// Accepts replies from an address other than the server's. Cases 2213 and 2327.
    BelievesStrangers,
    /// Sends request 2 with excess bytes. Case 2302.
    LongRequestTwo,
    /// Returns the cookie in the wrong byte order. Case 2308.
    CookieSwapped,
    /// Does not return a cookie of zero. Case 2309.
    CookieNotZero,
    /// Sets the challenge flag in request 2 although reply 1 has no key. Case 2310.
    ChallengeFlag,
    /// Does not answer a second reply 1. Case 2311.
    AnswersFirstReplyOnly,
    /// Ignores a padded reply 1. Cases 2312 and 2313.
    ReplyLengthExact,
    /// Ignores the cookie of a reply 1 unless the security byte is 1. Case 2314.
    SecurityByteExact,
    /// Sends request 2 eight times. Cases 2315 and 3031.
    RepeatsRequestTwo,
    /// Sends request 2 before reply 1. Case 2319.
    RequestTwoUnasked,
    /// Sends another connection request (09) after a repeated reply 2. Case 2331.
    OpensTwice,
    /// Repeats request 1 after reply 2. Case 2332.
    AsksWhenAnswered,
    /// Ignores a reply 2 with the encryption byte set. Case 2333.
    EncryptionExact,
    /// Sends a truncated connection request (09). Case 2403.
    RequestTruncated,
    /// Sends another GUID in the connection request (09) than in request 2. Case 2404.
    RequestGuidDiffers,
    /// Sends the connection request (09) unreliably. Case 2405.
    RequestUnreliable,
    /// Sets the security byte of the connection request (09) although reply 1 has no key. Case 2407.
    RequestWantsSecurity,
    /// Rejects address lists with IPv6 addresses. Case 2420.
    Ipv4Only,
    /// Ignores connection request accepted (10) if it is not reliable ordered. Case 2422.
    AcceptedOrderedOnly,
    /// Ignores invalid password (18) unless it has nine bytes. Case 2424.
    PasswordRefusalExact,
    /// Answers each repeated connection request accepted (10). Case 2426.
    AnswersEveryAccepted,
    /// Answers a reply 1 that arrives after reply 2. Case 3032.
    AnswersLateReplies,
    /// A fault of the model of the Game Protocol.
    Game(GameFault),
    /// A fault of the model's secure connections.
    Secure(SecureFault),
}
