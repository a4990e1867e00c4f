//! The relay's admission as used by the front: decides on new clients, their targets and their limits.

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
use crate::addresses::TargetName;
use crate::admission::{Forbidden, Grant, Refusal, UdpCandidate};
use crate::close::BANNED;
use crate::flow::{self, FlowEnd, Forwarded, Shares, TargetCounters, TotalRate};
use crate::front::{Admit, Admitted, Direction, NotAdmitted, Offer, Permit};
use crate::time::Now;

/// The transport of front clients in the log.
const TRANSPORT: &str = "udp";

/// The rules of admission for the clients of a front.
#[derive(Debug)]
pub(crate) struct FrontAdmission {
    app: Arc<App>,
    target: TargetName,
    /// Clients that wait for an evicted flow to end. Each has evicted one flow, so there are at most as many clients as
    /// flows.
    waiting: HashMap<SocketAddr, Waiting>,
}

/// A client that waits for an evicted flow to end.
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

/// The resources that a front client holds during its flow.
#[derive(Debug)]
pub(crate) struct FrontPermit {
    app: Arc<App>,
    grant: Grant,
    counters: Arc<TargetCounters>,
    /// The number of the flow, which identifies its lines in the log.
    flow: u64,
    begun: Instant,
    forwarded: Forwarded,
    /// The total rate, with this client's share.
    total: TotalRate,
    shares: Shares,
    /// The entry of the flow in the list for operators.
    listed: OpenFlowGuard,
    /// Makes a shutdown wait for the flow.
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
        // A repeated request evicts no further flow, and does not count as a new client.
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

    /// Frees a slot on a full relay: that of a flow that waits for its server, or of the flow that has waited longest
    /// for its client. The evicted flow ends in its own task.
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
            self.log_refusal(client, "this relay has reached its maximum of clients");
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
        // The token is taken before the drain is checked, so that a concurrent shutdown waits for the flow.
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
        // A ban ends the flows in the list. A flow that is not listed yet finds the ban here.
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
                forwarded: Forwarded::default(),
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
            bytes_to_server = self.forwarded.to_server,
            bytes_to_client = self.forwarded.to_client,
            "client closed"
        );
    }
}

impl Permit for FrontPermit {
    fn note_passed(&mut self, direction: Direction, bytes: usize) {
        match direction {
            Direction::ToServer => self.forwarded.to_server += bytes as u64,
            Direction::ToClient => self.forwarded.to_client += bytes as u64,
        }
        self.listed.set_forwarded(self.forwarded);
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

/// Returns the refusal as logged, one of a few fixed texts.
const fn class_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Close(reason) => reason.class(),
        Refusal::Forbidden(Forbidden::Banned) => BANNED,
        // Clients without a page have no origin.
        Refusal::Forbidden(Forbidden::Origin) => "the origin may not connect",
    }
}

#[cfg(test)]
mod tests {
    //! Front clients at a full relay, where some flows wait for their clients.

    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use super::super::app::Connections;
    use super::super::open_flows::Request;
    use super::*;
    use crate::admission::{Admission, Targets};
    use crate::config::Config;
    use crate::flow::Secret;

    /// A relay with all slots taken by flows that wait for their clients.
    struct Full {
        app: Arc<App>,
        now: Now,
        slots: Vec<Grant>,
        flows: Vec<Arc<Connections>>,
    }

    fn name() -> TargetName {
        "game".parse().unwrap()
    }

    fn client(number: u8) -> SocketAddr {
        ([198, 51, 100, number], 5).into()
    }

    impl Full {
        async fn new(max_clients: u8) -> Self {
            let target = "game=127.0.0.1:1".parse().unwrap();
            let mut config = Config::new("127.0.0.1:0".parse().unwrap()).with_target(target);
            config.limits.max_clients = max_clients.into();
            let targets = Targets::resolve(&config, &Targets::default()).await.unwrap();
            let app = Arc::new(App::new(Admission::new(&config, targets).unwrap(), &config, None));
            let mut full = Self { app, now: Now::read(), slots: Vec::new(), flows: Vec::new() };
            for number in 0..max_clients {
                let slot = full.slot_of(SocketAddr::from(([192, 0, 2, number], 5)));
                full.slots.push(slot.unwrap());
                let (secret, flow) = (Secret::new([number; 16]), Arc::new(Connections::new()));
                full.app.resumable().insert(secret, "game", Arc::clone(&flow));
                full.app.resumable().set_detached(&secret);
                full.flows.push(flow);
            }
            full
        }

        /// Takes a slot without evicting a flow.
        fn slot_of(&self, client: SocketAddr) -> Option<Grant> {
            self.app.admission.udp_candidate(self.now, client, &name()).unwrap().take_slot().ok()
        }

        /// Returns, for each flow, whether it was requested to end since the last call.
        fn ended_flows(&self) -> Vec<bool> {
            let context = Context::from_waker(Waker::noop());
            self.flows.iter().map(|flow| matches!(flow.poll(&context), Poll::Ready(Request::Evict))).collect()
        }
    }

    #[tokio::test]
    async fn repeated_requests_evict_only_one_flow() {
        let mut full = Full::new(3).await;
        let mut admission = FrontAdmission::new(Arc::clone(&full.app), name());
        for _ in 0..64 {
            let answer = admission.admit(full.now, client(1), &mut || false);
            assert_eq!(answer.err(), Some(NotAdmitted::Later));
        }
        assert_eq!(full.ended_flows(), [true, false, false]);
        full.slots.remove(0);
        assert!(full.slot_of(client(2)).is_none(), "the slot is reserved for the waiting client");
        assert!(admission.admit(full.now, client(1), &mut || false).is_ok());
        assert_eq!(full.ended_flows(), [false; 3]);
    }

    #[tokio::test]
    async fn an_abandoned_request_releases_its_claim() {
        let mut full = Full::new(2).await;
        let mut admission = FrontAdmission::new(Arc::clone(&full.app), name());
        assert_eq!(admission.admit(full.now, client(1), &mut || false).err(), Some(NotAdmitted::Later));
        full.slots.remove(0);
        admission.handle_timeout(full.now.at + EVICTION_TIMEOUT - Duration::from_millis(1));
        assert!(full.slot_of(client(2)).is_none());
        admission.handle_timeout(full.now.at + EVICTION_TIMEOUT);
        assert!(full.slot_of(client(2)).is_some());
    }

    #[tokio::test]
    async fn a_client_evicts_another_flow_if_the_first_continues() {
        let mut full = Full::new(2).await;
        let mut admission = FrontAdmission::new(Arc::clone(&full.app), name());
        for told in [[true, false], [false, true]] {
            assert_eq!(admission.admit(full.now, client(1), &mut || false).err(), Some(NotAdmitted::Later));
            assert_eq!(full.ended_flows(), told);
            full.now.at += EVICTION_TIMEOUT;
        }
        assert_eq!(admission.admit(full.now, client(1), &mut || false).err(), Some(NotAdmitted::Refused));
    }

    /// `make_room` frees a slot immediately. Client 1, which still waits for an eviction, must not get it.
    #[tokio::test]
    async fn a_slot_freed_for_a_new_client_is_not_given_to_a_waiting_one() {
        let mut full = Full::new(2).await;
        let mut admission = FrontAdmission::new(Arc::clone(&full.app), name());
        assert_eq!(admission.admit(full.now, client(1), &mut || false).err(), Some(NotAdmitted::Later));
        let mut slots = std::mem::take(&mut full.slots);
        assert!(admission.admit(full.now, client(2), &mut || slots.pop().is_some()).is_ok());
        assert_eq!(full.ended_flows(), [true, false]);
    }
}
