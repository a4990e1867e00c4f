//! Who may connect, and to what. It is decided once for each client, before there is a flow.

mod bans;
mod discovered;
mod forwarded;
mod limiter;
mod origin;
mod policy;
mod proxy;
mod refusal;
mod request;
mod targets;
mod udp;
mod used;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use axum::http::HeaderMap;
use tokio::sync::watch;

pub(crate) use bans::Bans;
pub(crate) use discovered::resolve_discovered;
pub(crate) use limiter::Share;
pub(crate) use origin::OriginPolicy;
pub use origin::{AllowedOrigin, Origin, OriginSyntaxError};
use policy::Policy;
pub(crate) use proxy::parse;
pub(crate) use refusal::Refusal;
pub(crate) use request::Request;
pub(crate) use targets::{ResolvedTarget, Targets};
pub(crate) use udp::UdpAdmission;
use used::{Unusable, UsedTokens};

use crate::close::CloseReason;
use crate::config::{Config, ConfigError, Limits};
use crate::token::Claims;

/// What an admitted client gets.
#[derive(Debug)]
pub(crate) struct Grant {
    /// The target, with the address that the flow keeps.
    pub(crate) target: Arc<ResolvedTarget>,
    /// The client.
    pub(crate) client: SocketAddr,
    /// The limits for this client.
    pub(crate) limits: Limits,
    /// When its token expires, if it has one. A running flow may outlast it; a return is not admitted after it.
    pub(crate) expires: Option<SystemTime>,
    /// The place of the client, which is free again once the grant is dropped.
    _share: Share,
}

/// The decision, and what it depends on.
#[derive(Debug)]
pub(crate) struct Admission {
    policy: watch::Sender<Arc<Policy>>,
    used: UsedTokens,
}

impl Admission {
    /// Reads the files that the configuration names.
    pub(crate) fn new(config: &Config, targets: Targets) -> Result<Self, ConfigError> {
        let policy = Policy::new(config, targets)?;
        Ok(Self { policy: watch::Sender::new(Arc::new(policy)), used: UsedTokens::default() })
    }

    /// Replaces what the configuration says. Clients that are connected stay, and count on.
    pub(crate) fn reload(&self, config: &Config, targets: Targets) -> Result<(), ConfigError> {
        let policy = self.policy().successor(config, targets)?;
        self.policy.send_replace(Arc::new(policy));
        Ok(())
    }

    /// Resolves the names of targets again.
    pub(crate) async fn resolve_again(&self) {
        let before = self.policy();
        let targets = before.targets.resolve_again().await;
        self.policy.send_modify(|policy| {
            // A reload in the meantime has resolved its targets itself.
            if Arc::ptr_eq(policy, &before) {
                *policy = Arc::new(before.with_targets(targets));
            }
        });
    }

    /// How long until the names of targets are resolved again.
    pub(crate) fn resolve_interval(&self) -> std::time::Duration {
        self.policy().resolve_interval
    }

    /// The targets at this moment.
    pub(crate) fn targets(&self) -> Targets {
        self.policy().targets.clone()
    }

    /// The targets of the configuration and those that were found beside them.
    pub(crate) fn offered(&self) -> Targets {
        self.policy().offered()
    }

    /// Replaces the targets that were found beside those of the configuration.
    pub(crate) fn set_discovered(&self, targets: Targets) {
        if self.policy().discovered != targets {
            self.policy.send_modify(|policy| *policy = Arc::new(policy.with_discovered(targets)));
        }
    }

    /// Whether the page of a request may connect.
    pub(crate) fn admits_origin(&self, headers: &HeaderMap) -> bool {
        self.policy().origins.admits(&origin::PageOrigin::of(headers))
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.borrow())
    }

    /// Whether a connection may begin with a PROXY protocol header, and its forwarding headers count.
    pub(crate) fn is_trusted_proxy(&self, peer: IpAddr) -> bool {
        self.policy().proxies.contains(peer)
    }

    /// Admits a TCP connection of a client. Trusted proxies are not limited themselves; with the PROXY protocol the
    /// client that they name is.
    pub(crate) fn admit_connection(&self, client: IpAddr) -> Result<Option<Share>, Refusal> {
        let policy = self.policy();
        if policy.proxies.contains(client) {
            return Ok(None);
        }
        if policy.bans.contains(client.to_canonical()) {
            return Err(Refusal::Banned);
        }
        let limiter = &policy.connections;
        let share = limiter.check_rate(client).and_then(|()| limiter.take(client));
        share.map(Some).map_err(|excess| policy.excess(excess))
    }

    /// The client of a request on a connection of `peer`, which is the client of its PROXY protocol header if it had
    /// one from a trusted proxy.
    pub(crate) fn client_of(&self, peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
        self.policy().proxies.client(peer, headers)
    }

    /// Decides about a client.
    pub(crate) fn admit(&self, request: &Request) -> Result<Grant, Refusal> {
        self.admit_at(request, SystemTime::now())
    }

    fn admit_at(&self, request: &Request, now: SystemTime) -> Result<Grant, Refusal> {
        let policy = self.policy();
        let ip = request.client.ip().to_canonical();
        if policy.bans.contains(ip) {
            return Err(Refusal::Banned);
        }
        if !policy.origins.admits(&request.origin) {
            return Err(Refusal::Origin);
        }
        // Before a signature is verified, which takes much more time.
        policy.clients.check_rate(ip).map_err(|excess| policy.excess(excess))?;
        let target = policy.target(request.target.as_deref()).map_err(Refusal::Close)?;
        let claims = policy.claims(request, &target.name, now).map_err(Refusal::Close)?;
        let share = policy.clients.take(ip).map_err(|excess| policy.excess(excess))?;
        // At last, so that a token is not used up by a request that is refused for something else.
        self.claim(&policy, claims.as_ref(), request, now).map_err(Refusal::Close)?;
        Ok(Grant {
            target,
            client: request.client,
            limits: policy.limits,
            expires: claims.and_then(|claims| claims.expires()),
            _share: share,
        })
    }

    fn claim(
        &self,
        policy: &Policy,
        claims: Option<&Claims>,
        request: &Request,
        now: SystemTime,
    ) -> Result<(), CloseReason> {
        let Some(claims) = claims.filter(|_| policy.tokens.single_use && !request.resumes) else {
            return Ok(());
        };
        let until = claims.expires().unwrap_or(now) + policy.tokens.leeway;
        self.used.claim(&claims.jti, until, now).map_err(|unusable| match unusable {
            Unusable::Used => CloseReason::TokenRefused("the token has been used"),
            Unusable::Full => CloseReason::TooManyClients { max: policy.limits.max_clients },
        })
    }
}
