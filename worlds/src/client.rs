//! A client with its process, its router and its access network. A relayed client is a page that also has a connection
//! to the relay.

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rakwire::Instant;
use rakwire::raknet::{ConnectionId, DisconnectReason};
use rakwire::sim::{Nat, NatBehavior};

use crate::access::Way;
use crate::flow::Secret;
use crate::host::Host;
use crate::peers;
use crate::plan::{ClientPlan, Plan, Route};
use crate::random::Random;

/// The time after a closed or failed connection at which a client connects again.
pub(crate) const RETRY: Duration = Duration::from_millis(700);

/// The connection of a page to the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Closed; the page opens another one at this time.
    Down { until: Instant },
    /// Open, and attached to the flow with this port.
    Up { port: u16 },
}

/// The credentials with which a page resumes its flow.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    pub(crate) secret: Secret,
    /// The number of restarts of the relay before the ticket was issued.
    pub(crate) relay: u32,
}

/// The client's current attempt or open connection.
#[derive(Clone, Copy)]
pub(crate) struct Current {
    /// The index of the attempt in `World::attempts`.
    pub(crate) attempt: usize,
    pub(crate) id: ConnectionId,
    pub(crate) is_open: bool,
}

pub(crate) struct Client {
    pub(crate) plan: ClientPlan,
    pub(crate) host: Host,
    pub(crate) random: Random,
    pub(crate) current: Option<Current>,
    pub(crate) retry_at: Instant,
    /// The client's clock when the client closed its connection. `None` once its peer has reported the disconnect.
    pub(crate) left_at: Option<Instant>,
    /// The time at which a player that has left connects again.
    pub(crate) away_until: Instant,
    /// The reason why the last connection closed or failed to open.
    pub(crate) last_end: String,
    pub(crate) up: Way,
    pub(crate) down: Way,
    /// The longest datagram that the access network currently carries.
    pub(crate) path: usize,
    /// True if the client is notified of datagrams that are too long.
    pub(crate) reports_too_long: bool,
    pub(crate) nat: Nat,
    /// The address of the client's socket behind the router.
    pub(crate) inside: SocketAddr,
    number: u8,
    /// The number of addresses that its router has had.
    addresses: u8,
    pub(crate) carrier: Carrier,
    /// Distinguishes the frames of successive connections to the relay.
    pub(crate) generation: u8,
    pub(crate) ticket: Option<Ticket>,
}

const BEHAVIORS: [NatBehavior; 4] = [
    NatBehavior::FULL_CONE,
    NatBehavior::RESTRICTED_CONE,
    NatBehavior::PORT_RESTRICTED_CONE,
    NatBehavior::SYMMETRIC_RANDOM,
];

impl Client {
    pub(crate) fn new(world: &Plan, plan: &ClientPlan, number: u8) -> Self {
        let mut random = Random::new(world.seed ^ (u64::from(number) << 32) ^ 0xC11E_4700);
        let peer = peers::client(world, plan.route, &mut random);
        let is_stream = plan.route == Route::RelayStream;
        let (up, down) = (
            Way::new(is_stream, plan.conditions, random.draw()),
            Way::new(is_stream, plan.conditions, random.draw()),
        );
        let behavior = BEHAVIORS[random.below(4) as usize];
        let nat = Nat::new(router_address(number, 0), behavior, random.draw());
        Self {
            path: plan.path,
            plan: plan.clone(),
            host: Host::new(peer),
            current: None,
            retry_at: Instant::ZERO,
            left_at: None,
            away_until: Instant::ZERO,
            last_end: String::new(),
            up,
            down,
            reports_too_long: false,
            nat,
            inside: ([192, 168, number, 2], 5_000).into(),
            number,
            addresses: 0,
            carrier: Carrier::Down { until: Instant::ZERO },
            generation: 0,
            ticket: None,
            random,
        }
    }

    /// Restarts the program without a disconnect, with another port.
    pub(crate) fn restart(&mut self, world: &Plan) {
        let peer = peers::client(world, self.plan.route, &mut self.random);
        self.host.restart(peer);
        self.inside.set_port(self.inside.port() + 1);
        (self.current, self.left_at) = (None, None);
    }

    /// Assigns the router another address and removes its mappings.
    pub(crate) fn change_address(&mut self) {
        self.addresses = self.addresses.wrapping_add(1);
        let behavior = self.nat.behavior();
        self.nat = Nat::new(router_address(self.number, self.addresses), behavior, self.random.draw());
    }

    /// Disconnects and connects again after `lasts`. A client that is suspended, has no open connection or is already
    /// leaving does nothing.
    pub(crate) fn leave(&mut self, now: Instant, lasts: Duration) {
        let is_open = self.current.is_some_and(|current| current.is_open);
        if is_open && self.left_at.is_none() && !self.host.is_stalled(now) {
            self.disconnect(now);
            self.away_until = now + lasts;
        }
    }

    /// Closes its connection or its attempt to connect.
    pub(crate) fn disconnect(&mut self, now: Instant) {
        if let Some(current) = self.current {
            let clock = self.host.clock(now);
            self.host.peer.disconnect(clock, current.id);
            self.left_at = Some(self.left_at.unwrap_or(clock)).filter(|_| current.is_open);
        }
    }

    /// Notes the reason why its connection closed or failed to open.
    pub(crate) fn lose_connection(&mut self, now: Instant, reason: String) {
        self.current = None;
        self.last_end = reason;
        self.retry_at = now + RETRY;
    }

    /// Returns true if its connection has closed because it left, and not because its messages took too long.
    pub(crate) fn has_left_in_time(&mut self, now: Instant, reason: DisconnectReason) -> bool {
        let limit = self.host.peer.config().close_timeout;
        let left_at = self.left_at.take().filter(|_| reason == DisconnectReason::Local);
        left_at.is_some_and(|left_at| self.host.clock(now) < left_at + limit)
    }

    /// Restores the link conditions and the maximum datagram length of the plan.
    pub(crate) fn restore(&mut self) {
        self.up.set_conditions(self.plan.conditions);
        self.down.set_conditions(self.plan.conditions);
        self.path = self.plan.path;
    }

    /// Drops the connection to the relay; the client opens another one at `until`.
    pub(crate) fn lose_carrier(&mut self, until: Instant) {
        self.carrier = Carrier::Down { until };
        self.generation = self.generation.wrapping_add(1);
        self.up.clear();
        self.down.clear();
    }
}

/// Returns a router address that is unique to the client and the number.
fn router_address(client: u8, number: u8) -> IpAddr {
    Ipv4Addr::new(203, 0, number, client).into()
}

/// Returns the number of the client behind the router that has or had this address.
pub(crate) fn client_of(address: SocketAddr) -> Option<usize> {
    match address.ip() {
        IpAddr::V4(ip) if ip.octets()[..2] == [203, 0] => Some(ip.octets()[3].into()),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}
