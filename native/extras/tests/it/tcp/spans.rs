//! Events that a subscriber of `tracing` receives.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use rakwire_extras::tcp::{Delivery, Endpoint, Options};
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

/// Collects events of this thread.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<u8>>>);

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
    fn start() -> (Self, DefaultGuard) {
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
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8");
        let ours = text.lines().filter(|line| line.contains("rakwire_extras: "));
        ours.map(|line| line.trim().replace("rakwire_extras: ", "")).collect()
    }

    fn has(&self, line: &str) -> bool {
        self.lines().iter().any(|other| other == line)
    }
}

#[tokio::test]
async fn connections_and_refusals_are_traced_and_refusals_are_rate_limited() {
    const CLIENTS: usize = 20;
    let (collector, _guard) = Collector::start();
    let server = Endpoint::bind("127.0.0.1:0", Options::server(1)).await.expect("a free port");
    let client = Endpoint::bind("127.0.0.1:0", Options::client()).await.expect("an address");
    let here = client.connect(server.local_addr()).await.expect("open");
    let there = server.accept().await.expect("open");
    here.send(b"\x86", Delivery::RELIABLE_ORDERED).await.expect("open");
    assert!(there.recv().await.is_some());
    for _ in 0..CLIENTS {
        client.connect(server.local_addr()).await.expect("open until the server sees it").closed().await;
    }
    assert_eq!(server.stats().refused, CLIENTS as u64);
    let lines = collector.lines();
    let reason = "reason=too many connections";
    let refused =
        lines.iter().filter(|line| line.contains(": refused remote=127.0.0.1:") && line.ends_with(reason));
    assert!((1..CLIENTS / 2).contains(&refused.count()), "{lines:#?}");
    here.disconnect().await;
    there.closed().await;
    let (at_server, at_client) = (server.local_addr(), there.remote());
    server.close().await;
    let server_span = format!("endpoint{{protocol=\"TCP\" local={at_server}}}");
    let accepted = format!("{server_span}:connection{{protocol=\"TCP\" remote={at_client} side=\"server\"}}");
    let opened = format!("connection{{protocol=\"TCP\" remote={at_server} side=\"client\"}}");
    for line in [
        format!("{server_span}: bound local={at_server}"),
        format!("{accepted}: connected"),
        format!("{accepted}: ended reason=closed by the peer"),
        format!("{server_span}: closed"),
    ] {
        assert!(collector.has(&line), "no {line} in {:#?}", collector.lines());
    }
    let of_client = ["connecting", "connected", "closing", "ended reason=closed by this application"];
    for line in of_client.map(|event| format!("{opened}: {event}")) {
        assert!(
            collector.lines().iter().any(|event| event.ends_with(&line)),
            "no {line} in {:#?}",
            collector.lines()
        );
    }
}
