//! The console of the example `console`, while players join and disconnect.

use std::sync::Arc;

use rakwire_native::{Delivery, DisconnectReason, Endpoint, Options};

use self::server::Server;
use crate::support::DEADLINE;

#[path = "../../../examples/console/server.rs"]
mod server;

async fn player(server: std::net::SocketAddr) -> rakwire_native::Connection {
    let endpoint =
        Endpoint::bind("127.0.0.1:0", Options::client().expect("entropy")).await.expect("a free port");
    endpoint.connect(server).await.expect("a free slot")
}

/// Repeats a command until its output is as expected.
async fn until(server: &Server, line: &str, is_right: impl Fn(&str) -> bool) -> String {
    tokio::time::timeout(DEADLINE, async {
        loop {
            let answer = server.command(line).await.expect("an answer");
            if is_right(&answer) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("a result before the timeout")
}

#[tokio::test]
async fn console_commands_list_message_kick_and_ban_players() {
    let endpoint =
        Endpoint::bind("127.0.0.1:0", Options::server(8).expect("entropy")).await.expect("a free port");
    let address = endpoint.local_addr();
    let server = Arc::new(Server::new(endpoint));
    let running = tokio::spawn(Arc::clone(&server).run());
    assert_eq!(server.command("list").await.as_deref(), Some("none"));

    let (first, second) = (player(address).await, player(address).await);
    let list = until(&server, "list", |list| list.lines().count() == 2).await;
    assert!(list.starts_with("1: 127.0.0.1:") && list.contains("\n2: 127.0.0.1:"), "{list}");
    until(&server, "say snow", |answer| answer == "sent to 2 of 2 players").await;
    for player in [&first, &second] {
        assert_eq!(player.recv().await.expect("a message").bytes, b"\x86snow");
    }
    first.send(b"\x87hello", Delivery::RELIABLE_ORDERED).await.expect("an open connection");
    assert_eq!(second.recv().await.expect("a message").bytes, b"\x87hello");
    let stats = server.command("stats").await.expect("an answer");
    assert!(stats.starts_with("2 connections"), "{stats}");

    assert_eq!(server.command("kick 1").await.as_deref(), Some("1 has left"));
    assert_eq!(first.closed().await, DisconnectReason::Remote);
    until(&server, "list", |list| list.lines().count() == 1).await;
    assert_eq!(
        server.command("ban 127.* 3600").await.as_deref(),
        Some("127.0.0.0/8 is banned; players disconnected: 1")
    );
    assert_eq!(second.closed().await, DisconnectReason::Remote);
    let bans = server.command("bans").await.expect("an answer");
    assert!(bans.starts_with("127.0.0.0/8 for another "), "{bans}");
    assert_eq!(server.command("unban 127.*").await.as_deref(), Some("127.* is no longer banned"));
    assert_eq!(server.command("bans").await.as_deref(), Some("none"));

    for (line, words) in [
        ("kick 9", "no player"),
        ("kick", "no player"),
        ("ban snow", "is not an address pattern"),
        ("ban 127.* soon", "number of seconds"),
        ("unban 127.*", "was not banned"),
        ("dance", "unknown command"),
        ("", "list "),
    ] {
        let answer = server.command(line).await.expect("an answer");
        assert!(answer.contains(words), "{line}: {answer}");
    }
    assert_eq!(server.command("quit").await, None);
    server.close().await;
    running.await.expect("no panic");
}
