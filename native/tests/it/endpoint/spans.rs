//! The spans and events that a `tracing` subscriber receives.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, LazyLock, Mutex};

use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::{CookiePolicy, DropReason, Guid, RakNet};
use rakwire::wire::offline::{ClientSecurity, Offline};
use rakwire::wire::{Wire, Writer};
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

use super::subject::{Subject, client, join, message, receive, server, until};

/// Collects events of this thread.
#[derive(Clone, Default)]
pub(crate) struct Collector(Arc<Mutex<Vec<u8>>>);

impl io::Write for Collector {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Collector {
    pub(crate) fn start() -> (Self, DefaultGuard) {
        // With a single subscriber, `tracing` queries only the thread that reaches a line of code first, which may be
        // that of another test without a subscriber. With a second one it queries all of them.
        static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));
        LazyLock::force(&SECOND);
        let collector = Self::default();
        let writer = collector.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .with_level(false)
            .with_target(true)
            .without_time()
            .finish();
        (collector, tracing::subscriber::set_default(subscriber))
    }

    /// Returns the lines of this library, without its name.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8");
        let ours = text.lines().filter(|line| line.contains("rakwire_native: "));
        ours.map(|line| line.trim().replace("rakwire_native: ", "")).collect()
    }

    fn has(&self, line: &str) -> bool {
        self.lines().iter().any(|other| other == line)
    }
}

#[tokio::test]
async fn raknet_traces_each_connection_in_its_span() {
    let guid = |endpoint: &rakwire_native::Endpoint| format!(" guid={}", endpoint.guid());
    the_life_of_a_connection_is_recorded::<RakNet>(guid).await;
}

#[tokio::test]
async fn the_game_protocol_traces_each_connection_in_its_span() {
    the_life_of_a_connection_is_recorded::<GameProtocol>(|_| String::new()).await;
}

/// If a cookie is required, a client without cookie support can never connect. It sends nothing that identifies it as
/// such.
#[tokio::test]
async fn clients_that_return_no_cookie_are_reported_once() {
    let (collector, _guard) = Collector::start();
    let server = server::<RakNet>(|options| options.config.cookies = CookiePolicy::Required).await;
    let client = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    let (security, guid) = (ClientSecurity::None, Guid(5));
    let request = Offline::Request2 { security, server: server.local_addr(), mtu: 1_492, guid };
    request.write(&mut writer).expect("the buffer is large enough");
    let request = writer.finish();
    let dropped = || server.stats().peer.dropped(DropReason::MissingCookie);
    for count in 1..=3 {
        client.send_to(request, server.local_addr()).expect("a server");
        until("the request is dropped", || dropped() >= count).await;
    }
    // When this connection is open, the driver has run again and has logged the advice.
    join(&super::subject::client::<RakNet>(|_| {}).await, &server).await;
    let lines = collector.lines();
    let advice = lines.iter().filter(|line| line.contains("does not return its cookie"));
    assert_eq!(advice.count(), 1, "{lines:#?}");
}

async fn the_life_of_a_connection_is_recorded<P: Subject>(
    guid: fn(&rakwire_native::endpoint::Endpoint<P>) -> String,
) {
    let (collector, _guard) = Collector::start();
    let (server, client) = (server::<P>(|_| {}).await, client::<P>(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    let span = |from: &rakwire_native::endpoint::Endpoint<P>,
                to: &rakwire_native::endpoint::Endpoint<P>,
                side,
                guid| {
        let (name, from, to) = (P::NAME, from.local_addr(), to.local_addr());
        let endpoint = format!("endpoint{{protocol=\"{name}\" local={from}}}");
        format!("{endpoint}:connection{{protocol=\"{name}\" remote={to} side=\"{side}\"{guid}}}")
    };
    let at_client = span(&client, &server, "client", guid(&server));
    let at_server = span(&server, &client, "server", guid(&client));
    let opening = span(&client, &server, "client", String::new());
    for line in [
        format!("{opening}: connecting"),
        format!("{at_client}: connected"),
        format!("{at_server}: connected"),
    ] {
        assert!(collector.has(&line), "no {line} in {:#?}", collector.lines());
    }
    // Neither messages nor datagrams from unconnected peers are logged.
    let lines = collector.lines().len();
    for number in 0..50 {
        here.send(&message(2_000, number), P::RELIABLE).await.expect("an open connection");
        receive(&there).await;
    }
    let unconnected = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let before = server.stats().peer.datagrams_received;
    for junk in [&[1][..], &[0x84; 30], &[5; 100], &[0x40, 1, 2, 3]] {
        unconnected.send_to(junk, server.local_addr()).expect("a server");
    }
    until("the malformed datagrams have arrived", || server.stats().peer.datagrams_received >= before + 4)
        .await;
    assert_eq!(collector.lines().len(), lines, "{:#?}", collector.lines());

    let noted = here.span().clone();
    here.disconnect().await;
    there.closed().await;
    noted.in_scope(|| tracing::info!(target: "rakwire_native", "the application's own"));
    let (local, remote) = (P::LOCAL, P::REMOTE);
    for line in [
        format!("{at_client}: closing"),
        format!("{at_client}: ended reason={local}"),
        format!("{at_server}: ended reason={remote}"),
        format!("{at_client}: the application's own"),
    ] {
        assert!(collector.has(&line), "no {line} in {:#?}", collector.lines());
    }
}

#[tokio::test]
async fn admission_decisions_are_logged() {
    let (collector, _guard) = Collector::start();
    let server = server::<RakNet>(|options| options.defer_incoming = true).await;
    let client = client::<RakNet>(|_| {}).await;
    let refuse = async { server.incoming().await.expect("a client").refuse() };
    let (refused, ()) = tokio::join!(client.connect(server.local_addr()), refuse);
    let reason = match refused {
        Err(rakwire_native::ConnectError::Failed(failure)) => failure.to_string(),
        other => panic!("{other:?}"),
    };
    let (at_server, at_client) = (server.local_addr(), client.local_addr());
    let server_span = format!("endpoint{{protocol=\"RakNet\" local={at_server}}}");
    let guid = client.guid();
    let connection = format!("connection{{protocol=\"RakNet\" remote={at_server} side=\"client\"}}");
    for line in [
        format!("{server_span}: bound local={at_server}"),
        format!("{server_span}: a client requests a connection remote={at_client} guid={guid}"),
        format!("{server_span}: decided about a client remote={at_client} decision=Refuse"),
        format!(
            "endpoint{{protocol=\"RakNet\" local={at_client}}}:{connection}: not connected reason={reason}"
        ),
    ] {
        assert!(collector.has(&line), "no {line} in {:#?}", collector.lines());
    }
    server.close().await;
    assert!(collector.has(&format!("{server_span}: closed")), "{:#?}", collector.lines());
}

/// The client only receives the information that its password was wrong; the server logs the reason.
#[tokio::test]
async fn a_refused_client_is_logged_with_the_reason() {
    let (collector, _guard) = Collector::start();
    let server = server::<RakNet>(|_| {}).await;
    let client = client::<RakNet>(|_| {}).await;
    server.set_password(b"friends").expect("a short password");
    assert!(client.connect(server.local_addr()).await.is_err());
    let at = format!("endpoint{{protocol=\"RakNet\" local={}}}", server.local_addr());
    let line = format!("{at}: refused a client remote={} reason=wrong password", client.local_addr());
    assert!(collector.has(&line), "no {line} in {:#?}", collector.lines());
}

/// The destination of a datagram may be forged, as in a pong, so every send may fail.
#[tokio::test]
async fn failed_sends_are_all_counted_and_rarely_logged() {
    const SENDS: usize = 200;
    let (collector, _guard) = Collector::start();
    // The socket is bound to loopback, so it reaches no other machine.
    let endpoint = client::<RakNet>(|_| {}).await;
    let unreachable = SocketAddr::from(([192, 0, 2, 1], 9));
    for _ in 0..SENDS {
        endpoint.send_out_of_band(unreachable, b"hello").await.expect("the queue empties");
    }
    until("all sends have failed", || endpoint.stats().send_failures >= SENDS as u64).await;
    let lines = collector.lines();
    let logged = lines.iter().filter(|line| line.contains("could not be sent to=192.0.2.1:9")).count();
    assert!((1..SENDS / 2).contains(&logged), "{lines:#?}");
}
