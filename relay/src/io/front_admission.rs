//! What the front asks of the relay: who gets a flow, and where to.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{debug, info};

use super::app::App;
use super::client::payload_max;
use crate::admission::{Grant, Refusal};
use crate::close::CloseReason;
use crate::flow::TargetCounters;
use crate::front::{Admit, Admitted, NotAdmitted, Offer};
use crate::now::Now;
use crate::target::TargetName;

/// The rules for the clients of a front.
#[derive(Debug)]
pub(crate) struct FrontAdmission {
    app: Arc<App>,
    target: TargetName,
}

/// What a client of a front holds as long as its flow.
#[derive(Debug)]
pub(crate) struct FrontPermit {
    app: Arc<App>,
    grant: Grant,
    counters: Arc<TargetCounters>,
    /// A shutdown waits for it.
    _tracked: TaskTrackerToken,
}

impl FrontAdmission {
    pub(crate) const fn new(app: Arc<App>, target: TargetName) -> Self {
        Self { app, target }
    }

    /// A full relay gives a client the slot of the flow that has waited for its own for longest, which ends in its own task.
    fn not_admitted(&self, refusal: &Refusal) -> NotAdmitted {
        if !matches!(refusal, Refusal::Close(CloseReason::TooManyClients { .. })) {
            return NotAdmitted::Refused;
        }
        let Some(evicted) = self.app.resumable().evict().cloned() else { return NotAdmitted::Refused };
        evicted.evict();
        NotAdmitted::Later
    }
}

impl Admit for FrontAdmission {
    type Permit = FrontPermit;

    fn admit(
        &mut self,
        now: Now,
        client: SocketAddr,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Admitted<FrontPermit>, NotAdmitted> {
        let app = &self.app;
        // No later than the question whether it is over, so that a shutdown that begins now waits for the flow.
        let tracked = app.sessions.token();
        if app.drain.is_cancelled() {
            return Err(NotAdmitted::Refused);
        }
        let grant = app.admission.admit_udp(now, client, &self.target, make_room).map_err(|refusal| {
            debug!(client = %app.addresses.show(client), ?refusal, "client of the front refused");
            self.not_admitted(&refusal)
        })?;
        info!(client = %app.addresses.show(client), target_name = %self.target, "client of the front connected");
        let counters = app.counters.target(&self.target);
        counters.flows.increment();
        counters.clients.increment();
        Ok(Admitted {
            server: grant.target.address,
            source: grant.target.settings.source.into(),
            proxy_protocol: grant.target.settings.proxy_protocol,
            idle_timeout: grant.limits.idle_timeout,
            max_datagram: grant.limits.max_datagram,
            rate: grant.limits.rate(),
            permit: FrontPermit { app: Arc::clone(app), grant, counters, _tracked: tracked },
        })
    }

    fn offer(&self) -> Option<Offer> {
        let (target, limits) = self.app.admission.udp_target(&self.target)?;
        Some(Offer {
            pongs: self.app.probes.pongs(&target),
            payload_max: payload_max(limits.max_datagram),
            announced_to: target.settings.proxy_protocol.then_some(target.address),
        })
    }
}

impl Drop for FrontPermit {
    fn drop(&mut self) {
        self.counters.clients.decrement();
        info!(client = %self.app.addresses.show(self.grant.client), "client of the front closed");
    }
}
