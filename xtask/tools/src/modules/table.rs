//! The table of layers, the only place to change when modules are added, removed or moved.

/// Modules of one layer. They may use those of lower layers, and each other unless they are apart.
pub(super) struct Layer {
    pub(super) modules: &'static [&'static str],
    pub(super) is_apart: bool,
}

/// A crate with layers.
pub(super) struct Crate {
    /// Its root file.
    pub(super) root: &'static str,
    /// From the lowest to the highest; every module is in one of them.
    pub(super) layers: &'static [Layer],
    /// Forbidden uses that the layers would allow.
    pub(super) never: &'static [Never],
}

/// Modules that must not use some others.
pub(super) struct Never {
    pub(super) from: &'static [&'static str],
    pub(super) to: &'static [&'static str],
}

impl Layer {
    /// Creates a layer with modules that may use each other.
    pub(super) const fn together(modules: &'static [&'static str]) -> Self {
        Self { modules, is_apart: false }
    }

    /// Creates a layer with modules that must not use each other.
    pub(super) const fn apart(modules: &'static [&'static str]) -> Self {
        Self { modules, is_apart: true }
    }
}

/// The crates with layers. In all others only cycles are forbidden.
///
/// An entry `a::b` matches the module and everything below it, `a::b::*` only modules below it. The longest matching
/// entry of a module applies; a folder with modules in several layers has an entry for each of them. The root of a
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
        // Modules without knowledge of a protocol.
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
        // The handshake and the protection of secure connections; the prologue contains RakNet's addresses.
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
        // Encodings of values.
        Layer::apart(&["codec::*"]),
        // A connection, from its leaves to the module that combines its parts.
        Layer::together(&[
            "raknet::connection::block_header",
            "raknet::connection::channels",
            "raknet::connection::negotiation",
            "raknet::connection::protection",
            "game_protocol::connection::block_header",
            "game_protocol::connection::rtt",
        ]),
        // Users of the pool other than messages, replies to peers without a connection, and state of a peer that does not
        // belong to a connection.
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
        // A connection as the endpoint sees it.
        Layer::together(&["raknet::connection::protocol"]),
        // The peers of each protocol: routing, and the protocol's additions to the endpoint.
        Layer::together(&[
            "raknet",
            "raknet::peer",
            "raknet::peer::admission",
            "raknet::peer::routing",
            "game_protocol",
            "game_protocol::protocol",
        ]),
        Layer::together(&["sim"]),
        // Re-exports.
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
        // The path of datagrams between the socket and the endpoint.
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
        // State shared by tasks, and its readers.
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
        // Encodings of values, and instants and token buckets.
        Layer::apart(&["syntax", "time"]),
        // Decisions without a socket.
        Layer::apart(&["congestion", "trust"]),
        Layer::together(&["protocol"]),
        // The flows of browsers, and above them those of clients with their own UDP, which have the same rates.
        Layer::together(&["flow"]),
        Layer::together(&["front"]),
        // Data channels, with the same rate limits for clients as the front.
        Layer::together(&["webrtc"]),
        Layer::together(&["addresses"]),
        // Discovery of servers, and its presentation in lists.
        Layer::apart(&["directory", "discovery"]),
        Layer::apart(&["clients"]),
        // Origins of pages, which tokens contain, and bans.
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
        // The plugins, which do not use each other.
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
            "conformance",
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
        // Modules without child processes.
        Layer::apart(&["log", "stop", "targets", "results", "schedule::constraints"]),
        Layer::together(&["files", "process", "schedule", "schedule::plan"]),
        // The base of all commands.
        Layer::together(&["shell", "workspaces"]),
        Layer::apart(&["tracked", "service", "artifacts", "fields", "firmware", "history"]),
        Layer::together(&["tools_of_xtask"]),
        Layer::together(&["rerun"]),
        // Installation of each need; then all of them under one name.
        Layer::together(&["setup::*"]),
        Layer::together(&["setup"]),
        // Parts of a run, and their runner.
        Layer::together(&["stage"]),
        Layer::together(&["tasks"]),
        Layer::together(&["numbers"]),
        Layer::apart(&["runner", "listing"]),
        // Shared by several stages and commands.
        Layer::apart(&["npm_size", "mcu"]),
        // The work of stages and commands.
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
        // Commands that contain others.
        Layer::together(&["demo"]),
        // The command line, and the list of all stages.
        Layer::apart(&["cli", "stages"]),
        Layer::together(&["crate"]),
    ],
    never: &[],
};

const XTASK_TOOLS: Crate = Crate {
    root: "xtask/tools/src/main.rs",
    layers: &[
        // Shared by several stages and commands.
        Layer::apart(&["corpus", "measurements"]),
        // The work of stages and commands.
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
        // Commands that contain others.
        Layer::apart(&["bench", "mutants", "release"]),
        // The command line, and the documents that describe it.
        Layer::together(&["cli"]),
        Layer::together(&["documents"]),
        Layer::together(&["stages"]),
        Layer::together(&["crate"]),
    ],
    never: &[],
};

/// A path of another crate that only one module of a crate may use.
#[derive(Clone, Copy)]
pub(super) struct Foreign {
    pub(super) root: &'static str,
    /// The path, without the `::` after it.
    pub(super) path: &'static [&'static str],
    pub(super) only_in: &'static str,
}

/// Other crates that are each used by one module only.
const FOREIGN: &[Foreign] = &[
    Foreign { root: "embedded/src/lib.rs", path: &["embassy_net", "udp"], only_in: "socket" },
    // The relay runs no connection, but its tests let peers communicate through it.
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
const PRIVATE: [(&str, &str); 7] = [
    ("relay/src/lib.rs", PRIVATE_FILE),
    ("native/src/lib.rs", PRIVATE_FILE),
    ("native/extras/src/lib.rs", PRIVATE_FILE),
    ("cli/src/main.rs", PRIVATE_FILE),
    ("udp/src/lib.rs", "private_file"),
    ("plugins/src/lib.rs", "directory::store"),
    ("snowfight/server/src/lib.rs", PRIVATE_FILE),
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

/// Returns all rules.
pub(super) fn foreign() -> Vec<Foreign> {
    let private =
        PRIVATE.into_iter().flat_map(|(root, only_in)| MAKERS.map(|path| Foreign { root, path, only_in }));
    FOREIGN.iter().copied().chain(private).collect()
}
