//! Generates random scripts, reproducibly from a seed.

use std::fmt::Write as _;

/// A generator of random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let length = u64::try_from(all.len()).unwrap_or(1);
        &all[usize::try_from(self.below(length)).unwrap_or(0)]
    }
}

const NETWORKS: [&str; 6] = [
    "",
    "network delay 15",
    "network loss 0.05 delay 5",
    "network loss 0.1 reorder 0.1 delay 10",
    "network duplicate 0.2 delay 5",
    "network loss 0.03 duplicate 0.05 reorder 0.1 delay 10 jitter 5",
];

/// The state of a client while a script is generated.
struct Client {
    name: &'static str,
    is_connected: bool,
}

/// A script that is being generated.
struct Draft {
    random: Random,
    text: String,
    clients: Vec<Client>,
    has_password: bool,
    /// The number of messages that are guaranteed to reach the server.
    to_server: u64,
    /// The number of messages that are guaranteed to reach each client.
    to_client: [u64; 3],
}

/// Generates a random script.
///
/// A wait precedes each call with a result that depends on earlier calls. Every event that the script waits for occurs
/// with every library, unless a rule (README, Rules) permits its absence.
#[must_use]
pub fn script(seed: u64) -> String {
    let mut random = Random(seed);
    let names = ["b", "c", "d"];
    let count = 1 + usize::try_from(random.below(3)).unwrap_or(0);
    let clients = names[..count].iter().map(|name| Client { name, is_connected: false }).collect();
    let has_password = random.below(4) == 0;
    let text = format!("script random-{seed}\n{}\na start 8 8\n", random.one_of(&NETWORKS));
    let mut draft = Draft { random, text, clients, has_password, to_server: 0, to_client: [0; 3] };
    if has_password {
        draft.text.push_str("a password friends\n");
    }
    for client in 0..count {
        let name = draft.clients[client].name;
        draft.line(&format!("{name} start 1 0"));
        draft.connect(client);
    }
    for _ in 0..6 + draft.random.below(8) {
        draft.step();
    }
    draft.finish();
    draft.text
}

impl Draft {
    fn line(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn connect(&mut self, client: usize) {
        let name = self.clients[client].name;
        let password = if self.has_password { " password friends" } else { "" };
        self.line(&format!("{name} connect @a{password} attempts 20 interval 200"));
        self.line(&format!("wait {name} accepted a"));
        self.line(&format!("wait a incoming {name}"));
        self.clients[client].is_connected = true;
    }

    fn step(&mut self) {
        let count = u64::try_from(self.clients.len()).unwrap_or(1);
        let client = usize::try_from(self.random.below(count)).unwrap_or(0);
        let name = self.clients[client].name;
        if !self.clients[client].is_connected {
            self.line("settle 1200");
            return self.connect(client);
        }
        match self.random.below(12) {
            0..=3 => self.send(client, true),
            4..=6 => self.send(client, false),
            7 => self.broadcast(client),
            8 => {
                self.line(&format!("{name} ping @a"));
                self.line("settle 600");
            }
            9 => self.line(&format!("{name} out-of-band @a word")),
            10 => self.settled(|draft| {
                draft.line(&format!("a state @{name}"));
                draft.line(&format!("{name} state @a"));
            }),
            _ => self.close(client),
        }
    }

    /// Waits until all messages have arrived, and then adds calls with results that depend on this.
    fn settled(&mut self, calls: impl FnOnce(&mut Self)) {
        self.await_messages();
        calls(self);
    }

    fn await_messages(&mut self) {
        self.line(&format!("wait a messages {}", self.to_server));
        for client in 0..self.clients.len() {
            self.line(&format!("wait {} messages {}", self.clients[client].name, self.to_client[client]));
        }
        self.line("settle 500");
    }

    fn send(&mut self, client: usize, is_to_server: bool) {
        let name = self.clients[client].name;
        let (how, sure) = self.message();
        if is_to_server {
            self.line(&format!("{name} send @a {how}"));
            self.to_server += sure;
        } else {
            self.line(&format!("a send @{name} {how}"));
            self.to_client[client] += sure;
        }
    }

    fn broadcast(&mut self, client: usize) {
        let (how, sure) = self.message();
        let is_to_all = self.random.below(2) == 0;
        let name = self.clients[client].name;
        let except = if is_to_all { "-".to_owned() } else { format!("@{name}") };
        self.line(&format!("a broadcast {except} {how}"));
        for other in 0..self.clients.len() {
            if self.clients[other].is_connected && (is_to_all || other != client) {
                self.to_client[other] += sure;
            }
        }
    }

    /// Returns the reliability, channel, priority, size and count of a send, and the number of messages
    /// guaranteed to arrive.
    fn message(&mut self) -> (String, u64) {
        let reliability = self.random.below(5);
        let channel = *self.random.one_of(&[0, 0, 1, 7, 31]);
        let priority = self.random.below(4);
        let size = *self.random.one_of(&[7, 40, 300, 1_200, 1_450, 5_000, 30_000]);
        let count = 1 + self.random.below(if size > 2_000 { 3 } else { 25 });
        let sure = if reliability == 2 || reliability == 3 { count } else { 0 };
        (format!("{reliability} {channel} {priority} {size} {count}"), sure)
    }

    fn close(&mut self, client: usize) {
        let name = self.clients[client].name;
        self.await_messages();
        if self.random.below(2) == 0 {
            self.line(&format!("{name} close @a notify"));
        } else {
            self.line(&format!("a close @{name} notify"));
        }
        // Both sides report the disconnect. The closing side reports it later if an acknowledgement is lost.
        self.line(&format!("wait a disconnected {name}"));
        self.line(&format!("wait {name} disconnected a"));
        self.clients[client].is_connected = false;
    }

    fn finish(&mut self) {
        self.await_messages();
        self.line("settle 800");
        self.line("a list");
        for client in 0..self.clients.len() {
            self.line(&format!("{} list", self.clients[client].name));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::script::parse;

    #[test]
    fn generated_scripts_are_valid_and_reproducible() {
        for seed in 0..300 {
            let text = super::script(seed);
            let scripts = parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
            assert_eq!(scripts.len(), 1);
            assert!(scripts[0].steps.len() > 8, "{text}");
            assert_eq!(super::script(seed), text);
        }
    }
}
