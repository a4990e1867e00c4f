//! Hooks of endpoints.

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
    a_hook_filters_messages_in_both_directions,
    a_plugin_is_attached_at_run_time,
    a_shared_hook_is_changed_at_run_time,
    using_a_connection_inside_shared_hook_with_panics,
    using_a_connection_inside_its_own_hook_panics,
    using_a_shared_hook_inside_its_own_method_panics,
    an_endpoint_continues_after_its_hook_panics,
    handles_may_be_dropped_inside_shared_hook_with
);

/// Drops the first received datagram that contains a message.
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

/// Drops messages that contain `no`.
struct Polite;

impl<P: Protocol> Hook<P> for Polite {
    fn on_event(&mut self, _now: Instant, event: &Event<'_, P>) -> Verdict {
        let is_refusal = matches!(event, Event::Message { message, .. } if message.to_vec() == b"\x90no");
        if is_refusal { Verdict::Drop } else { Verdict::Pass }
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

async fn a_hook_filters_messages_in_both_directions<P: Subject>() {
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

/// Drops and counts the messages of one connection.
#[derive(Default)]
pub(super) struct Muted {
    pub(super) id: Option<ConnectionId>,
    pub(super) dropped: usize,
}

impl<P: Protocol> Hook<P> for Muted {
    fn on_event(&mut self, _now: Instant, event: &Event<'_, P>) -> Verdict {
        let is_muted = matches!(event, Event::Message { id, .. } if Some(*id) == self.id);
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
    muted.with(|muted| muted.id = Some(there.id()));
    here.send(b"\x90two", P::RELIABLE).await.expect("an open connection");
    until("a message is dropped", || muted.with(|muted| muted.dropped == 1)).await;
    muted.with(|muted| muted.id = None);
    here.send(b"\x90three", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x90three");
}

/// A plugin that greets each new connection, and reports each received greeting to the application.
#[derive(Default)]
pub(crate) struct Greeter {
    ungreeted: Vec<ConnectionId>,
    unannounced: Vec<ConnectionId>,
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
        self.unannounced.push(id);
        Verdict::Drop
    }

    fn inject(&mut self, _of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        let Some(id) = self.unannounced.first().copied() else { return };
        if take(Injected { id, delivery: P::Delivery::default(), message: b"\x90it has answered" }) {
            self.unannounced.remove(0);
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
    let key = host.with(|host| host.attach::<P>(Greeter::default())).expect("a free slot");
    server.wake();
    assert_eq!(receive(&here).await.bytes, b"\x85hello");
    here.send(b"\x85hello", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x90it has answered");
    assert!(host.with(|host| host.detach(key)).is_some());
    here.send(b"\x85hello", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x85hello");
}

/// Returns the message of the panic that `act` causes.
fn panic_of(act: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).expect_err("a panic");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).expect("a text")
}

async fn using_a_connection_inside_shared_hook_with_panics<P: Subject>() {
    let muted = SharedHook::new(Muted::default());
    let (options, hook) = (Options::<P>::server(1).expect("entropy"), muted.clone());
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| hook).await.expect("a free port");
    let client = client::<P>(|_| {}).await;
    let (here, there) = join(&client, &server).await;
    type Use<'u> = (&'u str, Box<dyn Fn() + 'u>);
    let uses: [Use<'_>; 5] = [
        ("send", Box::new(|| assert!(there.try_send(b"\x90one", P::RELIABLE).is_ok()))),
        ("stats", Box::new(|| assert!(there.stats().is_some()))),
        ("of another endpoint", Box::new(|| assert!(here.try_send(b"\x90one", P::RELIABLE).is_ok()))),
        ("accept", Box::new(|| drop(server.try_accept()))),
        ("the hook itself", Box::new(|| muted.with(|_| ()))),
    ];
    for (name, act) in uses {
        let text = panic_of(|| muted.with(|_| act()));
        assert!(text.contains("inside") && text.contains("SharedHook::with"), "{name}: {text}");
    }
    // The panic has released all locks.
    there.send(b"\x90still here", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&here).await.bytes, b"\x90still here");
}

/// A hook that sends on its own endpoint from inside a method.
struct Reentrant<P: Protocol> {
    connection: Option<rakwire_native::endpoint::Connection<P>>,
    panics: std::sync::mpsc::Sender<String>,
}

impl<P: Subject> Hook<P> for Reentrant<P> {
    fn on_event(&mut self, _now: Instant, event: &Event<'_, P>) -> Verdict {
        if let (Event::Message { .. }, Some(connection)) = (event, &self.connection) {
            let text = panic_of(|| assert!(connection.try_send(b"\x90echo", P::RELIABLE).is_ok()));
            let _ = self.panics.send(text);
        }
        Verdict::Pass
    }
}

async fn using_a_connection_inside_its_own_hook_panics<P: Subject>() {
    let (panics, texts) = std::sync::mpsc::channel();
    let reentrant = SharedHook::new(Reentrant::<P> { connection: None, panics });
    let (options, hook) = (Options::<P>::server(1).expect("entropy"), reentrant.clone());
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| hook).await.expect("a free port");
    let client = client::<P>(|_| {}).await;
    let (here, there) = join(&client, &server).await;
    let own = there.clone();
    reentrant.with(|reentrant| reentrant.connection = Some(own));
    here.send(b"\x90one", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x90one");
    let text = texts.recv().expect("the hook has seen a message");
    assert!(text.contains("inside a method of its own hook"), "{text}");
}

/// A hook that accesses itself from inside a method; an ordinary lock would deadlock.
struct Recursive {
    itself: Option<SharedHook<Self>>,
    panics: std::sync::mpsc::Sender<String>,
}

impl<P: Subject> Hook<P> for Recursive {
    fn on_event(&mut self, _now: Instant, event: &Event<'_, P>) -> Verdict {
        if let (Event::Message { .. }, Some(itself)) = (event, &self.itself) {
            let _ = self.panics.send(panic_of(|| itself.with(|_| ())));
        }
        Verdict::Pass
    }
}

async fn using_a_shared_hook_inside_its_own_method_panics<P: Subject>() {
    let (panics, texts) = std::sync::mpsc::channel();
    let recursive = SharedHook::new(Recursive { itself: None, panics });
    let (options, hook) = (Options::<P>::server(1).expect("entropy"), recursive.clone());
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| hook).await.expect("a free port");
    let client = client::<P>(|_| {}).await;
    let (here, there) = join(&client, &server).await;
    let itself = recursive.clone();
    recursive.with(|recursive| recursive.itself = Some(itself));
    here.send(b"\x90one", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x90one");
    let text = texts.recv().expect("the hook has seen a message");
    assert!(text.contains("inside one of its methods"), "{text}");
    recursive.with(|recursive| recursive.itself = None);
}

/// A hook that panics on one message, and in the next call of `update`.
#[derive(Default)]
struct Faulty {
    has_failed: bool,
}

impl<P: Protocol> Hook<P> for Faulty {
    fn on_event(&mut self, _now: Instant, event: &Event<'_, P>) -> Verdict {
        if matches!(event, Event::Message { message, .. } if message.to_vec() == b"\x90bad") {
            self.has_failed = true;
            panic!("a fault of the hook");
        }
        Verdict::Pass
    }

    fn update(&mut self, _now: Instant, _peer: &mut rakwire::endpoint::Peer<'_, P>) {
        assert!(!self.has_failed, "another fault of the hook");
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.has_failed.then_some(Instant::ZERO)
    }
}

async fn an_endpoint_continues_after_its_hook_panics<P: Subject>() {
    let options = Options::<P>::server(1).expect("entropy");
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| Faulty::default());
    let (server, client) = (server.await.expect("a free port"), client::<P>(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    here.send(b"\x90bad", P::RELIABLE).await.expect("an open connection");
    here.send(b"\x90good", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, b"\x90good", "the message on which the hook panicked is dropped");
    there.send(b"\x90still here", P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&here).await.bytes, b"\x90still here");
    let panics = server.stats().hook_panics;
    assert!((2..1_000).contains(&panics), "{panics}: a faulty update is not repeated without a pause");
    here.disconnect().await;
    there.closed().await;
}

async fn handles_may_be_dropped_inside_shared_hook_with<P: Subject>() {
    let muted = SharedHook::new(Muted::default());
    let (options, hook) = (Options::<P>::server(1).expect("entropy"), muted.clone());
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| hook).await.expect("a free port");
    let client = client::<P>(|_| {}).await;
    let (here, there) = join(&client, &server).await;
    muted.with(|_| drop((there, server)));
    here.closed().await;
}
