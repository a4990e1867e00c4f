//! The layers of crates. A file may use files of its own layer and of lower layers.

use anyhow::{Context, Result, bail};

/// The folders of crates with layers; in all others only cycles are forbidden.
///
/// A line is a layer, from the lowest to the highest. Modules of a line may use each other, unless `|` separates them. An
/// entry `a::b` matches the module and everything below it, and the longest matching entry of a module applies. A folder
/// with files in several layers needs an entry for each file. A line `! a b: c` forbids further uses, of c by a and b.
pub(super) const CRATES: [(&str, &str); 7] = [
    (
        "core/src",
        "macros time serial cursor storage rate_limit cookie machine
        codec::bits
        endpoint
        raknet::delivery raknet::network_id
        raknet::wire | game_protocol::wire
        secure
        raknet::config raknet::reason raknet::security raknet::shared_state raknet::stats game_protocol::config
        codec::*
        raknet::connection::block_header raknet::connection::channels raknet::connection::negotiation \
            raknet::connection::protection game_protocol::connection::block_header game_protocol::connection::rtt
        raknet::connection::handshake::internal_addresses raknet::peer::bans raknet::peer::message_filter \
            raknet::peer::responder raknet::peer::state game_protocol::responder
        raknet::connection::congestion
        raknet::connection::recovery
        raknet::connection::receiver | raknet::connection::sender | game_protocol::connection::handshake | \
            game_protocol::connection::receiver | game_protocol::connection::sender
        raknet::connection::handshake raknet::connection::handshake::control raknet::connection::handshake::opening
        raknet::connection | game_protocol::connection
        raknet::connection::protocol
        raknet raknet::peer raknet::peer::admission raknet::peer::routing game_protocol game_protocol::protocol
        sim
        crate codec
        ! raknet: game_protocol
        ! game_protocol: raknet
        ! raknet::wire game_protocol::wire: time storage endpoint
        ! endpoint raknet game_protocol: codec
        ! codec: endpoint storage time",
    ),
    (
        "native/src",
        "host | huge_pages | outgoing | simulation | unreachable
        arrivals socket
        endpoint
        polled | raknet | game_protocol | reconnect
        crate",
    ),
    (
        "embedded/src",
        "backlog | clock | error | interface_mtu | mac_address | refused | slots | unsent
        shared
        socket
        read_guard | reference | runner
        received connection
        handle
        state
        raknet | game_protocol | tcp
        crate",
    ),
    (
        "wasm/src",
        "client
        npm | web
        crate
        ! npm::raknet web::raknet: npm::game_protocol web::game_protocol
        ! npm::game_protocol web::game_protocol: npm::raknet web::raknet",
    ),
    (
        "relay/src",
        "syntax | time
        congestion | trust
        protocol
        flow
        front
        webrtc
        addresses
        directory | discovery
        clients
        admission::lists
        close | token
        config
        counters
        admission admission::*
        ops | tls
        reload
        io
        relay
        crate",
    ),
    (
        "plugins/src",
        "bytes
        calls | files | mesh | nat | ready | replication | voice
        caller | directory | registry
        crate",
    ),
    (
        "cli/src",
        "failure | hex | text
        connection | host | keys | protocol | tls
        password
        capture
        transfer transfer::*
        bench | conformance | decode | keygen | log | overhead | ping | pull | facilitator | meet | push | send | token
        discover | echo
        crate",
    ),
];

/// The layers of one crate.
pub(super) struct Layers {
    /// The entries, each with the number of its layer, and true if it must not use the other entries of the layer.
    entries: Vec<(&'static str, usize, bool)>,
    /// Further forbidden uses, from entries to entries.
    forbidden: Vec<(Vec<&'static str>, Vec<&'static str>)>,
}

/// The position of a module.
#[derive(Clone, Copy)]
pub(super) struct Standing<'m> {
    layer: usize,
    /// The part of the layer. In a layer with separate parts, a part must not use the others.
    part: &'m str,
    is_apart: bool,
}

impl Layers {
    pub(super) fn parse(text: &'static str) -> Result<Self> {
        let mut layers = Self { entries: Vec::new(), forbidden: Vec::new() };
        for (number, line) in text.lines().enumerate() {
            if let Some(rule) = line.trim().strip_prefix("! ") {
                let (from, to) = rule.split_once(": ").context("a rule is `! USERS: USED`")?;
                layers.forbidden.push((from.split(' ').collect(), to.split(' ').collect()));
            } else {
                let modules = line.split_whitespace().filter(|word| *word != "|");
                layers.entries.extend(modules.map(|module| (module, number, line.contains('|'))));
            }
        }
        Ok(layers)
    }

    /// Returns the entries of layers and rules that match no module.
    pub(super) fn unused<'s>(&'s self, modules: &'s [String]) -> impl Iterator<Item = &'static str> + 's {
        let rules = self.forbidden.iter().flat_map(|(from, to)| from.iter().chain(to).copied());
        let all = self.entries.iter().map(|(entry, ..)| *entry).chain(rules);
        all.filter(|entry| modules.iter().all(|module| matched(entry, module).is_none()))
    }

    /// Returns the position of a module, by the most specific entry.
    pub(super) fn standing<'m>(&self, module: &'m str) -> Result<Standing<'m>> {
        let found = self.entries.iter().filter_map(|(entry, layer, is_apart)| {
            let (weight, part) = matched(entry, module)?;
            Some((weight, *entry, Standing { layer: *layer, part, is_apart: *is_apart }))
        });
        let best = found.max_by_key(|(weight, ..)| *weight);
        let (_, entry, standing) = best.with_context(|| format!("{module} is in no layer"))?;
        let is_other_below = |(other, layer, _): &(&str, usize, bool)| {
            *layer != standing.layer && other.strip_prefix(entry).is_some_and(|rest| rest.starts_with("::"))
        };
        if entry != module && self.entries.iter().any(is_other_below) {
            bail!("{module} has no entry of its own, but {entry} has files in several layers");
        }
        Ok(standing)
    }

    /// Returns true if one module may use another.
    pub(super) fn allow(&self, user: &str, used: &str) -> Result<bool> {
        let (above, below) = (self.standing(user)?, self.standing(used)?);
        let is_elsewhere = above.layer == below.layer && above.is_apart && above.part != below.part;
        let names = |entries: &[&str], module| entries.iter().any(|entry| matched(entry, module).is_some());
        let is_forbidden = self.forbidden.iter().any(|(from, to)| names(from, user) && names(to, used));
        Ok(above.layer >= below.layer && !is_elsewhere && !is_forbidden)
    }
}

/// Returns the length of an entry that matches a module, and the part of the layer. With `a::*` each child is a part.
fn matched<'m>(entry: &str, module: &'m str) -> Option<(usize, &'m str)> {
    let outer = entry.strip_suffix("::*").unwrap_or(entry);
    let inside = module.strip_prefix(outer)?;
    let child = inside.strip_prefix("::").map(|inside| inside.split("::").next().unwrap_or(inside));
    if outer != entry {
        return child.map(|child| (2 * outer.len() + 1, &module[..outer.len() + 2 + child.len()]));
    }
    (inside.is_empty() || child.is_some()).then(|| (2 * outer.len(), &module[..outer.len()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_must_point_downwards_and_stay_in_their_part() {
        let layers = Layers::parse("low gone\n a | b\n c::* d::low\n top d\n ! top: low").unwrap();
        let may = |user, used| layers.allow(user, used).unwrap();
        assert!(may("a", "low") && may("a::x", "a::y") && may("c::x::y", "c::x") && may("c::x", "c::y"));
        assert!(!may("low", "a") && !may("a", "b::x") && !may("top", "low"));
        let new = layers.standing("d::new").map(|_| ()).unwrap_err().to_string();
        assert_eq!(new, "d::new has no entry of its own, but d has files in several layers");
        assert_eq!(layers.standing("new").map(|_| ()).unwrap_err().to_string(), "new is in no layer");
        let modules = ["low", "a", "b", "c::x", "d", "d::low", "top"].map(str::to_owned);
        assert_eq!(layers.unused(&modules).collect::<Vec<_>>(), ["gone"]);
    }
}
