//! Clients of the front, which come without a page and without a token.

use std::net::SocketAddr;
use std::sync::Arc;

use super::limiter::Excess;
use super::{Admission, Forbidden, Grant, Refusal, ResolvedTarget};
use crate::close::CloseReason;
use crate::config::Limits;
use crate::now::Now;
use crate::target::TargetName;

impl Admission {
    /// Decides about a client of a front, whose address is proved. If nothing but the number of all clients is against
    /// it, `make_room` may end another; it tells whether there was one.
    pub(crate) fn admit_udp(
        &self,
        now: Now,
        client: SocketAddr,
        target: &TargetName,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Grant, Refusal> {
        let policy = self.policy();
        let ip = client.ip().to_canonical();
        if policy.bans.contains(ip) {
            return Err(Refusal::Forbidden(Forbidden::Banned));
        }
        // A reload may have brought the first key of tokens while the front goes on.
        if policy.needs_token() && !policy.udp_allow_without_token {
            return Err(CloseReason::TokenRefused("a token is needed").into());
        }
        policy.clients.check_rate(now.at, ip).map_err(|excess| policy.excess(excess))?;
        let target = policy.target(Some(target.as_str()))?;
        let share = match policy.clients.take(ip) {
            Err(Excess::Total) if make_room() => policy.clients.take(ip),
            share => share,
        };
        let share = share.map_err(|excess| policy.excess(excess))?;
        Ok(Grant { target, client, limits: policy.limits, token: None, _share: share })
    }

    /// The target of a front and the limits for its next client, if the target is there.
    pub(crate) fn udp_target(&self, target: &TargetName) -> Option<(Arc<ResolvedTarget>, Limits)> {
        let policy = self.policy();
        policy.target(Some(target.as_str())).ok().map(|target| (target, policy.limits))
    }
}
