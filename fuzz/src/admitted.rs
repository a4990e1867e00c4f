//! Fuzzes admission: arbitrary requests at arbitrary times, with valid, foreign and modified tokens, from
//! addresses that are banned, share a network, or come from a proxy.

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

/// The maximum number of used tokens that are remembered.
const USED_MAX: usize = 3;
/// The wall-clock time at the start, in seconds since the Unix epoch.
const START: u64 = 1_700_000_000;
/// The burst of new clients per address. One more per second is allowed.
const BURST: u32 = 8;
/// The message to an address that exceeds its rate.
const TOO_FAST: &str = "too many new clients from your address or network";
/// The maximum time for which a used token is remembered, if the clocks are not changed.
const LIFE_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("admission").join(file)
}

/// The configuration, chosen by the input.
#[derive(Clone, Copy)]
struct Rules {
    single_use: bool,
    header: ForwardedHeader,
    max_clients: usize,
    /// True if each issuer is trusted. If none is, clients need no token.
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
            config = config.with_target(target.parse().expect("a target"));
        }
        config.admission.bans = Some(here("bans"));
        config.admission.forwarded_header = self.header;
        config.admission.trusted_proxies = vec![IpAddr::from(PROXY).into()];
        config.admission.allow_origins = vec!["https://game.example".parse().expect("an origin")];
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

/// Returns the targets of a configuration, without DNS.
fn targets(config: &Config) -> Targets {
    let mut targets = Targets::default();
    for (number, (name, settings)) in (1..).zip(&config.targets) {
        let (name, settings, address) = (name.clone(), settings.clone(), ([127, 0, 0, 1], number).into());
        targets.insert(ResolvedTarget::new(name, settings, address));
    }
    targets
}

/// Returns the issuers, which all inputs share because reading their keys is slow.
fn issuers() -> &'static Issuers {
    static ISSUERS: OnceLock<Issuers> = OnceLock::new();
    ISSUERS.get_or_init(Issuers::new)
}

/// The kinds of arrivals, each with its own rate per address.
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

    /// Returns the factor by which its client limits are multiplied.
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
    /// The time until which a used token id must not admit again.
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
        let admission = Admission::new(&config, targets(&config)).expect("a configuration");
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

    /// Changes the configuration. Connected clients stay.
    fn reload(&mut self, step: &Step<'_>) {
        self.rules = Rules::new(step.bytes.first().copied().unwrap_or_default());
        let config = self.rules.config();
        self.admission.reload(&config, targets(&config)).expect("a configuration");
    }

    fn issue(&mut self, step: &Step<'_>) {
        self.issued.push(issuers().issue(self.now.unix_seconds(), step.bytes));
    }

    /// Sends a client's request with its token, unchanged or modified.
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
        assert!(text.is_empty() || !format!("{request:?}").contains(&text), "a token is shown");
        let token = issued.filter(|_| !is_changed);
        if step.flags & 64 != 0 {
            self.look(&request, token.as_ref());
        } else {
            self.come(&request, target, token.as_ref(), true);
        }
    }

    /// Sends a request of arbitrary bytes.
    fn nonsense(&mut self, step: &Step<'_>) {
        let (query, protocols) = step.bytes.split_at(step.bytes.len() / 2);
        let mut headers = HeaderMap::new();
        for (name, value) in [(SEC_WEBSOCKET_PROTOCOL, protocols), (ORIGIN, query)] {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(name, value);
            }
        }
        let is_page = step.flags & 8 != 0;
        if is_page {
            headers.insert(ORIGIN, HeaderValue::from_static("https://game.example"));
        }
        let client = SocketAddr::new(address(step.flags >> 4), 5);
        let request = Request::from_http(client, &headers, &String::from_utf8_lossy(query));
        let target = request.target.clone().unwrap_or_default();
        self.come(&request, &target, None, is_page);
    }

    /// Requests a slot for a client, possibly from an allowed page.
    fn come(&mut self, request: &Request, target: &str, token: Option<&Issued>, is_page: bool) {
        let ip = request.client.ip().to_canonical();
        match self.attempt(request) {
            Ok(grant) => self.on_admitted(grant, ip, target, token),
            Err(Refusal::Forbidden(Forbidden::Banned)) => {
                assert!(clients::is_banned(ip), "{ip} is not banned");
            }
            Err(Refusal::Forbidden(Forbidden::Origin)) => assert!(!is_page, "the page may connect"),
            Err(Refusal::Close(CloseReason::AddressLimit(text))) => {
                let shares = Shares::of(self.clients.iter().map(|client| client.ip));
                self.check_limit(Arrival::of(request), text, ip, shares.are_taken(ip, 1));
            }
            Err(Refusal::Close(reason)) => self.on_closed(&reason, ip, target, token),
        }
    }

    /// Checks the admission of a client that does not take its slot. The state must not change.
    fn look(&mut self, request: &Request, token: Option<&Issued>) {
        let before = self.admission.usage();
        let Some(permission) = self.permission(request) else { return };
        if self.admission.candidate(self.now, &permission).is_ok() {
            assert!(token.is_some() || !self.rules.needs_token(), "a candidate without a token");
        }
        let after = self.admission.usage();
        assert_eq!((after.slots, after.networks), (before.slots, before.networks));
        // Only expired tokens may be forgotten.
        assert!(after.tokens <= before.tokens, "a token is used up");
    }

    fn permission(&mut self, request: &Request) -> Option<Permission> {
        self.checked(request).ok()
    }

    fn checked(&mut self, request: &Request) -> Result<Permission, Refusal> {
        let checked = self.admission.check(self.now, request);
        // A request that is refused because of its target has passed the rate limit.
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

    /// Checks that no address exceeds its rate.
    fn count(&mut self, arrival: Arrival, ip: IpAddr) {
        let ip = ip.to_canonical();
        if clients::is_exempt(ip) {
            return;
        }
        let passed = self.passed.entry((arrival, clients::host(ip))).or_default();
        *passed += 1;
        let seconds = self.now.at.duration_since(self.start).as_secs() + 1;
        let allowed = u64::from(arrival.factor()) * (u64::from(BURST) + seconds);
        assert!(u64::from(*passed) <= allowed, "{passed} arrivals of {ip} have passed in place of {allowed}");
    }

    /// Checks that a refused address has actually reached its limit.
    fn check_limit(&self, arrival: Arrival, text: &str, ip: IpAddr, are_shares_taken: bool) {
        assert!(!clients::is_exempt(ip), "{ip} has no limits");
        if text == TOO_FAST {
            let passed = self.passed.get(&(arrival, clients::host(ip))).copied().unwrap_or_default();
            assert!(passed >= arrival.factor() * BURST, "{ip} is refused behind {passed} others");
        } else {
            assert!(are_shares_taken, "{ip} has less than its share: {text}");
        }
    }

    fn on_admitted(&mut self, grant: Grant, ip: IpAddr, target: &str, token: Option<&Issued>) {
        assert!(!clients::is_banned(ip), "{ip} is banned");
        assert_eq!(grant.target.name.as_str(), target);
        if self.rules.needs_token() {
            let token = token.expect("a client without a valid token is admitted");
            assert_eq!(self.refusal(token, target, ip), None, "{:?}", token.claims);
            assert_eq!(grant.token.as_ref(), Some(&token.claims.jti));
            if self.rules.single_use {
                self.use_up(token);
            }
        } else {
            assert_eq!(grant.token, None);
        }
        self.clients.push(Connected { _grant: grant, ip });
        assert!(self.clients.len() <= self.rules.max_clients, "more clients than slots");
        Shares::of(self.clients.iter().map(|client| client.ip)).check(ip, 1);
    }

    /// Checks that a token is used only once in its lifetime by the monotonic clock.
    fn use_up(&mut self, token: &Issued) {
        let until = UNIX_EPOCH + Duration::from_secs(token.claims.exp) + reference::LEEWAY;
        let life = until.duration_since(self.now.wall).unwrap_or_default().min(LIFE_MAX);
        let before = self.lives.insert(token.claims.jti.clone(), self.now.at + life);
        assert!(before.is_none_or(|end| end <= self.now.at), "'{}' is used twice", token.claims.jti);
    }

    /// Checks that the reason sent to a page is justified.
    fn on_closed(&self, reason: &CloseReason, ip: IpAddr, target: &str, token: Option<&Issued>) {
        match reason {
            CloseReason::TokenRefused(text) => {
                assert!(self.rules.needs_token(), "no token is needed");
                self.check_reason(text, ip, target, token);
            }
            CloseReason::TooManyClients { .. } => {
                assert!(self.clients.len() >= self.rules.max_clients, "there is a slot");
            }
            CloseReason::MissingTarget => assert_eq!(target, "", "there is a target"),
            CloseReason::UnknownTarget { .. } => {
                assert!(!["", "game", "other"].contains(&target), "{target} is a target");
            }
            CloseReason::AddressLimit(_)
            | CloseReason::Forbidden(_)
            | CloseReason::NoSocket
            | CloseReason::Flow(_)
            | CloseReason::Resumed => panic!("no reason of an admission: {reason:?}"),
        }
    }

    fn check_reason(&self, text: &str, ip: IpAddr, target: &str, token: Option<&Issued>) {
        let refusal = token.map(|token| self.refusal(token, target, ip));
        match text {
            "the token has been used" => {
                let token = token.expect("a token that was never issued counts as used");
                assert!(self.lives.contains_key(&token.claims.jti), "it has not been used");
            }
            "too many tokens are in use; try again later" => {
                assert!(self.lives.len() >= USED_MAX, "there are {} tokens", self.lives.len());
            }
            _ => assert_ne!(refusal, Some(None), "a good token is refused: {text}"),
        }
    }

    /// Returns the reason why an issued token does not admit, except earlier use.
    fn refusal(&self, token: &Issued, target: &str, ip: IpAddr) -> Option<Refused> {
        let is_trusted = self.rules.trusted.get(token.issuer).is_some_and(|trusted| *trusted);
        reference::refusal(&token.claims, is_trusted, target, ip, self.now.unix_seconds())
    }

    /// Opens a connection from a proxy that reports its client, or from the client itself.
    fn connect(&mut self, step: &Step<'_>) {
        let named = ProxyHeader::read(step.bytes).ok().flatten().and_then(|header| header.client);
        let ip = named.map_or_else(|| address(step.flags >> 3), |client| client.ip()).to_canonical();
        match self.admission.admit_connection(self.now, ip) {
            Ok(Some(share)) => {
                assert!(!clients::is_banned(ip) && ip != IpAddr::from(PROXY), "{ip}");
                self.count(Arrival::Connection, ip);
                self.connections.push((share, ip));
                Shares::of(self.connections.iter().map(|(_, ip)| *ip)).check(ip, 4);
            }
            Ok(None) => assert_eq!(ip, IpAddr::from(PROXY)),
            Err(Refusal::Forbidden(Forbidden::Banned)) => {
                assert!(clients::is_banned(ip), "{ip} is not banned");
            }
            Err(Refusal::Close(CloseReason::AddressLimit(text))) => {
                assert!(!clients::is_banned(ip), "{ip} is banned");
                let are_taken = Shares::of(self.connections.iter().map(|(_, ip)| *ip)).are_taken(ip, 4);
                if text != TOO_FAST {
                    self.count(Arrival::Connection, ip);
                }
                self.check_limit(Arrival::Connection, text, ip, are_taken);
            }
            Err(refusal) => panic!("no reason of a connection: {refusal:?}"),
        }
    }

    /// Checks that headers before the proxy's own line have no effect, and that lines from other addresses
    /// are ignored.
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
                "{found:?} in place of {expected}"
            );
            let peer = address(step.flags >> 3);
            if !self.admission.is_trusted_proxy(peer) {
                let found = client(peer, &lines);
                assert!(found.is_none_or(|found| found.ip() == peer.to_canonical()), "{found:?} of {peer}");
            }
        }
    }

    /// Disconnects a client, or closes a connection.
    fn leave(&mut self, step: &Step<'_>) {
        let Some(&which) = step.bytes.first() else { return };
        if step.flags & 8 == 0 && !self.clients.is_empty() {
            drop(self.clients.swap_remove(usize::from(which) % self.clients.len()));
        } else if !self.connections.is_empty() {
            drop(self.connections.swap_remove(usize::from(which) % self.connections.len()));
        }
    }

    /// Checks that the counters match the connected clients.
    fn check(&self) {
        let usage = self.admission.usage();
        assert_eq!(usage.slots, [self.clients.len(), self.connections.len()]);
        let clients = Shares::of(self.clients.iter().map(|client| client.ip));
        let connections = Shares::of(self.connections.iter().map(|(_, ip)| *ip));
        assert_eq!(usage.networks, [clients.len(), connections.len()]);
        assert!(usage.tokens <= USED_MAX.min(self.lives.len()), "{usage:?}");
    }
}

/// Checks that no client is admitted without permission, no token admits twice, every refusal is justified,
/// and disconnected clients leave no state.
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
