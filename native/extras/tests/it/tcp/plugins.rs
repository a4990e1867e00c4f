//! Plugins on connections over TCP.

use std::collections::VecDeque;
use std::time::Duration;

use rakwire::endpoint::{ConnectionId, Injected, MessageIds, MessageSender, Plugin, Side, Verdict};
use rakwire::raknet::{DisconnectReason, Guid, RakNet};
use rakwire::{Chunks, Instant};
use rakwire_extras::tcp::{Connection, Framing, NoMessages, Options, PluginConnection, SendError};

use super::{ORDERED, Pair, soon};

const QUESTION: [u8; 2] = [0x85, 1];
const ANSWER: [u8; 2] = [0x85, 2];
const ANSWERED: [u8; 2] = [0x90, 1];

/// A plugin that sends questions, answers received questions, and passes received answers to the application.
#[derive(Debug, Default)]
struct Questions {
    unasked: usize,
    /// Number of bytes after each question.
    padding: usize,
    unanswered: usize,
    unannounced: VecDeque<ConnectionId>,
    /// The earliest time of the next question.
    not_before: Option<Instant>,
    /// The first byte of the application messages that the plugin drops.
    refused: Option<u8>,
    connected: Vec<(std::net::SocketAddr, Guid, Side)>,
    ended: Vec<DisconnectReason>,
}

impl Questions {
    fn send_all(sender: &mut dyn MessageSender<RakNet>, id: ConnectionId, message: &[u8], left: &mut usize) {
        while *left > 0 && sender.send(id, message, ORDERED).is_ok() {
            *left -= 1;
        }
    }
}

const HERE: ConnectionId = ConnectionId::without_peer(0);

impl Plugin<RakNet> for Questions {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&QUESTION[..1])
    }

    fn watches_all(&self) -> bool {
        self.refused.is_some()
    }

    fn on_connected(
        &mut self,
        now: Instant,
        id: ConnectionId,
        remote: std::net::SocketAddr,
        guid: Guid,
        side: Side,
    ) {
        assert_eq!(id, HERE);
        self.connected.push((remote, guid, side));
        self.not_before = self.not_before.map(|after| now + after.saturating_since(Instant::ZERO));
    }

    fn on_disconnected(&mut self, _: Instant, _: ConnectionId, reason: DisconnectReason) {
        self.ended.push(reason);
    }

    fn on_message(
        &mut self,
        _: Instant,
        id: ConnectionId,
        _: rakwire_native::Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        let (piece, _) = message.piece(rakwire::Piece::FIRST);
        match piece {
            [0x85, 1, ..] => self.unanswered += 1,
            [0x85, 2] => self.unannounced.push_back(id),
            _ => return Verdict::Pass,
        }
        Verdict::Drop
    }

    fn on_send(
        &mut self,
        _: Instant,
        _: ConnectionId,
        message: &[u8],
        _: rakwire_native::Delivery,
    ) -> Verdict {
        if message.first() == self.refused.as_ref() { Verdict::Drop } else { Verdict::Pass }
    }

    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, RakNet>) -> bool) {
        assert_eq!(of, Some(HERE));
        let Some(&id) = self.unannounced.front() else { return };
        if take(Injected { id, delivery: ORDERED, message: &ANSWERED }) {
            self.unannounced.pop_front();
        }
    }

    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<RakNet>) {
        let other = ConnectionId::without_peer(1);
        assert_eq!(sender.send(other, &ANSWER, ORDERED), Err(SendError::NotConnected));
        if self.not_before.is_none_or(|not_before| not_before <= now) {
            let question = [&QUESTION[..], &vec![0; self.padding]].concat();
            Self::send_all(sender, HERE, &question, &mut self.unasked);
        }
        Self::send_all(sender, HERE, &ANSWER, &mut self.unanswered);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let question = (self.unasked > 0).then_some(self.not_before.unwrap_or(Instant::ZERO));
        let answer = (self.unanswered > 0).then_some(Instant::ZERO);
        [question, answer].into_iter().flatten().min()
    }
}

type Attached = PluginConnection<Questions>;

fn attached(connection: &Connection, side: Side, plugin: Questions) -> Attached {
    PluginConnection::new(connection.clone(), side, plugin).expect("the connection has message framing")
}

/// Receives until the peer closes the connection, and counts the messages of the plugin.
async fn count_answers(connection: Attached) -> usize {
    let mut answers = 0;
    while let Some(message) = connection.recv().await {
        answers += usize::from(message.bytes == ANSWERED);
    }
    answers
}

#[tokio::test]
async fn plugin_messages_and_application_messages_are_separated() {
    let Pair { here, there, server, .. } = Pair::open(&Options::server(1)).await;
    let client = attached(&here, Side::Client, Questions::default());
    let answers = attached(&there, Side::Server, Questions::default());
    assert_eq!(
        client.with(|plugin| plugin.connected.clone()),
        [(server.local_addr(), Guid::UNASSIGNED, Side::Client)]
    );
    let receiving = tokio::spawn({
        let answers = answers.clone();
        async move { answers.recv().await.map(|message| message.bytes) }
    });
    client.with(|plugin| plugin.unasked = 3);
    for _ in 0..3 {
        assert_eq!(soon(client.recv()).await.expect("open").bytes, ANSWERED);
    }
    client.send(b"\x86hello", ORDERED).await.expect("open");
    assert_eq!(soon(receiving).await.expect("no panic").as_deref(), Some(&b"\x86hello"[..]));
    client.connection().disconnect().await;
    assert!(soon(answers.recv()).await.is_none() && soon(answers.recv()).await.is_none());
    assert_eq!(answers.with(|plugin| plugin.ended.clone()), [DisconnectReason::Remote]);
    assert!(soon(client.recv()).await.is_none());
    assert_eq!(client.with(|plugin| plugin.ended.clone()), [DisconnectReason::Local]);
}

/// Messages that a plugin cannot send stay queued in the plugin until the send queue has space.
#[tokio::test]
async fn a_blocked_plugin_sends_when_the_queue_has_space() {
    let mut options = Options::server(1);
    (options.max_message, options.send_queue, options.receive_queue) = (50_000, 100_000, 100_000);
    let Pair { here, there, .. } = Pair::open(&options).await;
    const COUNT: usize = 400;
    let plugin = Questions { unasked: COUNT, padding: 40_000, ..Questions::default() };
    let client = attached(&here, Side::Client, plugin);
    let answering = tokio::spawn(count_answers(attached(&there, Side::Server, Questions::default())));
    for _ in 0..COUNT {
        assert_eq!(soon(client.recv()).await.expect("open").bytes, ANSWERED);
    }
    client.connection().disconnect().await;
    assert_eq!(soon(answering).await.expect("no panic"), 0);
}

/// A plugin that can never send its messages, and counts how often `update` is called.
#[derive(Debug)]
struct Full {
    asked: u128,
}

impl Plugin<RakNet> for Full {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&QUESTION[..1])
    }

    fn on_message(
        &mut self,
        _: Instant,
        _: ConnectionId,
        _: rakwire_native::Delivery,
        _: &dyn Chunks,
    ) -> Verdict {
        Verdict::Drop
    }

    fn update(&mut self, _: Instant, sender: &mut dyn MessageSender<RakNet>) {
        self.asked += 1;
        while sender.send(HERE, &[0x85; 10_000], ORDERED).is_ok() {}
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }
}

/// The number of calls to a blocked plugin does not depend on the number of received messages.
#[tokio::test]
async fn a_blocked_plugin_is_polled_at_intervals() {
    let mut options = Options::server(1);
    (options.send_queue, options.receive_queue) = (100_000, 100_000);
    let Pair { here, there, .. } = Pair::open(&options).await;
    let start = std::time::Instant::now();
    let full = PluginConnection::new(here, Side::Client, Full { asked: 0 })
        .expect("the connection has message framing");
    let flood = async {
        for _ in 0..1_000 {
            there.send(&QUESTION, ORDERED).await.expect("open");
        }
        there.send(b"\x86", ORDERED).await.expect("open");
    };
    let (message, ()) = soon(async { tokio::join!(full.recv(), flood) }).await;
    let asked = full.with(|plugin| plugin.asked);
    assert_eq!(message.expect("open").bytes, b"\x86");
    // The plugin is called at most once every 5 ms.
    assert!(asked <= 1 + start.elapsed().as_millis() / 5, "the plugin was called {asked} times");
}

/// Only messages for another connection, or for no connection, are dropped.
#[tokio::test]
async fn messages_queued_behind_a_misaddressed_one_arrive() {
    let Pair { here, there: _there, .. } = Pair::open(&Options::server(1)).await;
    let unannounced = [ConnectionId::without_peer(1), HERE].into();
    let client = attached(&here, Side::Client, Questions { unannounced, ..Questions::default() });
    assert_eq!(soon(client.recv()).await.expect("open").bytes, ANSWERED);
}

/// The plugin's deadline is met without received messages, and whether or not the application changes the plugin.
#[tokio::test]
async fn a_plugin_runs_at_its_deadline() {
    let Pair { here, there, .. } = Pair::open(&Options::server(1)).await;
    let not_before = Some(Instant::ZERO + Duration::from_millis(30));
    let plugin = Questions { unasked: 1, not_before, ..Questions::default() };
    let client = attached(&here, Side::Client, plugin);
    let answering = tokio::spawn(count_answers(attached(&there, Side::Server, Questions::default())));
    assert_eq!(soon(client.recv()).await.expect("open").bytes, ANSWERED);
    client.connection().disconnect().await;
    assert_eq!(soon(answering).await.expect("no panic"), 0);
}

#[tokio::test]
async fn a_plugin_can_drop_messages_of_the_application() {
    let Pair { here, there, .. } = Pair::open(&Options::server(1)).await;
    let plugin = Questions { refused: Some(0x87), ..Questions::default() };
    let client = attached(&here, Side::Client, plugin);
    assert_eq!(client.send(b"\x87", ORDERED).await, Err(SendError::Filtered));
    assert_eq!(client.send(b"\x86", ORDERED).await, Ok(None));
    assert_eq!(soon(there.recv()).await.expect("open").bytes, b"\x86");
}

#[tokio::test]
async fn a_byte_stream_accepts_no_plugin() {
    let mut options = Options::server(1);
    options.framing = Framing::Stream;
    let Pair { here, .. } = Pair::open(&options).await;
    assert_eq!(PluginConnection::new(here, Side::Client, Questions::default()).err(), Some(NoMessages));
}
