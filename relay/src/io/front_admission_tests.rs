//! Clients of a front at a relay that is full, some of whose flows wait for their clients.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::super::app::Connections;
use super::super::handover::Request;
use super::*;
use crate::admission::{Admission, Targets};
use crate::config::Config;
use crate::flow::Secret;

/// A relay whose slots are all taken, by flows that wait for their clients.
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

    /// A slot for a client that ends no flow.
    fn slot_of(&self, client: SocketAddr) -> Option<Grant> {
        self.app.admission.udp_candidate(self.now, client, &name()).unwrap().take_slot().ok()
    }

    /// Which flows are told to end since this was asked last.
    fn told_to_end(&self) -> Vec<bool> {
        let context = Context::from_waker(Waker::noop());
        self.flows.iter().map(|flow| matches!(flow.poll(&context), Poll::Ready(Request::Evict))).collect()
    }
}

#[tokio::test]
async fn a_client_that_asks_again_and_again_ends_one_flow_and_gets_its_slot() {
    let mut full = Full::new(3).await;
    let mut admission = FrontAdmission::new(Arc::clone(&full.app), name());
    for _ in 0..64 {
        let answer = admission.admit(full.now, client(1), &mut || false);
        assert_eq!(answer.err(), Some(NotAdmitted::Later));
    }
    assert_eq!(full.told_to_end(), [true, false, false]);
    full.slots.remove(0);
    assert!(full.slot_of(client(2)).is_none(), "the slot is for the one that waits");
    assert!(admission.admit(full.now, client(1), &mut || false).is_ok());
    assert_eq!(full.told_to_end(), [false; 3]);
}

#[tokio::test]
async fn a_client_that_does_not_come_back_keeps_nothing_from_others() {
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
async fn a_client_whose_flow_to_end_goes_on_ends_another_one_later() {
    let mut full = Full::new(2).await;
    let mut admission = FrontAdmission::new(Arc::clone(&full.app), name());
    for told in [[true, false], [false, true]] {
        assert_eq!(admission.admit(full.now, client(1), &mut || false).err(), Some(NotAdmitted::Later));
        assert_eq!(full.told_to_end(), told);
        full.now.at += EVICTION_TIMEOUT;
    }
    assert_eq!(admission.admit(full.now, client(1), &mut || false).err(), Some(NotAdmitted::Refused));
}

/// A flow that waits for its server ends at once. What it leaves is not taken by others who wait.
#[tokio::test]
async fn a_client_takes_the_slot_of_the_flow_that_makes_room_for_it() {
    let mut full = Full::new(2).await;
    let mut admission = FrontAdmission::new(Arc::clone(&full.app), name());
    assert_eq!(admission.admit(full.now, client(1), &mut || false).err(), Some(NotAdmitted::Later));
    let mut slots = std::mem::take(&mut full.slots);
    assert!(admission.admit(full.now, client(2), &mut || slots.pop().is_some()).is_ok());
    assert_eq!(full.told_to_end(), [true, false]);
}
