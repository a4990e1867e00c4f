//! Clients of the front, which come without a page and without a token.

use std::net::SocketAddr;
use std::sync::Arc;

use super::limiter::Excess;
use super::{Admission, Forbidden, Grant, Refusal};
use crate::front::Admit;
use crate::target::TargetName;

/// The rules for the clients of a front.
#[derive(Debug)]
pub(crate) struct UdpAdmission {
    admission: Arc<Admission>,
    target: TargetName,
}

impl UdpAdmission {
    pub(crate) const fn new(admission: Arc<Admission>, target: TargetName) -> Self {
        Self { admission, target }
    }
}

impl Admit for UdpAdmission {
    type Permit = Grant;

    fn admit(&mut self, client: SocketAddr, make_room: &mut dyn FnMut() -> bool) -> Option<Grant> {
        self.admission.admit_udp(client, &self.target, make_room).ok()
    }
}

impl Admission {
    /// Decides about a client of a front, whose address is proved.
    pub(crate) fn admit_udp(
        &self,
        client: SocketAddr,
        target: &TargetName,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Grant, Refusal> {
        let policy = self.policy();
        let ip = client.ip().to_canonical();
        if policy.bans.contains(ip) {
            return Err(Refusal::Forbidden(Forbidden::Banned));
        }
        policy.clients.check_rate(ip).map_err(|excess| policy.excess(excess))?;
        let target = policy.target(Some(target.as_str()))?;
        let share = match policy.clients.take(ip) {
            Err(Excess::Total) if make_room() => policy.clients.take(ip),
            share => share,
        };
        let share = share.map_err(|excess| policy.excess(excess))?;
        Ok(Grant { target, client, limits: policy.limits, _share: share })
    }
}
