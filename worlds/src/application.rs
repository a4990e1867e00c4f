//! The applications of clients and server: they connect, send messages, and check received messages.

use rakwire::raknet::ConnectionId;

use crate::client::{Carrier, Current, RETRY};
use crate::flow::{FromClient, TransportLimits};
use crate::plan::Route;
use crate::plant::Plant;
use crate::traffic::{Attempt, Happening, Received, split, take_events};
use crate::world::{Phase, World};
use crate::{Kept, peers};

/// The interval of planted faults, in messages that the server receives.
const PLANTED: u64 = 40;

impl World {
    /// Handles the due timeouts of all peers, the relay and the front.
    pub(crate) fn handle_timeouts(&mut self) {
        for client in self.clients.iter_mut().flatten() {
            client.host.handle_timeout(self.now);
        }
        if self.server_is_down_until.is_none() {
            self.server.handle_timeout(self.now);
        }
        self.relay.handle_timeout(self.now);
        self.front.handle_timeout(self.now);
    }

    /// Opens the connections of pages to the relay that are due to be reopened.
    pub(crate) fn open_carriers(&mut self) -> Kept {
        for number in 0..self.clients.len() {
            let Some(client) = self.clients[number].as_mut().filter(|client| client.is_relayed()) else {
                continue;
            };
            let is_due = matches!(client.carrier, Carrier::Down { until } if until <= self.now);
            if !is_due || self.phase == Phase::Closing {
                continue;
            }
            let is_stream = client.plan.route == Route::RelayStream;
            let longest = (!is_stream).then_some(client.plan.path);
            let limits = TransportLimits {
                max_datagram: longest,
                max_unfragmented: longest,
                has_control_datagrams: false,
            };
            let page = (number, client.generation);
            let (port, ticket) = self.relay.attach(self.now, page, client.ticket, limits)?;
            client.carrier = Carrier::Up { port };
            client.ticket = Some(ticket);
        }
        Ok(())
    }

    /// Connects the clients that have no connection.
    pub(crate) fn connect(&mut self) {
        if self.phase == Phase::Closing {
            return;
        }
        for client in self.clients.iter_mut().flatten() {
            let waits = client.retry_at.max(client.away_until) > self.now || client.host.is_stalled(self.now);
            if client.current.is_some() || waits {
                continue;
            }
            let (clock, remote) = (client.host.clock(self.now), client.remote());
            let options = peers::options(&self.plan);
            // The attempt fails while the client's last connection still occupies its only slot.
            if let Ok(id) = client.host.peer.connect_with(clock, remote, &options) {
                let attempt = self.attempts.len();
                self.attempts.push(Attempt::new((self.first_attempt + attempt) as u32));
                client.current = Some(Current { attempt, id, is_open: false });
            } else {
                client.retry_at = self.now + RETRY;
            }
        }
    }

    /// Sends messages on all open connections, in both directions.
    pub(crate) fn send(&mut self) -> Kept {
        let (now, phase) = (self.now, self.phase);
        for client in self.clients.iter_mut().flatten() {
            let Some(current) = client.current.filter(|current| current.is_open) else { continue };
            if client.host.is_stalled(now) {
                continue;
            }
            let attempt = &mut self.attempts[current.attempt];
            if phase == Phase::Active && attempt.has_little_room() {
                client.leave(now, RETRY);
                continue;
            }
            let (clock, to) = (client.host.clock(now), (current.id, attempt.number()));
            let amount = (client.plan.messages, client.plan.longest);
            if sends(phase, client.sends_much()) {
                attempt.up.send(&mut client.host.peer, clock, to, &mut client.random, amount)?;
            } else if phase != Phase::Closing {
                attempt.up.send_final(&mut client.host.peer, clock, to)?;
            }
            let Some(server_side) = attempt.server_side else { continue };
            if self.server.is_stalled(now) {
                continue;
            }
            let (clock, to) = (self.server.clock(now), (server_side, attempt.number()));
            if sends(phase, client.sends_much()) {
                attempt.down.send(&mut self.server.peer, clock, to, &mut client.random, amount)?;
            } else if phase != Phase::Closing {
                attempt.down.send_final(&mut self.server.peer, clock, to)?;
            }
        }
        Ok(())
    }

    /// Handles the events of all peers.
    pub(crate) fn handle_events(&mut self) -> Kept {
        for number in 0..self.clients.len() {
            self.handle_client_events(number)?;
        }
        if self.server_is_down_until.is_none() && !self.server.is_stalled(self.now) {
            for event in take_events(&mut self.server.peer) {
                self.handle_server_event(event)?;
            }
        }
        Ok(())
    }

    fn handle_client_events(&mut self, number: usize) -> Kept {
        let Some(client) = self.clients[number].as_mut() else { return Ok(()) };
        if client.host.is_stalled(self.now) {
            return Ok(());
        }
        for event in take_events(&mut client.host.peer) {
            match event {
                Happening::Connected(id) => {
                    let current = client.current.as_mut().filter(|current| current.id == id);
                    current.ok_or("a client reports a connection that it did not request")?.is_open = true;
                }
                Happening::Failed(reason) => client.lose_connection(self.now, reason),
                Happening::Ended(_, reason) => {
                    let attempt = client.current.map(|current| current.attempt);
                    let is_complete = client.has_left_in_time(self.now, reason);
                    client.lose_connection(self.now, reason.to_string());
                    if let Some(attempt) = attempt.filter(|_| is_complete) {
                        self.attempts[attempt].up.check_delivered()?;
                    }
                }
                Happening::Message(id, message) => {
                    let current = client.current.filter(|current| current.id == id && current.is_open);
                    let current = current.ok_or("a message arrived at a client without a connection")?;
                    let attempt = &mut self.attempts[current.attempt];
                    attempt.down.arrive(attempt.number(), &message)?;
                }
            }
        }
        Ok(())
    }

    fn handle_server_event(&mut self, event: Happening) -> Kept {
        match event {
            Happening::Connected(id) => {
                self.server_connections.insert(id, None);
                Ok(())
            }
            Happening::Ended(id, _) => {
                if let Some(attempt) = self.server_connections.remove(&id).flatten() {
                    self.attempts[attempt].server_side = None;
                }
                Ok(())
            }
            Happening::Failed(_) => {
                Err("the server reports a failed attempt, but it never connects".to_owned())
            }
            Happening::Message(id, message) => self.handle_message_with_plant(id, message),
        }
    }

    /// Delivers a message to the server's application, unless a planted fault prevents it.
    fn handle_message_with_plant(&mut self, id: ConnectionId, mut message: Received) -> Kept {
        self.received += 1;
        if self.plant == Some(Plant::LosesLastMessages) && self.is_of_leaving_client(&message) {
            return Ok(());
        }
        let is_chosen = self.received.is_multiple_of(PLANTED);
        match self.plant.filter(|_| is_chosen) {
            Some(Plant::LosesMessage) => return Ok(()),
            Some(Plant::DoublesMessage) => self.handle_message(id, &message)?,
            Some(Plant::ChangesByte) => {
                if let Some(byte) = message.bytes.last_mut() {
                    *byte ^= 1;
                }
            }
            Some(Plant::SwapsMessages) if self.held.is_none() => {
                self.held = Some((id, message));
                return Ok(());
            }
            _ => {}
        }
        self.handle_message(id, &message)?;
        match self.held.take_if(|(held, _)| *held == id) {
            Some((_, held)) => self.handle_message(id, &held),
            None => Ok(()),
        }
    }

    /// Returns true if a message is from a client that has called `disconnect`, while its connection is still closing.
    fn is_of_leaving_client(&self, message: &Received) -> bool {
        let attempt = split(&message.bytes).map(|(of, _)| (of as usize).wrapping_sub(self.first_attempt));
        let mut leaving = self.clients.iter().flatten().filter(|client| client.left_at.is_some());
        leaving.any(|client| client.current.map(|current| current.attempt) == attempt)
    }

    fn handle_message(&mut self, id: ConnectionId, message: &Received) -> Kept {
        let entry = self
            .server_connections
            .get_mut(&id)
            .ok_or("a message arrived on an unknown connection of the server")?;
        let attempt = match *entry {
            Some(attempt) => attempt,
            None => {
                let (of, _) = split(&message.bytes).ok_or("a message arrived that was never sent")?;
                let attempt = (of as usize).wrapping_sub(self.first_attempt);
                let known =
                    self.attempts.get_mut(attempt).ok_or("a message of an unknown attempt arrived")?;
                if known.was_reached {
                    return Err(format!("attempt {of} has a second connection at the server"));
                }
                (known.server_side, known.was_reached) = (Some(id), true);
                *entry = Some(attempt);
                attempt
            }
        };
        let attempt = &mut self.attempts[attempt];
        attempt.up.arrive(attempt.number(), message)
    }

    /// Disconnects all clients from the server.
    pub(crate) fn disconnect_all(&mut self) {
        for client in self.clients.iter_mut().flatten() {
            if self.plant != Some(Plant::KeepsConnection) {
                client.disconnect(self.now);
            }
        }
    }

    /// In the closing phase, disconnects pages from the relay once their connection to the server is closed.
    pub(crate) fn close_carriers(&mut self) {
        if self.phase != Phase::Closing {
            return;
        }
        for client in self.clients.iter_mut().flatten() {
            if let Carrier::Up { port } = client.carrier
                && client.host.peer.connections().next().is_none()
            {
                self.relay.handle_client(self.now, port, FromClient::Closed);
                client.carrier = Carrier::Down { until: self.now };
            }
        }
    }
}

/// Returns true if a client sends messages in this phase.
const fn sends(phase: Phase, sends_much: bool) -> bool {
    match phase {
        Phase::Active => true,
        Phase::Settling { others_are_done } => sends_much && !others_are_done,
        Phase::Closing => false,
    }
}
