//! The rules of admission at one time: what a configuration says, with its files read and its names resolved.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::bans::Bans;
use super::forwarded::TrustedProxies;
use super::limiter::{AddressLimiter, Excess, Exempt};
use super::origin::{Origin, OriginPolicy, PageOrigin};
use super::request::Token;
use super::targets::{ResolvedTarget, Targets};
use crate::close::CloseReason;
use crate::config::{Config, ConfigError, Limits, TokensConfig};
use crate::target::TargetName;
use crate::token::{Claims, VerifyingKey};

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Policy {
    pub(super) targets: Targets,
    /// Those that announce themselves. A target of the configuration goes before one of the same name.
    pub(super) discovered: Targets,
    pub(super) resolve_interval: Duration,
    pub(super) origins: OriginPolicy,
    pub(super) proxies: TrustedProxies,
    pub(super) bans: Arc<Bans>,
    pub(super) tokens: TokensConfig,
    keys: Vec<VerifyingKey>,
    pub(super) udp_allow_without_token: bool,
    webrtc_allow_without_origin: bool,
    pub(super) limits: Limits,
    pub(super) clients: Arc<AddressLimiter>,
    pub(super) connections: Arc<AddressLimiter>,
    /// For requests that make no client, of which a connection can have many.
    pub(super) requests: Arc<AddressLimiter>,
    /// For requests of files.
    pub(super) files: Arc<AddressLimiter>,
    /// For requests of clients that open several connections and go on with one of them.
    pub(super) deferred: Arc<AddressLimiter>,
}

impl Policy {
    pub(super) fn new(config: &Config, targets: Targets) -> Result<Self, ConfigError> {
        let limiter = |limits, max| Arc::new(AddressLimiter::new(limits, max, exempt(config)));
        let clients = limiter(config.clients, config.limits.max_clients);
        let connections = limiter(config.clients.for_connections(), usize::MAX);
        let requests = limiter(config.clients.for_connections(), usize::MAX);
        let files = limiter(config.clients.for_files(), usize::MAX);
        let deferred = limiter(config.clients.for_connections(), usize::MAX);
        Self::with(config, targets, [clients, connections, requests, files, deferred])
    }

    /// The policy of another configuration for the same clients.
    pub(super) fn successor(&self, config: &Config, targets: Targets) -> Result<Self, ConfigError> {
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

    pub(super) fn with_targets(&self, targets: Targets) -> Self {
        Self { targets, ..self.clone() }
    }

    pub(super) fn with_discovered(&self, discovered: Targets) -> Self {
        Self { discovered, ..self.clone() }
    }

    /// All targets.
    pub(super) fn offered(&self) -> Targets {
        self.discovered.overridden_by(&self.targets)
    }

    pub(super) fn excess(&self, excess: Excess) -> CloseReason {
        match excess {
            Excess::Total => CloseReason::TooManyClients { max: self.limits.max_clients },
            Excess::Address => CloseReason::AddressLimit("too many clients of your address"),
            Excess::Prefix => CloseReason::AddressLimit("too many clients of your network"),
            Excess::Rate => CloseReason::AddressLimit("too many new clients of your address"),
        }
    }

    pub(super) fn target(&self, requested: Option<&str>) -> Result<Arc<ResolvedTarget>, CloseReason> {
        let requested = requested.ok_or(CloseReason::MissingTarget)?;
        let found = self.targets.find(requested).or_else(|| self.discovered.find(requested));
        found.map(Arc::clone).ok_or_else(|| CloseReason::UnknownTarget {
            requested: requested.to_owned(),
            offered: self.offered().names().cloned().collect(),
        })
    }

    /// Whether a page may connect. Where it is not known which one it is, a token shows that somebody has let it in.
    pub(super) fn admits_origin(&self, origin: &PageOrigin) -> bool {
        let is_vouched_for = self.webrtc_allow_without_origin || self.needs_token();
        self.origins.admits(origin) || (*origin == PageOrigin::Unknown && is_vouched_for)
    }

    /// Whether clients need a token.
    pub(super) fn needs_token(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether a token, which may have the origin of the page that it was given to, is one of this page. Where the transport does not
    /// tell which one it is, and not every page may connect, the token has to.
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

    /// The claims of the token, if clients need one. A refusal tells a forger nothing.
    pub(super) fn claims(
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
            // First, so that no later sum is out of range.
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
