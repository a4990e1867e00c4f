//! What the front asks of the relay: who gets a flow, and where to.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::info;

use super::app::App;
use super::client::EVICTION_TIMEOUT;
use super::open_flows::{Ender, OpenFlowGuard};
use crate::admission::{Forbidden, Grant, Refusal, UdpCandidate};
use crate::close::BANNED;
use crate::flow::{self, Carried, FlowEnd, Shares, TargetCounters, TotalRate};
use crate::front::{Admit, Admitted, Direction, NotAdmitted, Offer, Permit};
use crate::now::Now;
use crate::target::TargetName;

/// The transport of clients of the front, for the log.
const TRANSPORT: &str = "udp";

/// The rules for the clients of a front.
#[derive(Debug)]
pub(crate) struct FrontAdmission {
    app: Arc<App>,
    target: TargetName,
    /// The clients for which another flow is about to end. Each has cost one, so that there are no more of them than flows.
    waiting: HashMap<SocketAddr, Waiting>,
}

/// A client for which another flow is about to end.
#[derive(Debug)]
struct Waiting {
    candidate: UdpCandidate,
    since: Instant,
}

impl Waiting {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= EVICTION_TIMEOUT
    }
}

/// What a client of a front holds as long as its flow.
#[derive(Debug)]
pub(crate) struct FrontPermit {
    app: Arc<App>,
    grant: Grant,
    counters: Arc<TargetCounters>,
    /// The number of the flow, by which lines of the log belong together.
    flow: u64,
    begun: Instant,
    carried: Carried,
    /// What all clients together may have, and the shares of this one.
    total: TotalRate,
    shares: Shares,
    /// Its entry in the list for the operator.
    listed: OpenFlowGuard,
    /// A shutdown waits for it.
    _tracked: TaskTrackerToken,
}

impl FrontAdmission {
    pub(crate) fn new(app: Arc<App>, target: TargetName) -> Self {
        Self { app, target, waiting: HashMap::new() }
    }

    fn grant(
        &mut self,
        now: Now,
        client: SocketAddr,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Grant, NotAdmitted> {
        // One that asks again costs nobody else a flow, and is no new client.
        if let Some(Waiting { candidate, since }) =
            self.waiting.remove(&client).filter(|waiting| !waiting.is_over(now.at))
        {
            return candidate.take_slot().map_err(|candidate| {
                self.waiting.insert(client, Waiting { candidate, since });
                NotAdmitted::Later
            });
        }
        let candidate = self.app.admission.udp_candidate(now, client, &self.target).map_err(|refusal| {
            self.log_refusal(client, class_of(&refusal));
            NotAdmitted::Refused
        })?;
        candidate.take_slot().or_else(|candidate| self.make_room_for(now, candidate, make_room))
    }

    /// A full relay gives a client the slot of a flow that waits for its server, or of the flow that has waited for its own
    /// client for longest, which ends in its own task.
    fn make_room_for(
        &mut self,
        now: Now,
        mut candidate: UdpCandidate,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Grant, NotAdmitted> {
        let client = candidate.client();
        candidate.claim_slot();
        if make_room() {
            candidate = match candidate.take_slot() {
                Ok(grant) => return Ok(grant),
                Err(candidate) => candidate,
            };
        }
        let Some(evicted) = self.app.resumable().evict().cloned() else {
            self.log_refusal(client, "this relay has its maximum of clients");
            return Err(NotAdmitted::Refused);
        };
        evicted.evict();
        self.waiting.insert(client, Waiting { candidate, since: now.at });
        Err(NotAdmitted::Later)
    }
}

impl FrontAdmission {
    fn log_refusal(&self, client: SocketAddr, reason: &'static str) {
        self.app.log_refusal(client, TRANSPORT, reason, reason);
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
        let app = Arc::clone(&self.app);
        // No later than the question whether it is over, so that a shutdown that begins now waits for the flow.
        let tracked = app.sessions.token();
        if app.drain.is_cancelled() {
            return Err(NotAdmitted::Refused);
        }
        let grant = self.grant(now, client, make_room)?;
        let flow = app.next_flow();
        let shown = app.addresses.show(client);
        info!(client = %shown, target_name = %self.target, transport = TRANSPORT, flow, "client connected");
        let total = app.admission.total().clone();
        let ender = Ender::Front(AtomicBool::new(false));
        let listed = app.open_flows.add(flow, self.target.clone(), (client, TRANSPORT), ender);
        // A ban finds the flows that are listed, and the others find the ban.
        if app.admission.is_banned(now.at, client.ip()) {
            listed.end(FlowEnd::Banned);
        }
        let counters = app.counters.target(&self.target);
        counters.flows.increment();
        counters.clients.increment();
        Ok(Admitted {
            server: grant.target.address,
            source: grant.target.settings.source.into(),
            proxy_protocol: grant.target.settings.proxy_protocol,
            idle_timeout: grant.limits.idle_timeout,
            max_datagram: grant.limits.longest_datagram(grant.target.settings.kind),
            rate: grant.limits.rate(),
            permit: FrontPermit {
                app,
                grant,
                counters,
                flow,
                begun: now.at,
                carried: Carried::default(),
                shares: total.shares_of(client.ip()),
                total,
                listed,
                _tracked: tracked,
            },
        })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.waiting.retain(|_, waiting| !waiting.is_over(now));
    }

    fn offer(&self) -> Option<Offer> {
        let (target, limits) = self.app.admission.udp_target(&self.target)?;
        Some(Offer {
            pongs: self.app.probes.pongs(&target),
            payload_max: limits.payload_max(),
            announced_to: target.settings.proxy_protocol.then_some(target.address),
        })
    }
}

impl Drop for FrontPermit {
    fn drop(&mut self) {
        self.counters.clients.decrement();
        info!(
            client = %self.app.addresses.show(self.grant.client),
            target_name = %self.grant.target.name,
            transport = TRANSPORT,
            flow = self.flow,
            seconds = self.begun.elapsed().as_secs(),
            bytes_to_server = self.carried.to_server,
            bytes_to_client = self.carried.to_client,
            "client closed"
        );
    }
}

impl Permit for FrontPermit {
    fn note_passed(&mut self, direction: Direction, bytes: usize) {
        match direction {
            Direction::ToServer => self.carried.to_server += bytes as u64,
            Direction::ToClient => self.carried.to_client += bytes as u64,
        }
        self.listed.set_carried(self.carried);
    }

    fn admits(&mut self, direction: Direction, bytes: usize) -> bool {
        let direction = match direction {
            Direction::ToServer => flow::Direction::ToServer,
            Direction::ToClient => flow::Direction::ToClient,
        };
        !self.total.is_limited() || self.total.admits(Instant::now(), direction, bytes, &self.shares)
    }

    fn is_over(&self) -> bool {
        self.listed.is_over()
    }
}

/// The refusal in the words of the log.
const fn class_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Close(reason) => reason.class(),
        Refusal::Forbidden(Forbidden::Banned) => BANNED,
        // Clients without a page have none.
        Refusal::Forbidden(Forbidden::Origin) => "the origin may not connect",
    }
}

#[cfg(test)]
#[path = "front_admission_tests.rs"]
mod tests;
