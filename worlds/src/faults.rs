//! Starts and ends the faults of a plan.

use core::time::Duration;

use rakwire::Instant;
use rakwire::sim::{Bottleneck, Conditions};

use crate::flow::FromClient;
use crate::peers;
use crate::plan::{Fault, FaultKind};
use crate::plant::Plant;
use crate::world::{Ending, INSIDE, Phase, World};

/// The queue length of the network between relay, front and server during congestion.
const QUEUE: Duration = Duration::from_millis(200);

impl World {
    /// Ends the faults that are over, and starts those that are due.
    pub(crate) fn apply_faults(&mut self) {
        let now = self.now;
        let (due, later) = self.endings.drain(..).partition(|(at, _)| *at <= now);
        self.endings = later;
        let due: Vec<(Instant, Ending)> = due;
        due.into_iter().for_each(|(_, ending)| self.end(ending));
        while self.phase == Phase::Active
            && let Some(fault) = self.plan.faults.get(self.next_fault).cloned()
            && self.start + fault.at <= now
        {
            self.next_fault += 1;
            self.begin(&fault);
        }
    }

    /// Ends all active faults.
    pub(crate) fn stop_faults(&mut self) {
        let endings = core::mem::take(&mut self.endings);
        endings.into_iter().for_each(|(_, ending)| self.end(ending));
    }

    fn end(&mut self, ending: Ending) {
        match ending {
            Ending::Client(number) => {
                if let Some(client) = self.clients.get_mut(number).and_then(Option::as_mut) {
                    client.restore();
                }
            }
            Ending::Inside => {
                self.to_server.set_conditions(INSIDE);
                self.from_server.set_conditions(INSIDE);
            }
            Ending::Server => {
                self.server_is_down_until = None;
                self.server.restart(peers::server(&self.plan, &mut self.random));
            }
        }
    }

    fn begin(&mut self, fault: &Fault) {
        match fault.kind {
            FaultKind::ServerStall { lasts } => self.server.stall(self.now + lasts),
            FaultKind::ServerClock { by } => self.server.advance_clock(by),
            FaultKind::ServerRestart { lasts } => {
                self.server_is_down_until = Some(self.now + lasts);
                self.server_connections.clear();
                self.attempts.iter_mut().for_each(|attempt| attempt.server_side = None);
                self.held = None;
                self.endings.retain(|(_, ending)| *ending != Ending::Server);
                self.endings.push((self.now + lasts, Ending::Server));
            }
            FaultKind::RelayRestart => self.restart_relay(),
            FaultKind::FrontRestart { has_new_key } => self.front.restart(has_new_key),
            FaultKind::Congestion { bits_per_second, lasts } => {
                let bottleneck = Some(Bottleneck::with_queue_of(bits_per_second, QUEUE));
                self.to_server.set_conditions(Conditions { bottleneck, ..INSIDE });
                self.from_server.set_conditions(Conditions { bottleneck, ..INSIDE });
                self.endings.push((self.now + lasts, Ending::Inside));
            }
            FaultKind::Noise { datagrams } => self.send_noise(datagrams),
            FaultKind::Blackout { .. }
            | FaultKind::BadNetwork { .. }
            | FaultKind::NarrowPath { .. }
            | FaultKind::NewAddress
            | FaultKind::ClientRestart
            | FaultKind::ClientStall { .. }
            | FaultKind::Leave { .. }
            | FaultKind::ClientClock { .. }
            | FaultKind::CarrierLost { .. } => self.begin_at_client(fault),
        }
    }

    fn restart_relay(&mut self) {
        self.relay.restart();
        let now = self.now;
        for client in self.clients.iter_mut().flatten().filter(|client| client.is_relayed()) {
            let wait = Duration::from_millis(client.random.below(3_000));
            client.lose_carrier(now + wait);
        }
    }

    fn begin_at_client(&mut self, fault: &Fault) {
        let now = self.now;
        let Some(client) = self.clients.get_mut(fault.client).and_then(Option::as_mut) else { return };
        let lasts = match fault.kind {
            FaultKind::Blackout { lasts } => {
                client.up.block(now + lasts);
                client.down.block(now + lasts);
                lasts
            }
            FaultKind::BadNetwork { conditions, lasts } => {
                client.up.set_conditions(conditions);
                client.down.set_conditions(conditions);
                lasts
            }
            FaultKind::NarrowPath { path, reports_too_long, lasts } => {
                client.path = client.path.min(path);
                client.reports_too_long = reports_too_long;
                lasts
            }
            FaultKind::ClientStall { lasts } => return client.host.stall(now + lasts),
            FaultKind::ClientClock { by } => return client.host.advance_clock(by),
            FaultKind::Leave { lasts } => return client.leave(now, lasts),
            FaultKind::ClientRestart => {
                let plan = self.plan.clone();
                client.restart(&plan);
                return self.lose_carrier(fault.client, Duration::from_secs(1), true);
            }
            FaultKind::NewAddress => {
                client.change_address();
                return self.lose_carrier(fault.client, Duration::from_millis(500), false);
            }
            FaultKind::CarrierLost { lasts } => return self.lose_carrier(fault.client, lasts, false),
            FaultKind::ServerStall { .. }
            | FaultKind::ServerClock { .. }
            | FaultKind::ServerRestart { .. }
            | FaultKind::RelayRestart
            | FaultKind::FrontRestart { .. }
            | FaultKind::Congestion { .. }
            | FaultKind::Noise { .. } => return,
        };
        self.endings.push((now + lasts, Ending::Client(fault.client)));
    }

    /// Drops the connection of a client to the relay, if it has one. At random, the relay is notified immediately or
    /// detects the loss later by its pings.
    fn lose_carrier(&mut self, number: usize, lasts: Duration, forgets_ticket: bool) {
        let Some(client) = self.clients.get_mut(number).and_then(Option::as_mut) else { return };
        let crate::client::Carrier::Up { port } = client.carrier else { return };
        client.lose_carrier(self.now + lasts);
        if forgets_ticket {
            client.ticket = None;
        }
        if client.random.below(2) == 0 {
            self.relay.handle_client(self.now, port, FromClient::Vanished);
        }
        if self.plant == Some(Plant::ForgetsFlow) {
            let secret = client.ticket.map(|ticket| ticket.secret);
            secret.iter().for_each(|secret| self.relay.forget(secret));
        }
    }
}
