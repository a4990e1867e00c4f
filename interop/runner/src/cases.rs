//! The test cases, and the task of the peers in each of them.

use crate::path::Kind;
use std::time::Duration;

/// The names of the eight reliabilities, each with the reliability number on the wire.
pub const RELIABILITIES: [(&str, u8); 8] = [
    ("unreliable", 0),
    ("unreliable-sequenced", 1),
    ("reliable", 2),
    ("reliable-ordered", 3),
    ("reliable-sequenced", 4),
    ("unreliable-with-receipt", 0),
    ("reliable-with-receipt", 2),
    ("reliable-ordered-with-receipt", 3),
];

/// The time in seconds that a client has to exit after it has failed. It is then killed.
const TIME_TO_END: u64 = 3;

/// A test case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name, which is also the value of `TESTCASE` for the programs.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// The name of the reliability of all messages.
    pub reliability: &'static str,
    /// The number of that reliability on the wire.
    pub wire: u8,
    /// The number of messages that the client sends.
    pub count: u32,
    /// The length of each message in bytes.
    pub size: usize,
    /// The maximum number of unanswered messages.
    pub window: u32,
    /// The pause before the last message, in seconds.
    pub pause: u64,
    /// The path between the peers.
    pub path: Kind,
    /// The time limit of the client in seconds.
    pub limit: u64,
}

const BASE: Case = Case {
    name: "handshake",
    about: "a connection opens, and one message is echoed",
    reliability: "reliable-ordered",
    wire: 3,
    count: 1,
    size: 50,
    window: 8,
    pause: 0,
    path: Kind::Clean,
    limit: 20,
};

const fn on(path: Kind, name: &'static str, about: &'static str) -> Case {
    Case { name, about, count: 100, size: 400, window: 16, path, limit: 25, ..BASE }
}

const fn transfer(index: usize, name: &'static str) -> Case {
    let (reliability, wire) = RELIABILITIES[index];
    Case {
        name,
        about: "50 messages with this reliability are echoed",
        reliability,
        wire,
        count: 50,
        size: 100,
        ..BASE
    }
}

/// All cases, in the order of the results page.
pub const ALL: [Case; 17] = [
    BASE,
    Case {
        name: "ping",
        about: "an unconnected ping is answered by a pong with an advertisement",
        count: 0,
        ..BASE
    },
    transfer(0, "transfer-unreliable"),
    transfer(1, "transfer-unreliable-sequenced"),
    transfer(2, "transfer-reliable"),
    transfer(3, "transfer-reliable-ordered"),
    transfer(4, "transfer-reliable-sequenced"),
    transfer(5, "transfer-unreliable-with-receipt"),
    transfer(6, "transfer-reliable-with-receipt"),
    transfer(7, "transfer-reliable-ordered-with-receipt"),
    Case {
        name: "split",
        about: "a message of 100,000 bytes is echoed",
        size: 100_000,
        window: 1,
        limit: 30,
        ..BASE
    },
    on(Kind::Loss, "loss", "100 messages are echoed over a path that drops 10 % of the datagrams"),
    on(
        Kind::Reorder,
        "reorder",
        "100 messages are echoed once and in order over a path that reorders datagrams",
    ),
    on(Kind::Duplicate, "duplicate", "100 messages are echoed once over a path that duplicates datagrams"),
    Case {
        count: 20,
        size: 3_000,
        window: 4,
        ..on(Kind::Narrow, "mtu", "messages of 3,000 bytes are echoed over a path with an MTU of 1,200 bytes")
    },
    Case {
        name: "goodbye",
        about: "the server acknowledges the client's message 15 (disconnection notification) and sends no more messages",
        ..BASE
    },
    Case {
        name: "idle",
        about: "a connection stays open for 12 seconds without messages",
        count: 2,
        window: 1,
        pause: 12,
        limit: 40,
        ..BASE
    },
];

impl Case {
    /// Returns true if the case judges disconnecting, for which the runner waits some seconds for further
    /// datagrams.
    #[must_use]
    pub fn is_about_the_end(&self) -> bool {
        self.name == "goodbye"
    }

    /// Returns true if this is the case that judges details of the handshake, which do not depend on the
    /// case.
    #[must_use]
    pub fn is_about_the_handshake(&self) -> bool {
        self.name == "handshake"
    }

    /// Returns true if the case judges datagram numbers, which requires a path that causes retransmissions.
    #[must_use]
    pub fn is_about_numbers(&self) -> bool {
        self.is_about_the_handshake() || self.path == Kind::Loss
    }

    /// Returns true if the case needs no connection.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.count == 0
    }

    /// Returns the environment variables that both peers get with equal values.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, String); 7] {
        [
            ("TESTCASE", self.name.to_owned()),
            ("RELIABILITY", self.reliability.to_owned()),
            ("COUNT", self.count.to_string()),
            ("SIZE", self.size.to_string()),
            ("WINDOW", self.window.to_string()),
            ("PAUSE", self.pause.to_string()),
            ("TIMEOUT", (self.limit - TIME_TO_END).to_string()),
        ]
    }

    /// Returns the time after which a client is killed.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        Duration::from_secs(self.limit)
    }
}
