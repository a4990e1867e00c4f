//! Hooks between machines.

use embassy_futures::select::{Either, select};
use rakwire::endpoint::{
    ConnectionId, Event, Hook, MessageIds, MessageSender, Plugin, PluginHost, SendError, Verdict,
};
use rakwire::{Chunks, Instant};

use crate::support::{Net, Tested, Wire, bytes, in_order, message, number, run};

/// Counts datagrams, and drops received messages with odd numbers and the sent message 99.
#[derive(Debug, Default)]
struct Strict {
    received: u64,
    sent: u64,
}

impl<P: Tested> Hook<P> for Strict {
    fn on_received(&mut self, _: Instant, _: std::net::SocketAddr, _: &[u8]) -> Verdict {
        self.received += 1;
        Verdict::Pass
    }

    fn on_transmit(&mut self, _: Instant, _: std::net::SocketAddr, _: &[u8]) -> Verdict {
        self.sent += 1;
        Verdict::Pass
    }

    fn on_event(&mut self, _: Instant, event: &Event<'_, P>) -> Verdict {
        let Event::Message { message, .. } = event else { return Verdict::Pass };
        if message.to_vec()[4].is_multiple_of(2) { Verdict::Pass } else { Verdict::Drop }
    }

    fn on_send(&mut self, _: Instant, _: ConnectionId, message: &[u8], _: P::Delivery) -> Verdict {
        if message[4] == 99 { Verdict::Drop } else { Verdict::Pass }
    }
}

pub(crate) fn a_hook_counts_datagrams_and_drops_messages<P: Tested>() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let client = net.client::<P, 1, 48, 128, 8>();
        let (address, server) = net.hooked::<P, _, 1, 48, 128, 8>(Strict::default());
        let (here, there) = tokio::join!(client.handle.connect(address), server.accept());
        let here = here.expect("a connection");
        for number in 0..10 {
            here.send(&message(number, 9), P::RELIABLE).await.expect("an open connection");
        }
        let mut numbers = Vec::new();
        while numbers.len() < 5 {
            numbers.push(number(&there.recv().await.expect("a message")));
        }
        assert_eq!(in_order::<P>(numbers), [0, 2, 4, 6, 8]);

        assert_eq!(there.send(&message(99, 9), P::RELIABLE).await, Err(SendError::Filtered));
        there.send(&message(98, 9), P::RELIABLE).await.expect("an open connection");
        let answer = here.recv().await.expect("a message");
        assert_eq!((number(&answer), bytes(&answer).len()), (98, 9));
        drop(answer);

        let (received, sent) = server.with_hook(|hook| (hook.received, hook.sent));
        let stats = server.stats();
        assert_eq!((received, sent), (stats.datagrams_received, stats.datagrams_sent));
        assert!(received > 0 && sent > 0);
        // Dropped messages have freed their memory.
        here.disconnect().await;
        assert!(there.recv().await.is_none());
        assert_eq!(server.blocks_available(), server.blocks());
    });
}

/// A plugin that answers each message with its id.
#[derive(Debug, Default)]
struct Answerer {
    unanswered: Option<ConnectionId>,
}

impl<P: Tested> Plugin<P> for Answerer {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[0x85])
    }

    fn on_message(&mut self, _: Instant, id: ConnectionId, _: P::Delivery, _: &dyn Chunks) -> Verdict {
        self.unanswered = Some(id);
        Verdict::Drop
    }

    fn update(&mut self, _: Instant, sender: &mut dyn MessageSender<P>) {
        self.unanswered.take_if(|id| sender.send(*id, &[0x85, 7], P::RELIABLE).is_ok());
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.unanswered.map(|_| Instant::ZERO)
    }
}

/// The reading task does not receive the plugin's message, and the runner sends the answer.
pub(crate) fn a_plugin_answers_while_a_task_receives<P: Tested>() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let client = net.client::<P, 1, 48, 128, 8>();
        let mut host = PluginHost::<Answerer, 1>::new();
        let key = host.attach::<P>(Answerer::default()).expect("a free slot");
        let (address, server) = net.hooked::<P, _, 1, 48, 128, 8>(host);
        let (here, there) = tokio::join!(client.handle.connect(address), server.accept());
        let here = here.expect("a connection");
        for _ in 0..20 {
            here.send(&[0x85, 1], P::RELIABLE).await.expect("an open connection");
            match select(here.recv(), there.recv()).await {
                Either::First(answer) => assert_eq!(bytes(&answer.expect("a message")), [0x85, 7]),
                Either::Second(_) => panic!("the application received the plugin's message"),
            }
        }
        let stats = server.with_hook(|host| host.stats(key)).expect("the plugin is attached");
        assert_eq!((stats.consumed, stats.sent), (20, 20));
    });
}
