//! A server that forwards the messages of each player to all others, and its console commands.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rakwire_native::{AddressPattern, Connection, Delivery, Endpoint, Message, id};

const HELP: &str = "list               the players
stats              the counters of the server
kick NUMBER        disconnects a player
ban PATTERN [S]    for S seconds or forever: 192.0.2.1, 192.0.2.* or 2001:db8::/32; disconnects matching players
unban PATTERN      lifts the ban of exactly this pattern
bans               lists the bans
say TEXT           sends TEXT to all players
quit               disconnects all players and exits";

/// The first byte of messages from the console.
const SAY: u8 = id::USER;

/// State shared by the accept task, the tasks of the players and the console.
pub(crate) struct Server {
    endpoint: Endpoint,
    players: Mutex<BTreeMap<u32, Connection>>,
}

impl Server {
    pub(crate) const fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, players: Mutex::new(BTreeMap::new()) }
    }

    /// Accepts players until the endpoint is closed.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut next = 1;
        while let Some(connection) = self.endpoint.accept().await {
            let (server, number) = (Arc::clone(&self), next);
            next += 1;
            server.with_players(|players| players.insert(number, connection.clone()));
            tokio::spawn(async move {
                while let Some(message) = connection.recv().await {
                    server.pass_on(number, &message);
                }
                server.with_players(|players| players.remove(&number));
            });
        }
    }

    pub(crate) async fn close(&self) {
        self.endpoint.close().await;
    }

    /// Calls `change` with the players. The lock is never held across an await.
    fn with_players<R>(&self, change: impl FnOnce(&mut BTreeMap<u32, Connection>) -> R) -> R {
        change(&mut self.players.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn players(&self) -> Vec<(u32, Connection)> {
        self.with_players(|players| {
            players.iter().map(|(number, connection)| (*number, connection.clone())).collect()
        })
    }

    /// Forwards a message to all players but its sender. A player with a full send queue does not get it.
    fn pass_on(&self, from: u32, message: &Message) {
        for (number, connection) in self.players() {
            if number != from {
                let _ = connection.try_send(&message.bytes, message.delivery);
            }
        }
    }

    /// Executes a console command; `None` ends the server.
    pub(crate) async fn command(&self, line: &str) -> Option<String> {
        let line = line.trim();
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let answer = match name {
            "quit" => return None,
            "list" => self.list(),
            "stats" => self.stats(),
            "kick" => self.kick(rest).await,
            "ban" => self.ban(rest).await,
            "unban" => self.unban(rest),
            "bans" => self.bans(),
            "say" => self.say(rest),
            "" | "help" => HELP.to_owned(),
            _ => format!("unknown command {name:?}\n{HELP}"),
        };
        Some(answer)
    }

    fn list(&self) -> String {
        let players = self.players();
        let lines = players.iter().map(|(number, connection)| {
            let rest = connection.stats().map_or_else(
                || "leaving".to_owned(),
                |stats| {
                    let (ping, lost) = (stats.round_trip.as_millis(), stats.datagrams_missing());
                    let (sent, received) = (stats.messages_sent, stats.messages_received);
                    format!("{ping} ms, {received} messages received, {sent} sent, {lost} datagrams lost")
                },
            );
            format!("{number}: {}, {rest}", connection.remote())
        });
        or_none(lines.collect())
    }

    fn stats(&self) -> String {
        let stats = self.endpoint.stats();
        let peer = &stats.peer;
        let used = stats.blocks - stats.blocks_available;
        format!(
            "{} connections, {} datagrams received and {} sent, {used} of {} blocks in use",
            stats.connections, peer.datagrams_received, peer.datagrams_sent, stats.blocks
        )
    }

    async fn kick(&self, number: &str) -> String {
        let player =
            number.parse().ok().and_then(|number| self.with_players(|players| players.get(&number).cloned()));
        match player {
            Some(player) => {
                player.disconnect().await;
                format!("{number} has left")
            }
            None => format!("no player {number:?}; use list to see their numbers"),
        }
    }

    async fn ban(&self, rest: &str) -> String {
        let (pattern, seconds) =
            rest.split_once(' ').map_or((rest, None), |(pattern, time)| (pattern, Some(time)));
        let Ok(pattern) = pattern.parse::<AddressPattern>() else {
            return format!("{pattern:?} is not an address pattern");
        };
        let time = match seconds.map(|seconds| seconds.trim().parse().map(Duration::from_secs)).transpose() {
            Ok(time) => time,
            Err(error) => return format!("the time must be a number of seconds: {error}"),
        };
        if let Err(error) = self.endpoint.ban(pattern, time) {
            return error.to_string();
        }
        // A ban affects new connections only, so players that are connected must be disconnected.
        let mut left = 0;
        for (_, connection) in self.players() {
            if pattern.matches(connection.remote().ip()) {
                connection.disconnect().await;
                left += 1;
            }
        }
        format!("{pattern} is banned; players disconnected: {left}")
    }

    fn unban(&self, pattern: &str) -> String {
        let lifted = pattern.parse().is_ok_and(|pattern| self.endpoint.unban(pattern));
        if lifted { format!("{pattern} is no longer banned") } else { format!("{pattern:?} was not banned") }
    }

    fn bans(&self) -> String {
        let bans = self.endpoint.bans();
        let lines = bans.iter().map(|(pattern, left)| match left {
            Some(left) => format!("{pattern} for another {} s", left.as_secs()),
            None => pattern.to_string(),
        });
        or_none(lines.collect())
    }

    fn say(&self, text: &str) -> String {
        let message = [&[SAY], text.as_bytes()].concat();
        let players = self.players();
        let sent = players
            .iter()
            .filter(|(_, player)| player.try_send(&message, Delivery::RELIABLE_ORDERED).is_ok());
        format!("sent to {} of {} players", sent.count(), players.len())
    }
}

fn or_none(lines: Vec<String>) -> String {
    if lines.is_empty() { "none".to_owned() } else { lines.join("\n") }
}
