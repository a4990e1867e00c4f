//! Rekeying of secure connections (docs/secure.md#rekeying).

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::raknet::{ConnectionId, Delivery, DropReason, Event, Peer};
use rakwire::sim::{Conditions, Pair};
use rakwire::{Instant, Machine, Transmit};

use crate::support::raknet::peer;
use crate::support::secure::{client_key, pinned, requiring_server, secure_client};

const TEN_MINUTES: Duration = Duration::from_secs(600);
const BETWEEN_MESSAGES: Duration = Duration::from_millis(250);

/// A peer that records the low two bits of each epoch in which it sends, oldest first.
struct Recorded {
    peer: Peer<'static>,
    epochs: Vec<u8>,
    received: Vec<u32>,
    opened: Option<ConnectionId>,
    unauthentic: u64,
}

impl Recorded {
    fn new(peer: Peer<'static>) -> Self {
        Self { peer, epochs: Vec::new(), received: Vec::new(), opened: None, unauthentic: 0 }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.peer.poll_event() {
            if let Event::Connected { id, .. } = event {
                self.opened = Some(id);
            } else if let Event::Message { message, .. } = event {
                let bytes = message.to_vec();
                let number = bytes.get(1..5).and_then(|number| number.try_into().ok());
                self.received.push(u32::from_be_bytes(number.expect("five bytes")));
            } else {
                panic!("{event:?}");
            }
        }
    }

    fn send(&mut self, now: Instant, number: u32) {
        let Some(id) = self.opened else { return };
        let message = [&[0x86][..], &number.to_be_bytes()].concat();
        self.peer.send(now, id, &message, Delivery::RELIABLE_ORDERED).expect("an open connection");
    }
}

impl Machine for Recorded {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.peer.handle_datagram(now, from, datagram);
        self.unauthentic = self.peer.stats().dropped(DropReason::Unauthentic);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
    }

    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        let transmit = self.peer.poll_transmit(now, buffer)?;
        let first = transmit.payload.first().copied().unwrap_or(0);
        let epoch = first >> 5 & 3;
        if first & 0x80 != 0 && self.epochs.last() != Some(&epoch) {
            self.epochs.push(epoch);
        }
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.peer.poll_timeout()
    }
}

/// Executes the next event before `end`, or advances to `end`.
fn step_until(pair: &mut Pair<Recorded, Recorded>, end: Instant) {
    pair.transmit();
    let links = [pair.forth().next_arrival(), pair.back().next_arrival()];
    let timeouts = [pair.a.poll_timeout(), pair.b.poll_timeout()];
    let next = links.into_iter().chain(timeouts).flatten().min();
    if next.is_none_or(|next| next > end) {
        pair.now = end;
    } else {
        pair.step();
    }
    pair.a.take_events();
    pair.b.take_events();
}

#[test]
fn keys_change_in_both_directions_despite_loss() {
    for (seed, has_identity) in [(1, false), (2, true)] {
        let conditions =
            Conditions { loss: 0.1, latency: Duration::from_millis(20), ..Conditions::default() };
        let client = Recorded::new(peer(secure_client(has_identity.then(client_key))));
        let server = Recorded::new(peer(requiring_server()));
        let mut pair = Pair::new(client, server, conditions, seed);
        let to = pair.b_address;
        pair.a.peer.connect_with(pair.now, to, &pinned()).expect("a free slot");
        let (end, mut next, mut sent) = (pair.now + TEN_MINUTES, pair.now, 0);
        while pair.now < end {
            step_until(&mut pair, next);
            if pair.now >= next {
                next = pair.now + BETWEEN_MESSAGES;
                let is_open = pair.a.opened.is_some() && pair.b.opened.is_some();
                if is_open {
                    pair.a.send(pair.now, sent);
                    pair.b.send(pair.now, sent);
                    sent += 1;
                }
            }
        }
        for end in [&pair.a, &pair.b] {
            let expected = (0..end.received.len() as u32).collect::<Vec<_>>();
            assert_eq!(end.received, expected, "seed {seed}: each message must arrive once, in order");
            assert!(
                sent > 2_000 && sent - (end.received.len() as u32) < 20,
                "seed {seed}: {sent} messages sent"
            );
            assert!(end.epochs.windows(2).all(|two| two[1] == (two[0] + 1) % 4), "{:?}", end.epochs);
            // The keys change every two minutes, and once more at the beginning if the client has an identity.
            let changes = end.epochs.len() - usize::from(has_identity);
            assert!((4..=6).contains(&changes), "seed {seed}: {:?}", end.epochs);
            assert_eq!(end.unauthentic, 0, "seed {seed}");
        }
        assert!(pair.a.epochs.len().abs_diff(pair.b.epochs.len()) <= 1, "seed {seed}");
    }
}
