//! Secrets that the log must not contain, even at the most verbose level.

use std::fs;
use std::path::PathBuf;

use rakwire_relay::flow::FLOW_PROTOCOL;

use crate::commands::{keygen, path, printed};
use crate::program::{Program, relay};
use crate::support::{Client, Flow, Server, get, open_with_header};

/// A relay that requires tokens, and logs everything.
struct Logged {
    program: Program,
    log: PathBuf,
    key: PathBuf,
}

impl Logged {
    async fn start(name: &str, format: &str) -> Self {
        let (key, for_relay) = keygen(&format!("{name}-{format}.key"), "ed25519");
        let log = path(&format!("{name}-{format}.log"));
        let target = format!("game={}", Server::echo().await);
        let mut command = relay();
        command
            .args(["--listen", "127.0.0.1:0", "--target", &target, "--log-format", format])
            .args(["--log-lines-per-second", "1000000", "--drain-timeout", "0", "--token-key"])
            .arg(&for_relay)
            .env("RUST_LOG", "trace")
            .stderr(fs::File::create(&log).unwrap());
        Self { program: Program::run(&mut command), log, key }
    }

    fn token(&self) -> String {
        printed(relay().args(["token", "--target", "game", "--key"]).arg(&self.key)).trim().to_owned()
    }

    /// Opens a WebSocket that offers these subprotocols.
    async fn offer(&self, path: &str, protocols: &str) -> Client {
        open_with_header(self.program.address, path, ("sec-websocket-protocol", protocols)).await.0
    }

    /// Shuts the relay down. Its log must contain lines about clients, but not `secret`.
    fn assert_silent_on(self, secret: &str) {
        self.program.shut_down();
        let text = fs::read_to_string(&self.log).unwrap();
        assert!(text.contains("client refused"), "{text}");
        assert!(!text.contains(secret), "{text}");
    }
}

/// A token never appears in the log: at any level, with any result, in the query or as a subprotocol.
#[tokio::test]
async fn tokens_are_not_logged() {
    for format in ["text", "json"] {
        let relay = Logged::start("logged", format).await;
        let (address, token) = (relay.program.address, relay.token());
        let signature = token.rsplit_once('.').unwrap().1.to_owned();
        let mut client = Client::connect(address, &format!("/ws?target=game&token={token}")).await;
        client.send(b"hello").await;
        assert_eq!(client.receive().await, b"hello");
        drop(client);
        for path in [format!("/ws?target=other&token={token}"), format!("/ws?target=game&token={token}x")] {
            Client::connect(address, &path).await.closed().await;
        }
        let (_, _) = get(address, &format!("/?token={token}")).await;

        let offered = format!("{FLOW_PROTOCOL}, rakwire.token.{token}");
        let mut client = relay.offer("/ws?target=game", &offered).await;
        client.send(b"hello").await;
        assert_eq!(client.datagram().await, b"hello");
        drop(client);
        for (path, end) in [("/ws?target=other", ""), ("/ws?target=game", "x")] {
            let code = relay.offer(path, &format!("{offered}{end}")).await.closed().await.0;
            assert!(matches!(code, 4401 | 4404), "{path}: {code}");
        }
        relay.assert_silent_on(&signature);
    }
}

/// The secret of a flow, which grants as much as a token, never appears in the log.
#[tokio::test]
async fn secrets_of_flows_are_not_logged() {
    for format in ["text", "json"] {
        let relay = Logged::start("secrets", format).await;
        let (address, token) = (relay.program.address, relay.token());
        let path = format!("/ws?target=game&token={token}");
        let (client, Flow { resume, .. }) = Client::with_control(address, &path).await;
        let (mut again, flow) =
            Client::with_control(address, &format!("/ws?target=game&resume={resume}")).await;
        assert!(flow.resumed);
        assert_eq!(client.closed().await.0, 4409);
        again.send(b"hello").await;
        assert_eq!(again.datagram().await, b"hello");
        drop(again);
        for query in [format!("target=other&resume={resume}"), format!("target=game&resume={resume}x")] {
            let refused = relay.offer(&format!("/ws?{query}"), FLOW_PROTOCOL).await;
            assert!(matches!(refused.closed().await.0, 4401 | 4404), "{query}");
        }
        let (_, _) = get(address, &format!("/?resume={resume}")).await;
        relay.assert_silent_on(&resume);
    }
}
