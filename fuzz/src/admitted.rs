//! Fuzzes the relay's admission with arbitrary requests at arbitrary times.
//!
//! Their tokens are valid, modified or of an unknown issuer. Their addresses are banned, share a network, or belong to
//! the clients of a trusted proxy.

mod clients;
mod issuer;
mod reference;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant, UNIX_EPOCH};

use http::header::{FORWARDED, HeaderName, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue};
use rakwire_udp::proxy::ProxyHeader;

use self::clients::{PROXY, Shares, address};
use self::issuer::{Issued, Issuers};
use self::reference::Refused;
use crate::admission::{
    Admission, Forbidden, Grant, Permission, Refusal, Request, ResolvedTarget, Share, Targets,
};
use crate::close::CloseReason;
use crate::config::{AddressLimits, Config, ForwardedHeader};
use crate::steps::{Step, steps};
use crate::time::Now;

/// The maximum number of used tokens that the relay remembers.
const USED_MAX: usize = 3;
/// The wall-clock time at the start of each input, in seconds since the Unix epoch.
const START: u64 = 1_700_000_000;
/// The number of new clients per address that may arrive in a burst. One more per second is allowed.
const BURST: u32 = 8;
/// The message to an address that exceeds its rate.
const TOO_FAST: &str = "too many new clients from your address or network";
/// The maximum time for which a used token is remembered, if the system clock is not set.
const LIFE_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("admission").join(file)
}

/// The settings of the relay that the input chooses.
#[derive(Clone, Copy)]
struct Rules {
    single_use: bool,
    header: ForwardedHeader,
    max_clients: usize,
    /// True for each of the two issuers that the relay trusts. If it trusts neither, clients need no token.
    trusted: [bool; 2],
}

impl Rules {
    fn new(options: u8) -> Self {
        let header = match (options >> 1) & 3 {
            0 | 1 => ForwardedHeader::XForwardedFor,
            2 => ForwardedHeader::Forwarded,
            _ => ForwardedHeader::None,
        };
        let trusted = [options & 8 != 0, options & 16 != 0];
        Self { single_use: options & 1 != 0, header, max_clients: 1 + usize::from(options >> 6), trusted }
    }

    fn needs_token(self) -> bool {
        self.trusted.contains(&true)
    }

    fn config(self) -> Config {
        let mut config = Config::new(([127, 0, 0, 1], 0).into());
        for target in ["game=127.0.0.1:1", "other=127.0.0.1:2"] {
            config = config.with_target(target.parse().expect("a valid target"));
        }
        config.admission.bans = Some(here("bans"));
        config.admission.forwarded_header = self.header;
        config.admission.trusted_proxies = vec![IpAddr::from(PROXY).into()];
        config.admission.allow_origins = vec!["https://game.example".parse().expect("a valid origin")];
        let files = ["secret.key", "issuer.pub"].into_iter().zip(self.trusted);
        config.tokens.keys = files.filter(|(_, trusted)| *trusted).map(|(file, _)| here(file)).collect();
        config.tokens.single_use = self.single_use;
        config.limits.max_clients = self.max_clients;
        config.clients = AddressLimits {
            per_address: clients::PER_ADDRESS,
            per_prefix: clients::PER_PREFIX,
            rate_per_address: 60,
            burst_per_address: BURST,
            rate_per_prefix: 0,
            ..config.clients
        };
        config
    }
}

/// Returns the targets of a configuration with addresses that need no DNS.
fn targets(config: &Config) -> Targets {
    let mut targets = Targets::default();
    for (number, (name, settings)) in (1..).zip(&config.targets) {
        let (name, settings, address) = (name.clone(), settings.clone(), ([127, 0, 0, 1], number).into());
        targets.insert(ResolvedTarget::new(name, settings, address));
    }
    targets
}

/// Returns the issuers. All inputs share them, because parsing their keys is slow.
fn issuers() -> &'static Issuers {
    static ISSUERS: OnceLock<Issuers> = OnceLock::new();
    ISSUERS.get_or_init(Issuers::new)
}

/// The kinds of arrivals. The relay limits the rate of each kind per address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Arrival {
    Client,
    /// A request of a client that may open several connections.
    Deferred,
    Connection,
}

impl Arrival {
    const fn of(request: &Request) -> Self {
        if request.is_deferred { Self::Deferred } else { Self::Client }
    }

    /// Returns the factor by which the limits for clients are multiplied for this kind.
    const fn factor(self) -> u32 {
        match self {
            Self::Client => 1,
            Self::Deferred | Self::Connection => 4,
        }
    }
}

/// A client that occupies a slot.
struct Connected {
    _grant: Grant,
    ip: IpAddr,
}

struct World {
    admission: Admission,
    rules: Rules,
    now: Now,
    start: Instant,
    issued: Vec<Issued>,
    /// The time until which each used token id must not admit another client.
    lives: HashMap<String, Instant>,
    clients: Vec<Connected>,
    connections: Vec<(Share, IpAddr)>,
    /// The number of arrivals per address that were not refused because of their rate.
    passed: HashMap<(Arrival, IpAddr), u32>,
}

impl World {
    fn new(options: u8) -> Self {
        let rules = Rules::new(options);
        let config = rules.config();
        let admission = Admission::new(&config, targets(&config)).expect("a valid configuration");
        let start = Instant::now();
        Self {
            admission: admission.with_used_tokens_max(USED_MAX),
            rules,
            now: Now { at: start, wall: UNIX_EPOCH + Duration::from_secs(START) },
            start,
            issued: Vec::new(),
            lives: HashMap::new(),
            clients: Vec::new(),
            connections: Vec::new(),
            passed: HashMap::new(),
        }
    }

    /// Advances the time, and possibly changes the system clock.
    fn wait(&mut self, step: &Step<'_>) {
        let [seconds, minutes, ..] = step.bytes else { return };
        let time = Duration::from_secs(u64::from(*seconds) + 60 * u64::from(*minutes));
        match (step.flags >> 3) & 3 {
            0 | 1 => {
                self.now.at += time;
                self.now.wall += time;
            }
            2 => self.now.wall += 60 * time,
            _ => self.now.wall -= 60 * time,
        }
    }

    /// Reloads the configuration with other settings. Connected clients stay connected.
    fn reload(&mut self, step: &Step<'_>) {
        self.rules = Rules::new(step.bytes.first().copied().unwrap_or_default());
        let config = self.rules.config();
        self.admission.reload(&config, targets(&config)).expect("a valid configuration");
    }

    fn issue(&mut self, step: &Step<'_>) {
        self.issued.push(issuers().issue(self.now.unix_seconds(), step.bytes));
    }

    /// Handles the request of a client with its token, unchanged or modified.
    fn request(&mut self, step: &Step<'_>) {
        let [from, token, change, at, ..] = step.bytes else { return };
        let client = SocketAddr::new(address(*from), 5);
        let target = if step.flags & 8 != 0 { "other" } else { "game" };
        let issued = self.issued.get(usize::from(*token)).cloned();
        let mut text = issued.as_ref().map_or_else(String::new, |issued| issued.text.clone());
        let is_changed = step.flags & 16 != 0 && issuer::change(&mut text, *at, *change);
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_static("https://game.example"));
        let mut query = format!("target={target}");
        if step.flags & 32 != 0 {
            query = format!("{query}&token={text}");
        } else if let Ok(value) = format!("rakwire.relay.1, rakwire.token.{text}").parse() {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, value);
        }
        let request = Request::from_http(client, &headers, &query);
        assert!(
            text.is_empty() || !format!("{request:?}").contains(&text),
            "the debug output of a request shows its token"
        );
        let token = issued.filter(|_| !is_changed);
        if step.flags & 64 != 0 {
            self.look(&request, token.as_ref());
        } else {
            self.request_slot(&request, target, token.as_ref(), true);
        }
    }

    /// Handles a request with an arbitrary query and arbitrary headers.
    fn nonsense(&mut self, step: &Step<'_>) {
        let (query, protocols) = step.bytes.split_at(step.bytes.len() / 2);
        let mut headers = HeaderMap::new();
        for (name, value) in [(SEC_WEBSOCKET_PROTOCOL, protocols), (ORIGIN, query)] {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(name, value);
            }
        }
        let is_origin_allowed = step.flags & 8 != 0;
        if is_origin_allowed {
            headers.insert(ORIGIN, HeaderValue::from_static("https://game.example"));
        }
        let client = SocketAddr::new(address(step.flags >> 4), 5);
        let request = Request::from_http(client, &headers, &String::from_utf8_lossy(query));
        let target = request.target.clone().unwrap_or_default();
        self.request_slot(&request, &target, None, is_origin_allowed);
    }

    /// Requests a slot for a client, and checks the result. `is_origin_allowed` is that of the page.
    fn request_slot(
        &mut self,
        request: &Request,
        target: &str,
        token: Option<&Issued>,
        is_origin_allowed: bool,
    ) {
        let ip = request.client.ip().to_canonical();
        match self.attempt(request) {
            Ok(grant) => self.on_admitted(grant, ip, target, token),
            Err(Refusal::Forbidden(Forbidden::Banned)) => {
                assert!(clients::is_banned(ip), "{ip} was refused as banned, but is not");
            }
            Err(Refusal::Forbidden(Forbidden::Origin)) => {
                assert!(!is_origin_allowed, "a page with an allowed origin was refused for its origin")
            }
            Err(Refusal::Close(CloseReason::AddressLimit(text))) => {
                let shares = Shares::of(self.clients.iter().map(|client| client.ip));
                self.check_limit(Arrival::of(request), text, ip, shares.are_taken(ip, 1));
            }
            Err(Refusal::Close(reason)) => self.on_closed(&reason, ip, target, token),
        }
    }

    /// Checks a request without taking a slot. The state of the admission must not change.
    fn look(&mut self, request: &Request, token: Option<&Issued>) {
        let before = self.admission.usage();
        let Some(permission) = self.permission(request) else { return };
        if self.admission.candidate(self.now, &permission).is_ok() {
            assert!(
                token.is_some() || !self.rules.needs_token(),
                "a request without a token became a candidate, although tokens are required"
            );
        }
        let after = self.admission.usage();
        assert_eq!(
            (after.slots, after.networks),
            (before.slots, before.networks),
            "a check without admission took a slot"
        );
        // The check may remove expired tokens from the used ones, and must not add any.
        assert!(after.tokens <= before.tokens, "a check without admission used up a token");
    }

    fn permission(&mut self, request: &Request) -> Option<Permission> {
        self.checked(request).ok()
    }

    fn checked(&mut self, request: &Request) -> Result<Permission, Refusal> {
        let checked = self.admission.check(self.now, request);
        // The relay applies the rate limit before it checks the target.
        if let Ok(_) | Err(Refusal::Close(CloseReason::MissingTarget | CloseReason::UnknownTarget { .. })) =
            &checked
        {
            self.count(Arrival::of(request), request.client.ip());
        }
        checked
    }

    fn attempt(&mut self, request: &Request) -> Result<Grant, Refusal> {
        let permission = self.checked(request)?;
        let candidate = self.admission.candidate(self.now, &permission)?;
        candidate.take_slot().map_err(|candidate| candidate.excess().into())
    }

    /// Counts an arrival, and checks that its address does not exceed its rate.
    fn count(&mut self, arrival: Arrival, ip: IpAddr) {
        let ip = ip.to_canonical();
        if clients::is_exempt(ip) {
            return;
        }
        let passed = self.passed.entry((arrival, clients::host(ip))).or_default();
        *passed += 1;
        let seconds = self.now.at.duration_since(self.start).as_secs() + 1;
        let allowed = u64::from(arrival.factor()) * (u64::from(BURST) + seconds);
        assert!(
            u64::from(*passed) <= allowed,
            "{passed} arrivals of {ip} passed the rate limit, which allows {allowed}"
        );
    }

    /// Checks that an address which was refused for a limit has reached this limit.
    fn check_limit(&self, arrival: Arrival, text: &str, ip: IpAddr, are_shares_taken: bool) {
        assert!(!clients::is_exempt(ip), "{ip} is exempt from limits, but was refused for one");
        if text == TOO_FAST {
            let passed = self.passed.get(&(arrival, clients::host(ip))).copied().unwrap_or_default();
            assert!(
                passed >= arrival.factor() * BURST,
                "{ip} was refused for its rate after only {passed} arrivals"
            );
        } else {
            assert!(are_shares_taken, "{ip} was refused below its limit: {text}");
        }
    }

    fn on_admitted(&mut self, grant: Grant, ip: IpAddr, target: &str, token: Option<&Issued>) {
        assert!(!clients::is_banned(ip), "{ip} was admitted, although it is banned");
        assert_eq!(grant.target.name.as_str(), target, "the client was admitted to another target");
        if self.rules.needs_token() {
            let token = token.expect("a client was admitted without a valid token");
            assert_eq!(
                self.refusal(token, target, ip),
                None,
                "an invalid token admitted a client: {:?}",
                token.claims
            );
            assert_eq!(grant.token.as_ref(), Some(&token.claims.jti));
            if self.rules.single_use {
                self.use_up(token);
            }
        } else {
            assert_eq!(grant.token, None);
        }
        self.clients.push(Connected { _grant: grant, ip });
        assert!(
            self.clients.len() <= self.rules.max_clients,
            "more clients were admitted than there are slots"
        );
        Shares::of(self.clients.iter().map(|client| client.ip)).check(ip, 1);
    }

    /// Checks that a token admits only one client within its lifetime, measured by the monotonic clock.
    fn use_up(&mut self, token: &Issued) {
        let until = UNIX_EPOCH + Duration::from_secs(token.claims.exp) + reference::LEEWAY;
        let life = until.duration_since(self.now.wall).unwrap_or_default().min(LIFE_MAX);
        let before = self.lives.insert(token.claims.jti.clone(), self.now.at + life);
        assert!(
            before.is_none_or(|end| end <= self.now.at),
            "the token '{}' admitted twice",
            token.claims.jti
        );
    }

    /// Checks that the reason for a refusal is true.
    fn on_closed(&self, reason: &CloseReason, ip: IpAddr, target: &str, token: Option<&Issued>) {
        match reason {
            CloseReason::TokenRefused(text) => {
                assert!(self.rules.needs_token(), "a token was refused, although no token is required");
                self.check_reason(text, ip, target, token);
            }
            CloseReason::TooManyClients { .. } => {
                assert!(
                    self.clients.len() >= self.rules.max_clients,
                    "a client was refused although a slot is free"
                );
            }
            CloseReason::MissingTarget => {
                assert_eq!(target, "", "a request with a target was refused as if it had none")
            }
            CloseReason::UnknownTarget { .. } => {
                assert!(
                    !["", "game", "other"].contains(&target),
                    "the configured target {target} was refused as unknown"
                );
            }
            CloseReason::AddressLimit(_)
            | CloseReason::Forbidden(_)
            | CloseReason::NoSocket
            | CloseReason::Flow(_)
            | CloseReason::Resumed => {
                panic!("admission must not refuse a request for this reason: {reason:?}")
            }
        }
    }

    fn check_reason(&self, text: &str, ip: IpAddr, target: &str, token: Option<&Issued>) {
        let refusal = token.map(|token| self.refusal(token, target, ip));
        match text {
            "the token has been used" => {
                let token = token.expect("a token that was never issued was refused as used");
                assert!(self.lives.contains_key(&token.claims.jti), "an unused token was refused as used");
            }
            "too many tokens are in use; try again later" => {
                assert!(self.lives.len() >= USED_MAX, "only {} tokens are in use", self.lives.len());
            }
            _ => assert_ne!(refusal, Some(None), "a valid token was refused: {text}"),
        }
    }

    /// Returns the reason why an issued token does not admit a client. Ignores earlier use of the token.
    fn refusal(&self, token: &Issued, target: &str, ip: IpAddr) -> Option<Refused> {
        let is_trusted = self.rules.trusted.get(token.issuer).is_some_and(|trusted| *trusted);
        reference::refusal(&token.claims, is_trusted, target, ip, self.now.unix_seconds())
    }

    /// Opens a connection of a client, either directly or through a proxy that reports the client's address.
    fn connect(&mut self, step: &Step<'_>) {
        let named = ProxyHeader::read(step.bytes).ok().flatten().and_then(|header| header.client);
        let ip = named.map_or_else(|| address(step.flags >> 3), |client| client.ip()).to_canonical();
        match self.admission.admit_connection(self.now, ip) {
            Ok(Some(share)) => {
                assert!(
                    !clients::is_banned(ip) && ip != IpAddr::from(PROXY),
                    "{ip} was admitted as a client, although it is banned or the proxy"
                );
                self.count(Arrival::Connection, ip);
                self.connections.push((share, ip));
                Shares::of(self.connections.iter().map(|(_, ip)| *ip)).check(ip, 4);
            }
            Ok(None) => assert_eq!(ip, IpAddr::from(PROXY), "a client took no slot"),
            Err(Refusal::Forbidden(Forbidden::Banned)) => {
                assert!(clients::is_banned(ip), "{ip} was refused as banned, but is not");
            }
            Err(Refusal::Close(CloseReason::AddressLimit(text))) => {
                assert!(!clients::is_banned(ip), "{ip} is banned, but was refused for a limit");
                let are_taken = Shares::of(self.connections.iter().map(|(_, ip)| *ip)).are_taken(ip, 4);
                if text != TOO_FAST {
                    self.count(Arrival::Connection, ip);
                }
                self.check_limit(Arrival::Connection, text, ip, are_taken);
            }
            Err(refusal) => panic!("admission must not refuse a connection for this reason: {refusal:?}"),
        }
    }

    /// Checks two properties of forwarding headers: the entries before that of the trusted proxy have no effect, and
    /// headers from other addresses are ignored.
    fn forward(&self, step: &Step<'_>) {
        let (evil, honest) = step.bytes.split_at(step.bytes.len() / 2);
        let name = match self.rules.header {
            ForwardedHeader::Forwarded => FORWARDED,
            _ => HeaderName::from_static("x-forwarded-for"),
        };
        let client = |peer: IpAddr, lines: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(&name, HeaderValue::from_bytes(line).ok()?);
            }
            Some(self.admission.client_of(SocketAddr::new(peer, 9), &headers))
        };
        let Some(expected) = client(PROXY.into(), &[honest]) else { return };
        let is_known = !self.admission.is_trusted_proxy(expected.ip());
        let joined = [evil, b",".as_slice(), honest].concat();
        for lines in [vec![evil, honest], vec![joined.as_slice()]] {
            let found = client(PROXY.into(), &lines);
            assert!(
                !is_known || found.is_none_or(|found| found == expected),
                "an entry before that of the proxy changed the client from {expected} to {found:?}"
            );
            let peer = address(step.flags >> 3);
            if !self.admission.is_trusted_proxy(peer) {
                let found = client(peer, &lines);
                assert!(
                    found.is_none_or(|found| found.ip() == peer.to_canonical()),
                    "the header of {peer}, which is no proxy, changed the client to {found:?}"
                );
            }
        }
    }

    /// Disconnects a client or closes a connection, which frees its slot.
    fn leave(&mut self, step: &Step<'_>) {
        let Some(&which) = step.bytes.first() else { return };
        if step.flags & 8 == 0 && !self.clients.is_empty() {
            drop(self.clients.swap_remove(usize::from(which) % self.clients.len()));
        } else if !self.connections.is_empty() {
            drop(self.connections.swap_remove(usize::from(which) % self.connections.len()));
        }
    }

    /// Checks that the usage which the admission reports matches the connected clients.
    fn check(&self) {
        let usage = self.admission.usage();
        assert_eq!(usage.slots, [self.clients.len(), self.connections.len()]);
        let clients = Shares::of(self.clients.iter().map(|client| client.ip));
        let connections = Shares::of(self.connections.iter().map(|(_, ip)| *ip));
        assert_eq!(usage.networks, [clients.len(), connections.len()]);
        assert!(usage.tokens <= USED_MAX.min(self.lives.len()), "{usage:?}");
    }
}

/// Checks the guarantees of admission.
///
/// - No client is admitted without permission.
/// - No single-use token admits two clients.
/// - Every refusal has a true reason.
/// - Disconnected clients leave no state.
pub fn requests(input: &[u8]) {
    let Some((&options, rest)) = input.split_first() else { return };
    let mut world = World::new(options);
    for step in steps(rest) {
        match step.flags & 7 {
            0 => world.issue(&step),
            1 | 2 => world.request(&step),
            3 => world.nonsense(&step),
            4 => world.connect(&step),
            5 => world.forward(&step),
            6 => world.leave(&step),
            _ if step.flags & 128 == 0 => world.wait(&step),
            _ => world.reload(&step),
        }
        world.check();
    }
    world.clients.clear();
    world.connections.clear();
    world.check();
}
