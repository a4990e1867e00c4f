//! The table of layers, which is all that has to change when modules come, go or move.

/// Modules of one height. They may use those of lower layers, and each other too unless they are apart.
pub(super) struct Layer {
    pub(super) modules: &'static [&'static str],
    pub(super) is_apart: bool,
}

/// A crate with layers.
pub(super) struct Crate {
    /// Its root file.
    pub(super) root: &'static str,
    /// From the lowest to the highest; every module stands in one of them.
    pub(super) layers: &'static [Layer],
    /// What must not know each other although the layers would allow it.
    pub(super) never: &'static [Never],
}

/// Modules that use none of some others.
pub(super) struct Never {
    pub(super) from: &'static [&'static str],
    pub(super) to: &'static [&'static str],
}

impl Layer {
    /// A layer whose modules may use each other.
    pub(super) const fn together(modules: &'static [&'static str]) -> Self {
        Self { modules, is_apart: false }
    }

    /// A layer whose modules do not know each other.
    pub(super) const fn apart(modules: &'static [&'static str]) -> Self {
        Self { modules, is_apart: true }
    }
}

/// The crates whose modules have layers; in all others there may be no circle, and that is all.
///
/// An entry `a::b` stands for the module and all below it, `a::b::*` for what is below it only. The longest entry that
/// fits a module counts; a folder whose modules stand in several layers has an entry for each of them. The root of a
/// crate is `crate`.
pub(super) const CRATES: &[Crate] = &[
    CORE,
    NATIVE,
    EMBEDDED,
    WASM,
    RELAY,
    PLUGINS,
    CLI,
    SNOWFIGHT,
    SNOWFIGHT_REPLICATION,
    XTASK,
    XTASK_TOOLS,
];

const CORE: Crate = Crate {
    root: "core/src/lib.rs",
    layers: &[
        // What knows no protocol.
        Layer::together(&[
            "macros",
            "time",
            "serial",
            "cursor",
            "storage",
            "rate_limit",
            "cookie",
            "machine",
        ]),
        Layer::together(&["codec::bits"]),
        // The endpoint, generic over the protocol.
        Layer::together(&["endpoint"]),
        // Ids, deliveries and the protocols' names.
        Layer::together(&["raknet::delivery", "raknet::network_id"]),
        Layer::apart(&["raknet::wire", "game_protocol::wire"]),
        // The handshake and the protection of secure connections, whose prologue has RakNet's addresses.
        Layer::together(&["secure"]),
        // Configuration, counters, reasons.
        Layer::together(&[
            "raknet::config",
            "raknet::reason",
            "raknet::security",
            "raknet::shared_state",
            "raknet::stats",
            "game_protocol::config",
        ]),
        // How values are written.
        Layer::apart(&["codec::*"]),
        // A connection, from its leaves to the module where its parts meet.
        Layer::together(&[
            "raknet::connection::block_header",
            "raknet::connection::channels",
            "raknet::connection::negotiation",
            "raknet::connection::protection",
            "game_protocol::connection::block_header",
            "game_protocol::connection::rtt",
        ]),
        // What stands in the pool beside messages, the answers to peers without a connection, and what a peer keeps beside
        // its connections.
        Layer::together(&[
            "raknet::connection::handshake::internal_addresses",
            "raknet::peer::bans",
            "raknet::peer::message_filter",
            "raknet::peer::responder",
            "raknet::peer::state",
            "game_protocol::responder",
        ]),
        Layer::together(&["raknet::connection::congestion"]),
        Layer::together(&["raknet::connection::recovery"]),
        Layer::apart(&[
            "raknet::connection::receiver",
            "raknet::connection::sender",
            "game_protocol::connection::handshake",
            "game_protocol::connection::receiver",
            "game_protocol::connection::sender",
        ]),
        Layer::together(&[
            "raknet::connection::handshake",
            "raknet::connection::handshake::control",
            "raknet::connection::handshake::opening",
        ]),
        Layer::apart(&["raknet::connection", "game_protocol::connection"]),
        // A connection as the endpoint knows it.
        Layer::together(&["raknet::connection::protocol"]),
        // The peers of each protocol: routing, and what the protocol adds to the endpoint.
        Layer::together(&[
            "raknet",
            "raknet::peer",
            "raknet::peer::admission",
            "raknet::peer::routing",
            "game_protocol",
            "game_protocol::protocol",
        ]),
        Layer::together(&["sim"]),
        // What only offers the rest under its names.
        Layer::together(&["crate", "codec"]),
    ],
    never: &[
        Never { from: &["raknet"], to: &["game_protocol"] },
        Never { from: &["game_protocol"], to: &["raknet"] },
        Never { from: &["raknet::wire", "game_protocol::wire"], to: &["time", "storage", "endpoint"] },
        Never { from: &["endpoint", "raknet", "game_protocol"], to: &["codec"] },
        Never { from: &["codec"], to: &["endpoint", "storage", "time"] },
    ],
};

const NATIVE: Crate = Crate {
    root: "native/src/lib.rs",
    layers: &[
        Layer::apart(&["host", "huge_pages", "outgoing", "simulation", "unreachable"]),
        // What datagrams pass between the socket and the endpoint.
        Layer::together(&["arrivals", "socket"]),
        // The driver, generic over the protocol.
        Layer::together(&["endpoint"]),
        Layer::apart(&["polled", "raknet", "game_protocol", "reconnect"]),
        Layer::together(&["crate"]),
    ],
    never: &[],
};

const EMBEDDED: Crate = Crate {
    root: "embedded/src/lib.rs",
    layers: &[
        Layer::apart(&[
            "backlog",
            "clock",
            "error",
            "interface_mtu",
            "mac_address",
            "refused",
            "slots",
            "unsent",
        ]),
        // What the tasks share, and who may look at it.
        Layer::together(&["shared"]),
        Layer::together(&["socket"]),
        Layer::apart(&["read_guard", "reference", "runner"]),
        Layer::together(&["received", "connection"]),
        Layer::together(&["handle"]),
        Layer::together(&["state"]),
        Layer::apart(&["raknet", "game_protocol", "tcp"]),
        Layer::together(&["crate"]),
    ],
    never: &[],
};

const WASM: Crate = Crate {
    root: "wasm/src/lib.rs",
    layers: &[
        Layer::together(&["client"]),
        // For JavaScript, and for games in Rust.
        Layer::apart(&["npm", "web"]),
        Layer::together(&["crate"]),
    ],
    never: &[
        Never { from: &["npm::raknet", "web::raknet"], to: &["npm::game_protocol", "web::game_protocol"] },
        Never { from: &["npm::game_protocol", "web::game_protocol"], to: &["npm::raknet", "web::raknet"] },
    ],
};

const RELAY: Crate = Crate {
    root: "relay/src/lib.rs",
    layers: &[
        // How values are written, and moments and token buckets.
        Layer::apart(&["syntax", "time"]),
        // What decides without a socket.
        Layer::apart(&["congestion", "trust"]),
        Layer::together(&["protocol"]),
        // The flows of browsers, and above them those of clients with UDP of their own, which have the same rates.
        Layer::together(&["flow"]),
        Layer::together(&["front"]),
        // Data channels, whose clients have rations as those of the front.
        Layer::together(&["webrtc"]),
        Layer::together(&["addresses"]),
        // Where servers are found, and what lists show of them.
        Layer::apart(&["directory", "discovery"]),
        Layer::apart(&["clients"]),
        // Origins of pages, which tokens name, and bans.
        Layer::together(&["admission::lists"]),
        Layer::apart(&["close", "token"]),
        Layer::together(&["config"]),
        Layer::together(&["counters"]),
        Layer::together(&["admission", "admission::*"]),
        Layer::apart(&["ops", "tls"]),
        Layer::apart(&["reload"]),
        Layer::together(&["io"]),
        Layer::together(&["relay"]),
        Layer::together(&["crate"]),
    ],
    never: &[],
};

const PLUGINS: Crate = Crate {
    root: "plugins/src/lib.rs",
    layers: &[
        Layer::together(&["bytes"]),
        // The plugins, which do not know each other.
        Layer::apart(&["calls", "files", "mesh", "nat", "ready", "replication", "voice"]),
        Layer::apart(&["caller", "directory", "registry"]),
        Layer::together(&["crate"]),
    ],
    never: &[],
};

const CLI: Crate = Crate {
    root: "cli/src/main.rs",
    layers: &[
        Layer::apart(&["failure", "hex", "text"]),
        Layer::apart(&["connection", "host", "keys", "protocol", "tls"]),
        Layer::together(&["password"]),
        Layer::together(&["capture"]),
        Layer::together(&["transfer", "transfer::*"]),
        // The commands.
        Layer::apart(&[
            "bench",
            "decode",
            "keygen",
            "log",
            "overhead",
            "ping",
            "pull",
            "facilitator",
            "meet",
            "push",
            "send",
            "token",
        ]),
        Layer::apart(&["discover", "echo"]),
        Layer::together(&["crate"]),
    ],
    never: &[],
};

const SNOWFIGHT: Crate = Crate {
    root: "snowfight/src/lib.rs",
    layers: &[
        Layer::apart(&["advertisement", "message"]),
        Layer::together(&["world"]),
        Layer::apart(&["client", "server"]),
        Layer::together(&["bot"]),
        Layer::together(&["wanderer"]),
        Layer::together(&["crate"]),
    ],
    never: &[],
};

const SNOWFIGHT_REPLICATION: Crate = Crate {
    root: "snowfight/replication/src/lib.rs",
    layers: &[
        Layer::together(&["class"]),
        Layer::together(&["near_players"]),
        Layer::together(&["crate", "world"]),
    ],
    never: &[],
};

const XTASK: Crate = Crate {
    root: "xtask/src/lib.rs",
    layers: &[
        // What knows no child process.
        Layer::apart(&["log", "stop", "targets", "results", "schedule::constraints"]),
        Layer::together(&["process", "schedule", "schedule::plan"]),
        // What all commands have.
        Layer::together(&["shell"]),
        Layer::apart(&["tracked", "service", "artifacts", "fields", "firmware", "history"]),
        Layer::together(&["tools_of_xtask"]),
        Layer::together(&["rerun"]),
        // How each thing comes to this machine; then all of them under one name.
        Layer::together(&["setup::*"]),
        Layer::together(&["setup"]),
        // Parts of a run, and what runs them.
        Layer::together(&["stage"]),
        Layer::together(&["tasks"]),
        Layer::together(&["numbers"]),
        Layer::apart(&["runner", "listing"]),
        // What several stages and commands do.
        Layer::apart(&["npm_size", "mcu"]),
        // What the stages and the commands do.
        Layer::apart(&[
            "checks",
            "interop",
            "miri",
            "models",
            "own_files",
            "quickstarts",
            "site",
            "slow_page",
            "smoke",
        ]),
        // Commands that have others as parts.
        Layer::together(&["demo"]),
        // What can be asked for, and the list of all stages.
        Layer::apart(&["cli", "stages"]),
        Layer::together(&["crate"]),
    ],
    never: &[],
};

const XTASK_TOOLS: Crate = Crate {
    root: "xtask/tools/src/main.rs",
    layers: &[
        // What several stages and commands do.
        Layer::apart(&["corpus", "measurements"]),
        // What the stages and the commands do.
        Layer::apart(&[
            "boards",
            "citations",
            "english",
            "fuzz",
            "mcu",
            "modules",
            "package",
            "relay_package",
            "size",
        ]),
        // Commands that have others as parts.
        Layer::apart(&["bench", "mutants", "release"]),
        // What can be asked for, and the documents that tell of it.
        Layer::together(&["cli"]),
        Layer::together(&["documents"]),
        Layer::together(&["stages"]),
        Layer::together(&["crate"]),
    ],
    never: &[],
};

/// What of another crate only one module of a crate may name.
#[derive(Clone, Copy)]
pub(super) struct Foreign {
    pub(super) root: &'static str,
    /// The path, without the `::` behind it.
    pub(super) path: &'static [&'static str],
    pub(super) only_in: &'static str,
}

/// Other crates that stand behind one module each.
const FOREIGN: &[Foreign] = &[
    Foreign { root: "embedded/src/lib.rs", path: &["embassy_net", "udp"], only_in: "socket" },
    // The relay runs no connection, but its tests let peers speak through it.
    Foreign { root: "relay/src/lib.rs", path: &["rakwire", "raknet", "Peer"], only_in: "front::tests" },
    Foreign {
        root: "relay/src/lib.rs",
        path: &["rakwire", "game_protocol", "Peer"],
        only_in: "front::tests",
    },
    Foreign { root: "relay/src/lib.rs", path: &["rakwire", "endpoint"], only_in: "front::tests" },
];

/// The crates whose files hold keys and the traffic of others, and the one module that makes them there. Files that a peer sends are no such
/// files: a store of the plugins makes them.
const PRIVATE: [(&str, &str); 10] = [
    ("relay/src/lib.rs", PRIVATE_FILE),
    ("relay/src/main.rs", PRIVATE_FILE),
    ("native/src/lib.rs", PRIVATE_FILE),
    ("native/extras/src/lib.rs", PRIVATE_FILE),
    ("cli/src/main.rs", PRIVATE_FILE),
    ("udp/src/lib.rs", "private_file"),
    ("plugins/src/lib.rs", "directory::store"),
    ("snowfight/server/src/lib.rs", PRIVATE_FILE),
    ("snowfight/server/src/bin/snowfight-client.rs", PRIVATE_FILE),
    ("snowfight/server/src/bin/snowfight-server.rs", PRIVATE_FILE),
];
const PRIVATE_FILE: &str = "rakwire_udp::private_file";
const MAKERS: [&[&str]; 7] = [
    &["std", "fs", "write"],
    &["std", "fs", "copy"],
    &["std", "fs", "File", "create"],
    &["std", "fs", "File", "create_new"],
    &["std", "fs", "File", "options"],
    &["std", "fs", "OpenOptions"],
    &["tokio", "fs"],
];

/// All rules.
pub(super) fn foreign() -> Vec<Foreign> {
    let private =
        PRIVATE.into_iter().flat_map(|(root, only_in)| MAKERS.map(|path| Foreign { root, path, only_in }));
    FOREIGN.iter().copied().chain(private).collect()
}
