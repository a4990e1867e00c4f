//! HTTP requests other than sessions: origins, health, files.

use std::fs;
use std::path::Path;

use rakwire_relay::{AllowedOrigin, Relay};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Running, Server, config, get, get_with, open_with_origin, within};

#[tokio::test]
async fn a_loopback_relay_accepts_only_local_pages() {
    let relay = Running::start(config(Server::echo().await)).await;
    for origin in [None, Some("http://localhost:5173"), Some("http://127.0.0.1:8080"), Some("https://[::1]")]
    {
        assert_eq!(open_with_origin(relay.address, origin).await, Ok(()), "{origin:?}");
    }
    for origin in ["https://example.org", "http://localhost.example.org", "null"] {
        assert_eq!(open_with_origin(relay.address, Some(origin)).await, Err(4403), "{origin}");
    }
    assert_eq!(relay.snapshot().origins_refused, 3);
}

#[tokio::test]
async fn only_listed_origins_may_connect() {
    let mut config = config(Server::echo().await);
    config.admission.allow_origins =
        vec!["https://play.example.org".parse().unwrap(), "https://*.example.net".parse().unwrap()];
    let relay = Running::start(config).await;
    for origin in ["https://play.example.org", "https://a.b.example.net"] {
        assert_eq!(open_with_origin(relay.address, Some(origin)).await, Ok(()), "{origin}");
    }
    for origin in
        [None, Some("http://localhost"), Some("http://play.example.org"), Some("https://example.net")]
    {
        assert_eq!(open_with_origin(relay.address, origin).await, Err(4403), "{origin:?}");
    }
}

#[tokio::test]
async fn any_origin_can_be_allowed() {
    let mut config = config(Server::echo().await);
    config.admission.allow_origins = vec![AllowedOrigin::Any];
    let relay = Running::start(config).await;
    assert_eq!(open_with_origin(relay.address, Some("https://example.org")).await, Ok(()));
    assert_eq!(open_with_origin(relay.address, None).await, Ok(()));
}

/// The system's resolver decides how many addresses `localhost` has.
#[tokio::test]
async fn a_relay_listens_on_each_address_of_a_name() {
    let mut config = config(Server::echo().await);
    config.listen = "localhost:0".parse().unwrap();
    let relay = Relay::bind(config).await.unwrap();
    let addresses = relay.local_addrs().to_vec();
    let usable = (std::net::Ipv6Addr::LOCALHOST, 0);
    let found: Vec<_> =
        tokio::net::lookup_host("localhost:0").await.unwrap().map(|found| found.ip()).collect();
    let expects_both = found.contains(&usable.0.into())
        && found.contains(&std::net::Ipv4Addr::LOCALHOST.into())
        && std::net::TcpListener::bind(usable).is_ok();
    assert!(!expects_both || addresses.len() == 2, "{addresses:?}");
    let running = tokio::spawn(relay.run(std::future::pending()));
    for address in &addresses {
        assert_eq!((address.ip().is_loopback(), address.port()), (true, addresses[0].port()));
        assert!(get(*address, "/healthz").await.0.starts_with("http/1.1 200"), "{address}");
    }
    running.abort();
}

#[tokio::test]
async fn a_healthy_relay_reports_health() {
    let relay = Running::start(config(Server::echo().await)).await;
    let (head, body) = get(relay.address, "/healthz").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(body, "ok");
    assert!(
        get(relay.address, "/").await.0.starts_with("http/1.1 404"),
        "files are served only if configured"
    );
    let (head, _) = get(relay.address, "/ws?target=game").await;
    assert!(head.starts_with("http/1.1 4"), "a request without an upgrade is refused: {head}");
}

#[tokio::test]
async fn the_server_list_is_refused_to_banned_and_frequent_clients() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let bans = directory.join("banned-from-the-list");
    fs::write(&bans, "203.0.113.9\n").unwrap();
    let mut config = config(Server::echo().await);
    config.admission.bans = Some(bans);
    config.admission.allow_origins = vec![AllowedOrigin::Any];
    config.admission.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    (config.clients.rate_per_address, config.clients.burst_per_address) = (1, 2);
    let relay = Running::start(config).await;
    let status = async |client: &str| {
        let header = [("x-forwarded-for", client)];
        let (head, body) = get_with(relay.address, "/servers.json", &header).await;
        assert_eq!(head.starts_with("http/1.1 200"), body.contains("\"game\""), "{body}");
        head[9..12].to_owned()
    };
    assert_eq!(status("203.0.113.9").await, "403");
    for _ in 0..8 {
        assert_eq!(status("203.0.113.1").await, "200");
    }
    // The rate limit admits more requests while the test is slow.
    let mut left = 100;
    while status("203.0.113.1").await != "429" {
        left -= 1;
        assert!(left > 0, "100 requests pass the limit of 8");
    }
    assert_eq!(status("203.0.113.2").await, "200");
    assert_eq!((relay.snapshot().bans_refused, relay.snapshot().requests_refused), (1, 1));
}

#[tokio::test]
async fn files_and_health_are_rate_limited() {
    let mut config = config(Server::echo().await);
    config.admission.exempt = Vec::new();
    (config.clients.rate_per_address, config.clients.burst_per_address) = (1, 1);
    let relay = Running::start(config).await;
    let mut stream = TcpStream::connect(relay.address).await.unwrap();
    let mut buffer = vec![0; 4_096];
    // All requests use one connection, because the rate of connections is also limited.
    for (request, admitted) in [
        ("GET /healthz", "200"),
        ("GET /ws", "400"),
        ("POST /ws", "405"),
        ("PUT /transports", "405"),
        ("GET /none", "404"),
    ] {
        let mut count = 0;
        let last = loop {
            stream.write_all(format!("{request} HTTP/1.1\r\nHost: relay\r\n\r\n").as_bytes()).await.unwrap();
            let length = within(stream.read(&mut buffer)).await.unwrap();
            let status = String::from_utf8(buffer[9..length.min(12)].to_vec()).unwrap();
            // The rate limit admits more requests while the test is slow.
            if status != admitted || count == 2_000 {
                break status;
            }
            count += 1;
        };
        assert_eq!(last, "429", "{request}: {count}");
        assert!(count >= 64 || request != "GET /healthz", "{count}");
    }
    assert_eq!(relay.snapshot().requests_refused, 5);
}

#[tokio::test]
async fn files_are_served_with_their_types() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("served");
    fs::create_dir_all(directory.join("pkg")).unwrap();
    fs::write(directory.join("index.html"), "<title>page</title>").unwrap();
    fs::write(directory.join("pkg/game.js"), "export {}").unwrap();
    fs::write(directory.join("pkg/game.wasm"), "\0asm").unwrap();
    let others =
        ["game.mjs", "game.d.ts", "game.js.map", "game.css", "game.json", "game.svg", "game.webmanifest"];
    others.iter().for_each(|name| fs::write(directory.join("pkg").join(name), *name).unwrap());
    fs::write(directory.with_file_name("secret"), "secret").unwrap();
    let mut config = config(Server::echo().await);
    config.serve = Some(directory);
    let relay = Running::start(config).await;
    let cases = [
        ("/", "text/html", "<title>page</title>"),
        ("/index.html", "text/html", "<title>page</title>"),
        ("/pkg/game.js", "text/javascript", "export {}"),
        ("/pkg/game.wasm", "application/wasm", "\0asm"),
        ("/pkg/game.mjs", "text/javascript", "game.mjs"),
        ("/pkg/game.d.ts", "text/plain", "game.d.ts"),
        ("/pkg/game.js.map", "application/json", "game.js.map"),
        ("/pkg/game.css", "text/css", "game.css"),
        ("/pkg/game.json", "application/json", "game.json"),
        ("/pkg/game.svg", "image/svg+xml", "game.svg"),
        ("/pkg/game.webmanifest", "application/manifest+json", "game.webmanifest"),
    ];
    for (path, mime, expected) in cases {
        let (head, body) = get(relay.address, path).await;
        assert!(head.contains(&format!("content-type: {mime}")), "{path}: {head}");
        assert_eq!(body, expected);
    }
    let (head, _) = get(relay.address, "/").await;
    for header in [
        "x-content-type-options: nosniff",
        "content-security-policy: object-src 'none'",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(head.contains(header), "{head}");
    }
    for path in ["/missing", "/../secret", "/%2e%2e/secret", "/..%2fsecret"] {
        let (head, body) = get(relay.address, path).await;
        assert!(head.starts_with("http/1.1 4") && !body.contains("secret"), "{path}: {head}");
    }
    assert_eq!(get(relay.address, "/healthz").await.1, "ok");
}

/// Files that should not be in the served directory are not served.
#[cfg(unix)]
#[tokio::test]
async fn hidden_and_outside_files_are_not_served() {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hidden-{}", std::process::id()));
    // An earlier run may have left the directory behind.
    let _ = fs::remove_dir_all(&root);
    let directory = root.join("served");
    for name in [".git", ".well-known/.git", ".well-known/acme", "maps", "elsewhere"] {
        fs::create_dir_all(directory.join(name)).unwrap();
    }
    fs::write(root.join("secret"), "secret").unwrap();
    // On Windows, these paths mean a device, another file, and a stream of a file.
    let of_windows = ["aux.txt", "secret.", "maps/secret:stream"];
    for name in [".env", ".git/config", ".well-known/.git/config"].into_iter().chain(of_windows) {
        fs::write(directory.join(name), "secret").unwrap();
    }
    for name in ["index.html", ".well-known/security.txt", "maps/lake 1.txt"] {
        fs::write(directory.join(name), "served").unwrap();
    }
    symlink(root.join("secret"), directory.join("link")).unwrap();
    symlink(&root, directory.join("up")).unwrap();
    symlink(directory.join(".env"), directory.join("env")).unwrap();
    symlink(root.join("secret"), directory.join("elsewhere/index.html")).unwrap();
    symlink(directory.join("index.html"), directory.join("page")).unwrap();
    let _socket = UnixListener::bind(directory.join("socket")).unwrap();
    let mut config = config(Server::echo().await);
    config.serve = Some(directory);
    let relay = Running::start(config).await;
    for path in ["/", "/.well-known/security.txt", "/maps/lake%201.txt", "/page", "/index%2ehtml"] {
        let (head, body) = get(relay.address, path).await;
        assert!(head.starts_with("http/1.1 200") && body == "served", "{path}: {head}");
    }
    for path in [
        "/.env",
        "/%2eenv",
        "/.git/config",
        "/maps/..%2f.env",
        "/.git%2fconfig",
        "/.well-known/.git/config",
        "/link",
        "/up/secret",
        "/env",
        "/elsewhere/",
        "/socket",
        "/maps//../.env",
        "/%ff",
        "/aux.txt",
        "/AUX",
        "/secret.",
        "/maps/secret:stream",
        "/maps/secret%3astream",
        "/index.html::$DATA",
        "/..%5csecret",
    ] {
        let (head, body) = get(relay.address, path).await;
        assert!(head.starts_with("http/1.1 404") && !body.contains("secret"), "{path}: {head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{path}: {head}");
    }
    fs::remove_dir_all(&root).unwrap();
}
