//! The full mesh: determines the peers to connect to, and the member that is the host.

use core::net::SocketAddr;
use core::time::Duration;

use heapless::Vec;
use rakwire::endpoint::{BySlot, ConnectionId, MessageIds, MessageSender, Plugin, Side, Verdict};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire::{Chunks, Instant};

use super::graph::{ConnectionGraph, GRAPH_IDS};
use super::membership::{Membership, Rank};
use super::targets::{Target, Targets};
use super::wire::{Announcement, MAX_LENGTH, MAX_PEERS, MEMBER_ID};
use crate::bytes;

/// The minimum interval between two announcements, regardless of how often other members announce changes.
const PAUSE: Duration = Duration::from_millis(50);

/// The maximum number of scans for unconnected members per [`CHECK_PERIOD`]. A scan compares all pairs of members,
/// and every message from a member may require a scan.
const CHECKS: u8 = 5;
const CHECK_PERIOD: Duration = Duration::from_millis(100);

/// The progress of connecting to all other members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinStatus {
    /// This peer has no connections.
    Alone,
    /// Another member reports a connection to a member that this peer is not connected to yet.
    Joining,
    /// This peer is connected to every known member.
    Complete,
    /// This peer is connected to every known member except those that it could not reach in time.
    Partial,
}

/// Counters of the mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshStats {
    /// Announcements that are malformed or list more members than fit.
    pub malformed: u64,
    /// Members announced by others that are ignored because the plugin has no capacity for them.
    pub dropped: u64,
    /// Connections that are ignored because the plugin has fewer slots than the peer has connections.
    pub over_capacity: u64,
}

#[derive(Debug)]
struct Member<const PEERS: usize> {
    guid: Guid,
    announcement: Option<Announcement<PEERS>>,
    is_announcement_due: bool,
}

/// The mesh plugin for up to `PEERS` other members.
///
/// `PEERS` is the number of connections that the peer can have, at most 64. All members should use the same number. The
/// module documentation has an example.
#[derive(Debug)]
pub struct Mesh<const PEERS: usize> {
    own: Guid,
    graph: ConnectionGraph<PEERS>,
    members: BySlot<Member<PEERS>, PEERS>,
    targets: Targets<PEERS>,
    membership: Option<Membership>,
    is_creating: bool,
    is_leaving: bool,
    reported_host: Option<Guid>,
    next_announcement: Instant,
    /// The time of the next scan for unconnected members, if an announcement has changed since the last scan.
    check_at: Option<Instant>,
    /// The remaining scans in the current period, and the end of the period.
    looks: (u8, Instant),
    stats: MeshStats,
}

impl<const PEERS: usize> Mesh<PEERS> {
    /// Creates a mesh that consists of this peer alone. `own` is the GUID in its configuration.
    #[must_use]
    pub const fn new(own: Guid) -> Self {
        const { assert!(PEERS <= MAX_PEERS, "PEERS must be at most 64") };
        Self {
            own,
            graph: ConnectionGraph::new(),
            members: BySlot::new(),
            targets: Targets::new(),
            membership: None,
            is_creating: false,
            is_leaving: false,
            reported_host: None,
            next_announcement: Instant::ZERO,
            check_at: None,
            looks: (0, Instant::ZERO),
            stats: MeshStats { malformed: 0, dropped: 0, over_capacity: 0 },
        }
    }

    /// Makes this peer a member immediately. It is the host until it meets a member that joined earlier.
    ///
    /// Without this call, the peer becomes a member when it meets the first other member.
    pub const fn create(&mut self) {
        self.is_creating = true;
    }

    /// Returns the graph of known connections.
    #[must_use]
    pub const fn graph(&self) -> &ConnectionGraph<PEERS> {
        &self.graph
    }

    /// Returns the next peer to which the application should connect.
    ///
    /// The mesh observes the outcome of the attempt itself. If the attempt fails, the mesh returns the peer again,
    /// with another address if other members report several.
    pub fn poll_connect(&mut self) -> Option<Target> {
        let (target, attempts) = self.targets.poll_due().filter(|_| !self.is_leaving)?;
        let addresses =
            || self.graph.remotes().filter(|remote| remote.guid == target.guid).map(|remote| remote.address);
        let nth = attempts.checked_rem(addresses().count()).unwrap_or(0);
        Some(Target { address: addresses().nth(nth).unwrap_or(target.address), ..target })
    }

    /// Stops returning peers from `poll_connect`. Call it before disconnecting from all members, because the
    /// mesh would otherwise reconnect.
    pub const fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Returns the host: the longest-connected member among this peer, its neighbours and their neighbours.
    /// Returns `None` before this peer is a member.
    #[must_use]
    pub fn host(&self) -> Option<Guid> {
        let own = Rank { joined: self.membership.as_ref()?.joined, guid: self.own };
        let members = self.members.iter().filter_map(|(_, member)| member.announcement.as_ref());
        let others = members
            .filter(|announcement| announcement.joined.is_some())
            .flat_map(|announcement| &announcement.neighbours);
        let announced_only =
            others.filter(|rank| rank.guid != self.own && !self.is_member(rank.guid)).copied();
        self.ranks().chain(announced_only).chain([own]).min().map(|rank| rank.guid)
    }

    /// Returns the host if it has changed since the last call.
    pub fn poll_host(&mut self) -> Option<Guid> {
        let host = self.host()?;
        (self.reported_host.replace(host) != Some(host)).then_some(host)
    }

    /// Returns true if this peer is the host.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.host() == Some(self.own)
    }

    /// Returns how long this peer has been a member.
    #[must_use]
    pub fn connected_time(&self, now: Instant) -> Option<Duration> {
        self.membership.map(|membership| membership.age(now))
    }

    /// Returns the progress of connecting to all members.
    #[must_use]
    pub fn join_status(&self) -> JoinStatus {
        let mut missing = self.targets.reported().peekable();
        if self.members.is_empty() {
            JoinStatus::Alone
        } else if missing.peek().is_none() {
            JoinStatus::Complete
        } else if missing.all(|(_, is_out_of_reach)| is_out_of_reach) {
            JoinStatus::Partial
        } else {
            JoinStatus::Joining
        }
    }

    /// Returns the next member that this peer could not reach in time although another member is connected to it.
    /// Each such member is returned once.
    pub fn poll_unreachable(&mut self) -> Option<Guid> {
        self.targets.poll_unreachable()
    }

    /// Returns the pairs of members without a connection between them, including pairs with this peer and
    /// pairs that may still connect.
    pub fn missing_pairs(&self) -> impl Iterator<Item = (Guid, Guid)> {
        let own = self.targets.reported().map(|(guid, _)| (self.own, guid));
        let members = || self.graph.peers().map(|(guid, _)| guid).filter(|guid| self.is_member(*guid));
        let others = members().flat_map(move |a| members().filter(move |b| a < *b).map(move |b| (a, b)));
        own.chain(others.filter(|(a, b)| !self.graph.are_connected(*a, *b)))
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> MeshStats {
        self.stats
    }

    fn is_member(&self, guid: Guid) -> bool {
        self.members.iter().any(|(_, member)| member.guid == guid && member.announcement.is_some())
    }

    /// Returns the connected members.
    fn ranks(&self) -> impl Iterator<Item = Rank> {
        self.members.iter().filter_map(|(_, member)| {
            let (_, joined) = member.announcement.as_ref()?.joined?;
            Some(Rank { joined, guid: member.guid })
        })
    }

    fn announce_again(&mut self) {
        self.members.iter_mut().for_each(|(_, member)| member.is_announcement_due = true);
    }

    fn receive(&mut self, now: Instant, from: ConnectionId, message: &dyn Chunks) {
        let mut buffer = [0; MAX_LENGTH];
        let announcement =
            bytes::copy(message, &mut buffer).and_then(|bytes| Announcement::decode(bytes).ok());
        let Some(mut announcement) = announcement else {
            self.stats.malformed = self.stats.malformed.saturating_add(1);
            return;
        };
        let Some(guid) = self.members.get(from).map(|member| member.guid) else { return };
        self.merge_epoch(now, guid, &announcement);
        if let (Some(membership), Some((epoch, _))) = (&self.membership, announcement.joined)
            && epoch.founder != membership.founder
        {
            announcement.move_to(membership.epoch(now), membership.now(now).saturating_sub(epoch.now));
        }
        let Some(member) = self.members.get_mut(from) else { return };
        let place = |announcement: &Announcement<PEERS>| announcement.joined.map(|(_, joined)| joined);
        let is_moved = member.announcement.as_ref().and_then(place) != place(&announcement);
        member.announcement = Some(announcement);
        if is_moved {
            self.announce_again();
        }
        self.check_soon(now);
    }

    /// Adopts the epoch of another member if the founder of that epoch has a lower GUID than the founder of the own
    /// epoch. If neither peer is a member yet, the peer with the lower GUID starts an epoch.
    fn merge_epoch(&mut self, now: Instant, from: Guid, announcement: &Announcement<PEERS>) {
        let membership = match (self.membership, announcement.joined) {
            (None, None) if self.own < from => Membership::founder(now, self.own),
            (None, Some((epoch, _))) => Membership::join(now, epoch),
            (Some(before), Some((epoch, _))) if epoch.founder < before.founder => before.move_to(now, epoch),
            _ => return,
        };
        if let Some(before) = self.membership.replace(membership) {
            // Shifting all known members by the same amount keeps their order.
            let by = membership.joined.saturating_sub(before.joined);
            let members = self.members.iter_mut().filter_map(|(_, member)| member.announcement.as_mut());
            members.for_each(|announcement| announcement.move_to(membership.epoch(now), by));
        }
        self.announce_again();
    }

    /// Scans for unconnected members immediately, or later if this period has no scans left.
    fn check_soon(&mut self, now: Instant) {
        if now >= self.looks.1 {
            self.looks = (CHECKS, now + CHECK_PERIOD);
        }
        let (left, until) = &mut self.looks;
        if *left == 0 {
            self.check_at = Some(*until);
            return;
        }
        *left -= 1;
        self.check_at = None;
        self.look_for_peers(now);
    }

    /// Records the members to which other members are connected and this peer is not. Peers that are not members,
    /// such as clients and web pages, are ignored, because they may not accept connections.
    fn look_for_peers(&mut self, now: Instant) {
        let address =
            |guid| self.graph.remotes().find(|remote| remote.guid == guid).map(|remote| remote.address);
        for guid in announced(&self.members) {
            if guid == self.own || guid == Guid::UNASSIGNED || self.graph.is_connected(guid) {
                continue;
            }
            let Some(address) = address(guid) else { continue };
            let is_kept = self.targets.learn(now, self.own, Target { address, guid });
            self.stats.dropped = self.stats.dropped.saturating_add(u64::from(!is_kept));
        }
        self.targets.report(now, |guid| {
            address(guid).is_some() && announced(&self.members).any(|named| named == guid)
        });
    }

    fn announcement(&self, now: Instant) -> Announcement<PEERS> {
        let mut neighbours = Vec::new();
        let Some(membership) = &self.membership else { return Announcement { joined: None, neighbours } };
        neighbours.extend(self.ranks());
        Announcement { joined: Some((membership.epoch(now), membership.joined)), neighbours }
    }

    fn announce(&mut self, now: Instant, sender: &mut dyn MessageSender<RakNet>) {
        let mut buffer = [0; MAX_LENGTH];
        let Ok(bytes) = self.announcement(now).encode(&mut buffer) else { return };
        for (id, member) in self.members.iter_mut().filter(|(_, member)| member.is_announcement_due) {
            member.is_announcement_due = sender.send(id, bytes, Delivery::RELIABLE_ORDERED).is_err();
        }
        self.next_announcement = now + PAUSE;
    }
}

/// Returns the members that other members list.
fn announced<const PEERS: usize>(members: &BySlot<Member<PEERS>, PEERS>) -> impl Iterator<Item = Guid> {
    let announcements = members.iter().filter_map(|(_, member)| member.announcement.as_ref());
    announcements.flat_map(|announcement| &announcement.neighbours).map(|rank| rank.guid)
}

impl<const PEERS: usize> Plugin<RakNet> for Mesh<PEERS> {
    fn message_ids(&self) -> MessageIds {
        let mut ids = MessageIds::of(&GRAPH_IDS);
        ids.insert(MEMBER_ID);
        ids
    }

    fn on_connected(&mut self, now: Instant, id: ConnectionId, remote: SocketAddr, guid: Guid, side: Side) {
        let member = Member { guid, announcement: None, is_announcement_due: true };
        if self.members.get(id).is_none() && !self.members.insert(id, member) {
            self.stats.over_capacity = self.stats.over_capacity.saturating_add(1);
        }
        self.graph.on_connected(now, id, remote, guid, side);
        self.targets.remove(guid);
        self.check_soon(now);
    }

    fn on_disconnected(&mut self, now: Instant, id: ConnectionId, reason: DisconnectReason) {
        let member = self.members.get(id).filter(|member| member.announcement.is_some());
        let address = member.and_then(|member| self.graph.peers().find(|(guid, _)| member.guid == *guid));
        self.graph.on_disconnected(now, id, reason);
        if self.members.remove(id).is_some() {
            self.announce_again();
        }
        if let Some((guid, address)) = address.filter(|(guid, _)| !self.graph.is_connected(*guid)) {
            let is_lost = !matches!(reason, DisconnectReason::Local | DisconnectReason::Remote);
            self.targets.on_disconnected(now, self.own, Target { address, guid }, is_lost);
        }
        self.check_soon(now);
    }

    fn on_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        _delivery: Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        if bytes::first(message) == Some([MEMBER_ID]) {
            self.receive(now, id, message);
        } else {
            if let Some(left) = self.graph.receive(id, message) {
                self.targets.on_left(left);
            }
            self.check_soon(now);
        }
        Verdict::Drop
    }

    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<RakNet>) {
        if core::mem::take(&mut self.is_creating) && self.membership.is_none() {
            self.membership = Some(Membership::founder(now, self.own));
            self.announce_again();
        }
        if self.check_at.is_some_and(|at| at <= now) {
            self.check_soon(now);
        }
        self.targets.update(now);
        self.graph.update(now, sender);
        if now >= self.next_announcement && self.members.iter().any(|(_, member)| member.is_announcement_due)
        {
            self.announce(now, sender);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.is_creating {
            return Some(Instant::ZERO);
        }
        let is_announcement_due = self.members.iter().any(|(_, member)| member.is_announcement_due);
        let announcement = is_announcement_due.then_some(self.next_announcement);
        let graph = Plugin::<RakNet>::poll_timeout(&self.graph);
        [announcement, self.check_at, self.targets.poll_timeout(), graph].into_iter().flatten().min()
    }
}
