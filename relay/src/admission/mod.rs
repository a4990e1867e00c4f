//! Admission: decides which clients may connect, and to which target.
//!
//! The decision is made once per client, before its flow is created, with the current configuration, ban lists and
//! resolved names. Clients of the front have neither a page origin nor a token.

mod discovered;
mod limiter;
mod lists;
mod request;
mod targets;
mod tokens;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::HeaderMap;
use ipnet::IpNet;
use tokio::sync::watch;
use tracing::info;

pub(crate) use discovered::DiscoveredNames;
pub(crate) use limiter::Share;
use limiter::{AddressLimiter, Excess, Exempt};
use lists::OperatorBans;
pub use lists::{AllowedOrigin, Origin, OriginSyntaxError};
pub(crate) use lists::{Bans, OriginPolicy, PageOrigin, TooManyBans, canonical as canonical_network};
pub(crate) use request::{Forbidden, Refusal, Request, parameter};
use request::{Token, TrustedProxies};
pub(crate) use targets::{ResolvedTarget, Targets};
use tokens::{TokenClaim, TokenRates, Unusable, UsedTokens};

use crate::addresses::TargetName;
use crate::close::CloseReason;
use crate::config::{Config, ConfigError, Limits, TokensConfig};
use crate::flow::{Rate, SharedRate, TotalRate};
use crate::time::Now;
use crate::token::{Claims, VerifyingKey};

/// A client's permission, before it has a slot.
#[derive(Debug)]
pub(crate) struct Permission {
    policy: Arc<Policy>,
    target: Arc<ResolvedTarget>,
    client: SocketAddr,
    origin: PageOrigin,
    /// The token, which is verified only for a new flow: resuming a flow requires no token.
    token: Option<Token>,
}

impl Permission {
    /// Returns the name of the target.
    pub(crate) fn target_name(&self) -> &TargetName {
        &self.target.name
    }
}

/// A client that meets all requirements except a slot. Until dropped, it holds its share of the limits of its address,
/// prefix and token.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    permission: &'a Permission,
    share: Share,
    /// The claims of the client's token, if tokens are required.
    claims: Option<Box<Claims>>,
    /// Prevents other clients from using a single-use token.
    claim: Option<TokenClaim<'a>>,
}

impl Candidate<'_> {
    /// Takes a slot for a flow. Returns the candidate unchanged if no slot is free.
    pub(crate) fn take_slot(mut self) -> Result<Grant, Self> {
        let Permission { policy, target, client, .. } = self.permission;
        if !policy.clients.take_slot(&mut self.share) {
            return Err(self);
        }
        if let Some(claim) = self.claim {
            claim.keep();
        }
        let token = self.claims.map(|claims| claims.jti);
        let (target, limits) = (Arc::clone(target), policy.limits);
        Ok(Grant { target, client: *client, limits, token, _share: self.share })
    }

    /// Claims the slot of a flow that is about to end.
    pub(crate) fn claim_slot(&mut self) {
        self.permission.policy.clients.claim_slot(&mut self.share);
    }

    /// Returns the close reason for the case that no slot becomes free.
    pub(crate) fn excess(&self) -> CloseReason {
        self.permission.policy.excess(Excess::Total)
    }
}

/// The resources of an admitted client.
#[derive(Debug)]
pub(crate) struct Grant {
    /// The target, with the address that the flow keeps until it ends.
    pub(crate) target: Arc<ResolvedTarget>,
    /// The address of the client.
    pub(crate) client: SocketAddr,
    /// The limits for this client.
    pub(crate) limits: Limits,
    /// The id of the client's token, if one was required.
    pub(crate) token: Option<String>,
    /// The slot of the client, released on drop.
    _share: Share,
}

/// Decides on clients by the current policy.
#[derive(Debug)]
pub(crate) struct Admission {
    policy: watch::Sender<Arc<Policy>>,
    used: UsedTokens,
    rates: TokenRates,
    operator_bans: OperatorBans,
    /// The rate limit for all clients together. A reload also changes it for connected clients.
    total: TotalRate,
}

impl Admission {
    /// Creates the admission, and reads the files that the configuration names.
    pub(crate) fn new(config: &Config, targets: Targets) -> Result<Self, ConfigError> {
        let policy = Policy::new(config, targets)?;
        let total = TotalRate::default();
        total.set(config.limits.total_bytes_per_second);
        Ok(Self {
            policy: watch::Sender::new(Arc::new(policy)),
            used: UsedTokens::default(),
            rates: TokenRates::default(),
            operator_bans: OperatorBans::default(),
            total,
        })
    }

    /// Applies a new configuration. Connected clients stay connected and keep counting.
    pub(crate) fn reload(&self, config: &Config, targets: Targets) -> Result<(), ConfigError> {
        let policy = self.policy().successor(config, targets)?;
        self.policy.send_replace(Arc::new(policy));
        self.total.set(config.limits.total_bytes_per_second);
        Ok(())
    }

    /// Resolves the names of targets again.
    pub(crate) async fn resolve_again(&self) {
        let looked_up = self.targets().look_up_again().await;
        // The targets may have changed during the lookup.
        for [old, new] in self.replace_targets(|targets| targets.updated(&looked_up)) {
            info!(target_name = %new.name, old = %old.address, new = %new.address, "the name of a target has a new address: new clients use it");
        }
    }

    /// Switches targets from a current address that is down to an address that is up. Returns the switched targets,
    /// before and after.
    pub(crate) fn fail_over(
        &self,
        is_up: impl Fn(&TargetName, SocketAddr) -> bool,
    ) -> Vec<[Arc<ResolvedTarget>; 2]> {
        self.replace_targets(|targets| targets.failed_over(is_up))
    }

    /// Replaces the current targets. Returns those with a changed address for new clients, before and after.
    fn replace_targets(&self, change: impl FnOnce(&Targets) -> Targets) -> Vec<[Arc<ResolvedTarget>; 2]> {
        let mut moved = Vec::new();
        self.policy.send_if_modified(|policy| {
            let targets = change(&policy.targets);
            let is_replaced = targets != policy.targets;
            if is_replaced {
                let both = policy.targets.iter().cloned().zip(targets.iter().cloned());
                moved = both.filter(|(old, new)| old.address != new.address).map(<[_; 2]>::from).collect();
                *policy = Arc::new(policy.with_targets(targets));
            }
            is_replaced
        });
        moved
    }

    /// Returns the interval at which the names of targets are resolved.
    pub(crate) fn resolve_interval(&self) -> Duration {
        self.policy().resolve_interval
    }

    /// Returns the limits for the next client.
    pub(crate) fn limits(&self) -> Limits {
        self.policy().limits
    }

    /// Returns the current configured targets.
    pub(crate) fn targets(&self) -> Targets {
        self.policy().targets.clone()
    }

    /// Returns the configured and the discovered targets.
    pub(crate) fn offered(&self) -> Targets {
        self.policy().offered()
    }

    /// Replaces the discovered targets.
    pub(crate) fn set_discovered(&self, targets: Targets) {
        if self.policy().discovered != targets {
            self.policy.send_modify(|policy| *policy = Arc::new(policy.with_discovered(targets)));
        }
    }

    /// Returns the rate limit of all clients together.
    pub(crate) const fn total(&self) -> &TotalRate {
        &self.total
    }

    /// Returns true if an address is banned by the file or the operator.
    pub(crate) fn is_banned(&self, now: Instant, client: IpAddr) -> bool {
        let ip = client.to_canonical();
        self.policy().bans.contains(ip) || self.operator_bans.contains(now, ip)
    }

    /// Bans a network for `duration`, or until the relay stops.
    pub(crate) fn ban(
        &self,
        now: Instant,
        network: IpNet,
        duration: Option<Duration>,
    ) -> Result<(), TooManyBans> {
        let until = duration.and_then(|duration| now.checked_add(duration));
        self.operator_bans.add(now, network, until)
    }

    /// Lifts a ban of the operator; returns false if there is none for this network.
    pub(crate) fn unban(&self, now: Instant, network: IpNet) -> bool {
        self.operator_bans.remove(now, network)
    }

    /// Returns the bans of the operator with their remaining times.
    pub(crate) fn operator_bans(&self, now: Instant) -> Vec<(IpNet, Option<Duration>)> {
        self.operator_bans.list(now)
    }

    /// Returns true if the page of a request may connect.
    pub(crate) fn admits_origin(&self, headers: &HeaderMap) -> bool {
        self.policy().origins.admits(&PageOrigin::of(headers))
    }

    /// Returns true if a client of unknown origin may connect. It may have to present a token as well.
    pub(crate) fn admits_unknown_origins(&self) -> bool {
        self.policy().admits_origin(&PageOrigin::Unknown)
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.borrow())
    }

    /// Returns true if `peer` is a trusted proxy: its connections may begin with a PROXY protocol header, and its
    /// forwarding headers are trusted.
    pub(crate) fn is_trusted_proxy(&self, peer: IpAddr) -> bool {
        self.policy().proxies.contains(peer)
    }

    /// Admits a TCP connection of a client. Trusted proxies themselves are not limited; with the PROXY protocol, the
    /// limits apply to the client that the header names.
    pub(crate) fn admit_connection(&self, now: Now, client: IpAddr) -> Result<Option<Share>, Refusal> {
        let policy = self.policy();
        if policy.proxies.contains(client) {
            return Ok(None);
        }
        if self.is_banned(now.at, client) {
            return Err(Refusal::Forbidden(Forbidden::Banned));
        }
        let limiter = &policy.connections;
        let share = limiter.check_rate(now.at, client).and_then(|()| limiter.take(client));
        share.map(Some).map_err(|excess| policy.excess(excess).into())
    }

    /// Admits an HTTP request that opens no flow, such as a request for a file.
    pub(crate) fn admit_request(&self, now: Now, client: IpAddr, is_file: bool) -> Result<(), Refusal> {
        let policy = self.policy();
        if self.is_banned(now.at, client) {
            return Err(Refusal::Forbidden(Forbidden::Banned));
        }
        let limiter = if is_file { &policy.files } else { &policy.requests };
        limiter.check_rate(now.at, client).map_err(|excess| policy.excess(excess).into())
    }

    /// Returns the client of a request on a connection of `peer`. With a PROXY protocol header from a trusted proxy,
    /// `peer` is the client named there.
    pub(crate) fn client_of(&self, peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
        self.policy().proxies.client(peer, headers)
    }

    /// Checks the request of a client.
    pub(crate) fn check(&self, now: Now, request: &Request) -> Result<Permission, Refusal> {
        let policy = self.policy();
        let ip = request.client.ip().to_canonical();
        if self.is_banned(now.at, ip) {
            return Err(Refusal::Forbidden(Forbidden::Banned));
        }
        if !policy.admits_origin(&request.origin) {
            return Err(Refusal::Forbidden(Forbidden::Origin));
        }
        // The limits are checked before `candidate`, because verifying a signature takes much longer. `check_new`
        // counts a client that opens several connections when one of them opens a flow, and a returning client whose
        // flow has ended.
        if !request.is_returning {
            let limiter = if request.is_deferred { &policy.deferred } else { &policy.clients };
            limiter.check_rate(now.at, ip).map_err(|excess| policy.excess(excess))?;
        }
        let target = policy.target(request.target.as_deref())?;
        let Request { client, origin, token, .. } = request.clone();
        Ok(Permission { target, client, origin, token, policy })
    }

    /// Checks whether a client that [`check`](Self::check) has not counted may have a new flow, and counts it as a new
    /// client.
    pub(crate) fn check_new(&self, now: Now, client: IpAddr) -> Result<(), CloseReason> {
        let policy = self.policy();
        policy.clients.check_rate(now.at, client).map_err(|excess| policy.excess(excess))
    }

    /// Checks all requirements of a client except the slot. A client that resumes its flow needs no such check.
    pub(crate) fn candidate<'a>(
        &'a self,
        now: Now,
        permission: &'a Permission,
    ) -> Result<Candidate<'a>, CloseReason> {
        let Permission { policy, target, client, origin, token } = permission;
        let claims = policy.claims(token.as_ref(), *client, origin, &target.name, now.wall)?;
        let share = policy.clients.take_share(client.ip()).map_err(|excess| policy.excess(excess))?;
        // The token is claimed last, so that a client refused for another reason does not use it up.
        let used_up = claims.as_ref().filter(|_| policy.tokens.single_use);
        let claim = used_up.map(|claims| self.claim(now, claims, policy.tokens.leeway)).transpose()?;
        Ok(Candidate { permission, share, claims: claims.map(Box::new), claim })
    }

    fn claim(&self, now: Now, claims: &Claims, leeway: Duration) -> Result<TokenClaim<'_>, CloseReason> {
        let until = claims.expires().unwrap_or(now.wall) + leeway;
        self.used.claim(&claims.jti, until, now).map_err(|unusable| {
            CloseReason::TokenRefused(match unusable {
                Unusable::Used => "the token has been used",
                Unusable::Full => "too many tokens are in use; try again later",
            })
        })
    }

    /// Returns the rate that all flows with the client's token share, if a token and a limit are set.
    pub(crate) fn shared_rate(&self, grant: &Grant, rate: Option<Rate>, now: Instant) -> Option<SharedRate> {
        Some(self.rates.of(grant.token.as_deref()?, rate?, now))
    }

    /// Completes when a slot becomes free.
    pub(crate) async fn freed(&self) {
        self.policy().clients.freed().await;
    }
}

/// A front client that meets all requirements except a slot. Until dropped, it holds its share of the limits of its
/// address and prefix.
#[derive(Debug)]
pub(crate) struct UdpCandidate {
    policy: Arc<Policy>,
    target: Arc<ResolvedTarget>,
    client: SocketAddr,
    share: Share,
}

impl UdpCandidate {
    pub(crate) const fn client(&self) -> SocketAddr {
        self.client
    }

    /// Takes a slot for a flow. Returns the candidate unchanged if no slot is free.
    pub(crate) fn take_slot(mut self) -> Result<Grant, Self> {
        if !self.policy.clients.take_slot(&mut self.share) {
            return Err(self);
        }
        let Self { policy, target, client, share } = self;
        Ok(Grant { target, client, limits: policy.limits, token: None, _share: share })
    }

    /// Claims the slot of a flow that is about to end.
    pub(crate) fn claim_slot(&mut self) {
        self.policy.clients.claim_slot(&mut self.share);
    }
}

impl Admission {
    /// Checks all requirements of a front client with a validated address except the slot.
    pub(crate) fn udp_candidate(
        &self,
        now: Now,
        client: SocketAddr,
        target: &TargetName,
    ) -> Result<UdpCandidate, Refusal> {
        let policy = self.policy();
        let ip = client.ip().to_canonical();
        if self.is_banned(now.at, ip) {
            return Err(Refusal::Forbidden(Forbidden::Banned));
        }
        // A reload may add the first token key while the front runs.
        if policy.needs_token() && !policy.udp_allow_without_token {
            return Err(CloseReason::TokenRefused("a token is needed").into());
        }
        policy.clients.check_rate(now.at, ip).map_err(|excess| policy.excess(excess))?;
        let target = policy.target(Some(target.as_str()))?;
        let share = policy.clients.take_share(ip).map_err(|excess| policy.excess(excess))?;
        Ok(UdpCandidate { policy, target, client, share })
    }

    /// Returns the target of the front and the limits for its next client, if the target exists.
    pub(crate) fn udp_target(&self, target: &TargetName) -> Option<(Arc<ResolvedTarget>, Limits)> {
        let policy = self.policy();
        policy.target(Some(target.as_str())).ok().map(|target| (target, policy.limits))
    }
}

/// The amount of state that an admission holds.
#[allow(dead_code, reason = "the relay itself does not ask")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Slots in use: of clients, and of connections.
    pub(crate) slots: [usize; 2],
    /// Networks with a share: of clients, and of connections.
    pub(crate) networks: [usize; 2],
    /// Used single-use tokens.
    pub(crate) tokens: usize,
    /// Tokens with a rate.
    pub(crate) rates: usize,
}

#[allow(dead_code, reason = "the relay itself does not ask")]
impl Admission {
    /// Limits the number of stored used tokens.
    pub(crate) fn with_used_tokens_max(self, max: usize) -> Self {
        Self { used: UsedTokens::new(max), ..self }
    }

    pub(crate) fn usage(&self) -> Usage {
        let policy = self.policy();
        let (clients, connections) = (policy.clients.len(), policy.connections.len());
        Usage {
            slots: [clients.0, connections.0],
            networks: [clients.1, connections.1],
            tokens: self.used.len(),
            rates: self.rates.len().0,
        }
    }
}

/// The rules of admission: the configuration, the contents of its files, and resolved names.
#[derive(Debug, Clone)]
struct Policy {
    targets: Targets,
    /// Discovered targets. A configured target takes precedence over one with the same name.
    discovered: Targets,
    resolve_interval: Duration,
    origins: OriginPolicy,
    proxies: TrustedProxies,
    bans: Arc<Bans>,
    tokens: TokensConfig,
    keys: Vec<VerifyingKey>,
    udp_allow_without_token: bool,
    webrtc_allow_without_origin: bool,
    limits: Limits,
    clients: Arc<AddressLimiter>,
    connections: Arc<AddressLimiter>,
    /// Limits for requests that open no flow; a connection can carry many.
    requests: Arc<AddressLimiter>,
    /// Limits for requests for files.
    files: Arc<AddressLimiter>,
    /// Limits for the requests of clients that open several connections and continue with one of them.
    deferred: Arc<AddressLimiter>,
}

impl Policy {
    fn new(config: &Config, targets: Targets) -> Result<Self, ConfigError> {
        let limiter = |limits, max| Arc::new(AddressLimiter::new(limits, max, exempt(config)));
        let clients = limiter(config.clients, config.limits.max_clients);
        let connections = limiter(config.clients.for_connections(), usize::MAX);
        let requests = limiter(config.clients.for_connections(), usize::MAX);
        let files = limiter(config.clients.for_files(), usize::MAX);
        let deferred = limiter(config.clients.for_connections(), usize::MAX);
        Self::with(config, targets, [clients, connections, requests, files, deferred])
    }

    /// Creates the policy for another configuration that keeps counting the same clients.
    fn successor(&self, config: &Config, targets: Targets) -> Result<Self, ConfigError> {
        let successor = |old: &Arc<AddressLimiter>, limits, max| {
            let next = old.successor(limits, max, exempt(config));
            next.map_or_else(|| Arc::clone(old), Arc::new)
        };
        let clients = successor(&self.clients, config.clients, config.limits.max_clients);
        let connections = successor(&self.connections, config.clients.for_connections(), usize::MAX);
        let requests = successor(&self.requests, config.clients.for_connections(), usize::MAX);
        let files = successor(&self.files, config.clients.for_files(), usize::MAX);
        let deferred = successor(&self.deferred, config.clients.for_connections(), usize::MAX);
        let limiters = [clients, connections, requests, files, deferred];
        Ok(Self { discovered: self.discovered.clone(), ..Self::with(config, targets, limiters)? })
    }

    fn with(
        config: &Config,
        targets: Targets,
        [clients, connections, requests, files, deferred]: [Arc<AddressLimiter>; 5],
    ) -> Result<Self, ConfigError> {
        let admission = &config.admission;
        Ok(Self {
            targets,
            discovered: Targets::default(),
            resolve_interval: config.resolve_interval,
            origins: config.origins()?,
            proxies: TrustedProxies::new(admission.trusted_proxies.clone(), admission.forwarded_header),
            bans: Arc::new(config.bans()?),
            tokens: config.tokens.clone(),
            keys: config.token_keys()?,
            udp_allow_without_token: config.udp.allow_without_token,
            webrtc_allow_without_origin: config.webrtc.allow_without_origin,
            limits: config.limits,
            clients,
            connections,
            requests,
            files,
            deferred,
        })
    }

    fn with_targets(&self, targets: Targets) -> Self {
        Self { targets, ..self.clone() }
    }

    fn with_discovered(&self, discovered: Targets) -> Self {
        Self { discovered, ..self.clone() }
    }

    /// Returns the configured and the discovered targets.
    fn offered(&self) -> Targets {
        self.discovered.overridden_by(&self.targets)
    }

    fn excess(&self, excess: Excess) -> CloseReason {
        match excess {
            Excess::Total => CloseReason::TooManyClients { max: self.limits.max_clients },
            Excess::Address => CloseReason::AddressLimit("too many clients from your address"),
            Excess::Prefix => CloseReason::AddressLimit("too many clients from your network"),
            Excess::Rate => CloseReason::AddressLimit("too many new clients from your address or network"),
        }
    }

    fn target(&self, requested: Option<&str>) -> Result<Arc<ResolvedTarget>, CloseReason> {
        let requested = requested.ok_or(CloseReason::MissingTarget)?;
        let found = self.targets.find(requested).or_else(|| self.discovered.find(requested));
        found.map(Arc::clone).ok_or_else(|| CloseReason::UnknownTarget {
            requested: requested.to_owned(),
            offered: self.offered().names().cloned().collect(),
        })
    }

    /// Returns true if a page may connect. If the transport does not reveal the page, a token is sufficient, because
    /// the issuer of the token has admitted the client.
    fn admits_origin(&self, origin: &PageOrigin) -> bool {
        let is_vouched_for = self.webrtc_allow_without_origin || self.needs_token();
        self.origins.admits(origin) || (*origin == PageOrigin::Unknown && is_vouched_for)
    }

    /// Returns true if clients need a token.
    fn needs_token(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Compares the origin claim of a token with the page. The claim is required if the transport does not reveal the
    /// page and not every page may connect.
    fn admits_claimed(&self, claimed: Option<&Origin>, page: &PageOrigin) -> bool {
        match (claimed, page) {
            (Some(claimed), PageOrigin::Page(page)) => claimed == page,
            (Some(_), PageOrigin::None | PageOrigin::Invalid) => false,
            (Some(claimed), PageOrigin::Unknown) => {
                let is_free = self.webrtc_allow_without_origin;
                is_free || self.origins.admits(&PageOrigin::Page(claimed.clone()))
            }
            (None, PageOrigin::Unknown) => self.webrtc_allow_without_origin || !self.origins.is_list(),
            (None, _) => true,
        }
    }

    /// Verifies the token and returns its claims, if tokens are required. The text of a refusal reveals nothing to a
    /// forger.
    fn claims(
        &self,
        token: Option<&Token>,
        client: SocketAddr,
        page: &PageOrigin,
        target: &TargetName,
        now: SystemTime,
    ) -> Result<Option<Claims>, CloseReason> {
        if !self.needs_token() {
            return Ok(None);
        }
        let refused = |text| Err(CloseReason::TokenRefused(text));
        let Some(token) = token else { return refused("a token is needed") };
        let claims = self.keys.iter().find_map(|key| key.verify(token.as_str()));
        let Some(claims) = claims else { return refused("the token is not valid") };
        let TokensConfig { max_lifetime, leeway, .. } = self.tokens;
        let (Some(expires), Some(begins)) = (claims.expires(), claims.begins()) else {
            return refused("the token is not valid");
        };
        let client = client.ip().to_canonical();
        match () {
            // This check is the first, so that the sums of the later ones cannot overflow.
            () if expires > now + max_lifetime + leeway => refused("the token is valid for too long"),
            () if now > expires + leeway => refused("the token has expired"),
            () if begins > now + leeway => refused("the token is not valid yet"),
            () if claims.target != target.as_str() => refused("the token is for another target"),
            () if claims.addr.is_some_and(|network| !network.contains(&client)) => {
                refused("the token is for another address")
            }
            () if !self.admits_claimed(claims.origin.as_ref(), page) => {
                refused("the token is not for a page of this origin")
            }
            () => Ok(Some(claims)),
        }
    }
}

fn exempt(config: &Config) -> Exempt {
    let admission = &config.admission;
    Exempt { networks: admission.exempt.clone(), proxies: admission.trusted_proxies.clone() }
}
