//! Clients of the front, which come without a page and without a token.

use std::net::SocketAddr;
use std::sync::Arc;

use super::limiter::Share;
use super::policy::Policy;
use super::{Admission, Forbidden, Grant, Refusal, ResolvedTarget};
use crate::close::CloseReason;
use crate::config::Limits;
use crate::now::Now;
use crate::target::TargetName;

/// A client of a front that has everything but a slot. Until it is dropped, what it has of its address and its prefix is not
/// there for others.
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

    /// Takes a slot for a flow, or returns the candidate if all are taken.
    pub(crate) fn take_slot(mut self) -> Result<Grant, Self> {
        if !self.policy.clients.take_slot(&mut self.share) {
            return Err(self);
        }
        let Self { policy, target, client, share } = self;
        Ok(Grant { target, client, limits: policy.limits, token: None, _share: share })
    }

    /// Claims the slot of a flow that is about to end for it.
    pub(crate) fn claim_slot(&mut self) {
        self.policy.clients.claim_slot(&mut self.share);
    }
}

impl Admission {
    /// Decides everything about a client of a front, whose address is proved, for which it does not matter whether there is
    /// a slot.
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
        // A reload may have brought the first key of tokens while the front goes on.
        if policy.needs_token() && !policy.udp_allow_without_token {
            return Err(CloseReason::TokenRefused("a token is needed").into());
        }
        policy.clients.check_rate(now.at, ip).map_err(|excess| policy.excess(excess))?;
        let target = policy.target(Some(target.as_str()))?;
        let share = policy.clients.take_share(ip).map_err(|excess| policy.excess(excess))?;
        Ok(UdpCandidate { policy, target, client, share })
    }

    /// The target of a front and the limits for its next client, if the target is there.
    pub(crate) fn udp_target(&self, target: &TargetName) -> Option<(Arc<ResolvedTarget>, Limits)> {
        let policy = self.policy();
        policy.target(Some(target.as_str())).ok().map(|target| (target, policy.limits))
    }
}
