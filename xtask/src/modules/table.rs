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
/// fits a module counts. The root of a crate is `crate`.
pub(super) const CRATES: &[Crate] = &[CORE, XTASK];

const CORE: Crate = Crate {
    root: "core/src/lib.rs",
    layers: &[
        // What knows no protocol.
        Layer::together(&[
            "enums",
            "time",
            "serial",
            "cursor",
            "chunks",
            "storage",
            "rate_limit",
            "cookie",
            "machine",
        ]),
        Layer::together(&["codec::bits"]),
        // The endpoint, generic over the protocol.
        Layer::together(&["endpoint"]),
        // Ids, deliveries and the protocols' names.
        Layer::together(&[
            "raknet::bans",
            "raknet::delivery",
            "raknet::features",
            "raknet::network_id",
            "raknet::types",
            "game_protocol::types",
        ]),
        Layer::apart(&["raknet::wire", "game_protocol::wire"]),
        // Configuration, counters, reasons.
        Layer::together(&[
            "raknet::amplification_budget",
            "raknet::config",
            "raknet::error",
            "raknet::reason",
            "raknet::stats",
            "game_protocol::config",
            "game_protocol::reason",
            "game_protocol::stats",
        ]),
        // How values are written.
        Layer::apart(&["codec::*"]),
        // A connection, from its leaves to the module where its parts meet.
        Layer::together(&[
            "raknet::connection::block_header",
            "raknet::connection::channels",
            "raknet::connection::context",
            "raknet::connection::metrics",
            "raknet::connection::protection",
            "raknet::connection::send_source",
            "raknet::connection::sizes",
            "game_protocol::connection::block_header",
            "game_protocol::connection::context",
            "game_protocol::connection::rtt",
            "game_protocol::connection::windows",
        ]),
        // What a peer keeps beside its connections, and the answers to peers without one.
        Layer::together(&[
            "raknet::internal_addresses",
            "raknet::known_versions",
            "raknet::responder",
            "raknet::state",
            "game_protocol::responder",
            "game_protocol::state",
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
        Layer::together(&["raknet::connection::handshake"]),
        Layer::apart(&["raknet::connection", "game_protocol::connection"]),
        // A connection as the endpoint knows it.
        Layer::apart(&["raknet::connection::protocol", "game_protocol::connection::protocol"]),
        // The peers of each protocol: routing, and what the protocol adds to the endpoint.
        Layer::apart(&["raknet", "game_protocol"]),
        Layer::together(&["sim"]),
        // What only offers the rest under its names.
        Layer::together(&["crate", "codec"]),
    ],
};

const XTASK: Crate = Crate {
    root: "xtask/src/main.rs",
    layers: &[
        // What knows no child process.
        Layer::apart(&["log", "stop", "targets", "corpus", "schedule::constraints"]),
        Layer::together(&["measurements", "process", "schedule"]),
        // What all commands have.
        Layer::together(&["shell"]),
        Layer::apart(&["tracked", "service", "artifacts", "firmware"]),
        // How each thing comes to this machine; then all of them under one name.
        Layer::together(&["setup::*"]),
        Layer::together(&["setup"]),
        // Parts of a run, and what runs them.
        Layer::together(&["stage"]),
        Layer::together(&["tasks"]),
        Layer::together(&["runner"]),
        // What the stages and the commands do.
        Layer::apart(&[
            "checks",
            "citations",
            "features",
            "fuzz",
            "interop",
            "mcu",
            "modules",
            "msrv",
            "named_tests",
            "own_files",
            "npm_size",
            "quickstarts",
            "size",
            "smoke",
            "words",
        ]),
        // Commands that have others as parts.
        Layer::apart(&["bench", "demo", "mutants"]),
        // The list of all stages.
        Layer::together(&["test"]),
        Layer::together(&["crate"]),
    ],
};

/// What of another crate only one module of a crate may name.
pub(super) struct Foreign {
    pub(super) root: &'static str,
    /// The path, without the `::` behind it.
    pub(super) path: &'static [&'static str],
    pub(super) only_in: &'static str,
}

/// Other crates that stand behind one module each.
pub(super) const FOREIGN: &[Foreign] =
    &[Foreign { root: "embedded/src/lib.rs", path: &["embassy_net", "udp"], only_in: "socket" }];
