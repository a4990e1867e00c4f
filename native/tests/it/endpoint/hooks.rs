//! Hooks between an endpoint and its protocol.

use std::net::SocketAddr;

use rakwire::endpoint::{
    ConnectionId, Event, Hook, Injected, MessageIds, MessageSender, Plugin, PluginHost, Protocol, SendError,
    Side, Verdict,
};
use rakwire::{Chunks, Instant};
use rakwire_native::endpoint::{Endpoint, Options, SharedHook};

use super::by_both_protocols;
use super::subject::{Subject, client, join, receive, until};

by_both_protocols!(
    a_hook_sees_every_datagram_and_may_drop_it,
    a_hook_filters_both_ways,
    a_plugin_is_attached_at_run_time,
    a_shared_hook_is_changed_at_run_time
);

/// Drops the first datagram with a message that arrives, once.
#[derive(Default)]
struct Gap {
    has_dropped: bool,
}

impl<P: Protocol> Hook<P> for Gap {
    fn on_received(&mut self, _now: Instant, _from: SocketAddr, datagram: &[u8]) -> Verdict {
        let is_message = P::is_data(datagram) && datagram.ends_with(b"again");
        if is_message && !std::mem::replace(&mut self.has_dropped, true) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    }
}

async fn a_hook_sees_every_datagram_and_may_drop_it<P: Subject>() {
    let options = Options::<P>::server(1).expect("entropy");
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| Gap::default());
    let (server, client) = (server.await.expect("a free port"), client::<P>(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    here.send(b"\x90again", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x90again");
    assert!(P::has_resent(&here.stats().expect("an open connection")));
}

/// Lets nothing through that says no.
struct Polite;

impl<P: Protocol> Hook<P> for Polite {
    fn on_event(&mut self, _now: Instant, event: &Event<'_, P>) -> Verdict {
        let says_no = matches!(event, Event::Message { message, .. } if message.to_vec() == b"\x90no");
        if says_no { Verdict::Drop } else { Verdict::Pass }
    }

    fn on_send(
        &mut self,
        _now: Instant,
        _id: ConnectionId,
        message: &[u8],
        _delivery: P::Delivery,
    ) -> Verdict {
        if message == b"\x90no" { Verdict::Drop } else { Verdict::Pass }
    }
}

async fn a_hook_filters_both_ways<P: Subject>() {
    let options = Options::<P>::server(8).expect("entropy");
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| Polite).await.expect("a free port");
    let client = client::<P>(|_| {}).await;
    let (here, there) = join(&client, &server).await;
    assert_eq!(there.send(b"\x90no", P::RELIABLE).await, Err(SendError::Filtered));
    for message in [&b"\x90no"[..], b"\x90yes"] {
        here.send(message, P::RELIABLE).await.expect("an open connection");
    }
    assert_eq!(receive(&there).await.bytes, b"\x90yes");
}

/// Drops the messages of one connection, and counts them.
#[derive(Default)]
pub(super) struct Muted {
    pub(super) who: Option<ConnectionId>,
    pub(super) dropped: usize,
}

impl<P: Protocol> Hook<P> for Muted {
    fn on_event(&mut self, _now: Instant, event: &Event<'_, P>) -> Verdict {
        let is_muted = matches!(event, Event::Message { id, .. } if Some(*id) == self.who);
        if is_muted {
            self.dropped += 1;
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    }
}

async fn a_shared_hook_is_changed_at_run_time<P: Subject>() {
    let muted = SharedHook::new(Muted::default());
    let (options, hook) = (Options::<P>::server(1).expect("entropy"), muted.clone());
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| hook).await.expect("a free port");
    let client = client::<P>(|_| {}).await;
    let (here, there) = join(&client, &server).await;
    here.send(b"\x90one", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x90one");
    muted.with(|muted| muted.who = Some(there.id()));
    here.send(b"\x90two", P::RELIABLE).await.expect("an open connection");
    until("a dropped message", || muted.with(|muted| muted.dropped == 1)).await;
    muted.with(|muted| muted.who = None);
    here.send(b"\x90three", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x90three");
}

/// Greets whoever is connected, and tells the application of each message of its own.
#[derive(Default)]
pub(super) struct Greeter {
    ungreeted: Vec<ConnectionId>,
    untold: Vec<ConnectionId>,
}

impl<P: Protocol> Plugin<P> for Greeter {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[0x85])
    }

    fn on_connected(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        _remote: SocketAddr,
        _identity: P::Identity,
        _side: Side,
    ) {
        self.ungreeted.push(id);
    }

    fn on_message(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        _delivery: P::Delivery,
        _message: &dyn Chunks,
    ) -> Verdict {
        self.untold.push(id);
        Verdict::Drop
    }

    fn inject(&mut self, _of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        let Some(id) = self.untold.first().copied() else { return };
        if take(Injected { id, delivery: P::Delivery::default(), message: b"\x90it has answered" }) {
            self.untold.remove(0);
        }
    }

    fn update(&mut self, _now: Instant, sender: &mut dyn MessageSender<P>) {
        self.ungreeted.retain(|id| sender.send(*id, b"\x85hello", P::Delivery::default()).is_err());
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.ungreeted.is_empty()).then_some(Instant::ZERO)
    }
}

async fn a_plugin_is_attached_at_run_time<P: Subject>() {
    let host = SharedHook::new(PluginHost::<Greeter, 1>::new());
    let (options, hook) = (Options::<P>::server(1).expect("entropy"), host.clone());
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| hook).await.expect("a free port");
    let client = client::<P>(|_| {}).await;
    let (here, there) = join(&client, &server).await;
    let key = host.with(|host| host.attach::<P>(Greeter::default())).expect("room");
    server.wake();
    assert_eq!(receive(&here).await.bytes, b"\x85hello");
    here.send(b"\x85hello", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x90it has answered");
    assert!(host.with(|host| host.detach(key)).is_some());
    here.send(b"\x85hello", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x85hello");
}
