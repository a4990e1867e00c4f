//! All commands except `run`, and the examples that issue tokens.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::program::{Program, refused, relay};
use crate::support::{Client, Server, directory, get};
use crate::tls::Authority;

pub(crate) fn path(name: &str) -> PathBuf {
    let path = directory("commands").join(name);
    // An earlier run may have left the file behind.
    let _ = fs::remove_file(&path);
    path
}

pub(crate) fn printed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Returns the files of a new key: the signing key, and the key that the relay needs.
pub(crate) fn keygen(name: &str, algorithm: &str) -> (PathBuf, PathBuf) {
    let key = path(name);
    let public = path(&format!("{name}.pub"));
    printed(relay().args(["keygen", "--algorithm", algorithm, "--out"]).arg(&key));
    let for_relay = if public.exists() { public } else { key.clone() };
    (key, for_relay)
}

#[test]
fn check_accepts_a_configuration_or_prints_one_error() {
    let good = path("good.toml");
    fs::write(&good, "[targets.game]\naddress = \"127.0.0.1:1\"\n").unwrap();
    let text = printed(relay().args(["check", "--config"]).arg(&good));
    assert_eq!(text, "ok: listens on 127.0.0.1:8080, offers game\n");
    let proxied = ["--trusted-proxy", "127.0.0.1", "--allow-any-origin"];
    let text = printed(relay().args(["check", "--config"]).arg(&good).args(proxied));
    assert!(text.contains("\nnote: ") && text.contains("--webtransport-public-port"), "{text}");
    let told = ["--webtransport-public-port", "443"];
    let text = printed(relay().args(["check", "--config"]).arg(&good).args(proxied).args(told));
    assert!(!text.contains("note: "), "{text}");
    let bad = path("bad.toml");
    fs::write(&bad, "[targets.game]\naddress = \"127.0.0.1:1\"\n\n[limits]\nquew = 1\n").unwrap();
    for command in [&["check"][..], &["config"], &["config", "--explain"], &["run"], &[]] {
        let arguments = [command, &["--config", bad.to_str().unwrap()]].concat();
        let line = refused(&arguments);
        assert!(
            line.starts_with(&format!(
                "error: {}:5: limits.quew: there is no such key: did you mean queue?",
                bad.display()
            )),
            "{line}"
        );
    }
    let (certificate, key) = (path("check.pem"), path("check.key"));
    Authority::new().issue("localhost", &certificate, &key);
    let check = |more: &str| {
        fs::write(&bad, format!("[targets.game]\naddress = \"127.0.0.1:1\"\n{more}")).unwrap();
        relay().args(["check", "--config"]).arg(&bad).output().unwrap()
    };
    let tls = |key: &Path| format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n");
    assert!(check(&tls(&key)).status.success());
    for (more, line, reason) in [
        (tls(&certificate), 5, "has no private key"),
        (tls(&path("none.key")), 5, "cannot read"),
        ("\n[log]\nlevel = \"hyper=loud\"\n".to_owned(), 5, "'hyper=loud' is not a log level"),
        ("\n[log]\nlevel = \"loud\"\n".to_owned(), 5, "'loud' is not a log level"),
    ] {
        let output = check(&more);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            text.starts_with(&format!("error: {}:{line}: ", bad.display())) && text.contains(reason),
            "{text}"
        );
    }
}

#[test]
fn an_invalid_level_is_refused_in_every_layer() {
    let target = ["--target", "game=127.0.0.1:1", "--listen", "127.0.0.1:0"];
    for command in [&["check"][..], &["run"], &[]] {
        let line = refused(&[command, &target, &["--log-level", "loud"]].concat());
        assert!(line.starts_with("error: --log-level: 'loud' is not a log level"), "{line}");
    }
    let line = refused_with("RAKWIRE_RELAY_LOG_LEVEL", "loud");
    assert!(line.starts_with("error: RAKWIRE_RELAY_LOG_LEVEL: 'loud' is not a log level"), "{line}");
    let output = relay().env("RUST_LOG", "loud").args(target).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("error: RUST_LOG: 'loud' is not a log level") && text.lines().count() == 1,
        "{text}"
    );
}

#[test]
fn the_environment_overrides_the_file_but_not_the_command_line() {
    let file = path("layers.toml");
    fs::write(&file, "[targets.game]\naddress = \"127.0.0.1:1\"\n[limits]\nqueue = 1\nmax_clients = 1\n")
        .unwrap();
    let mut command = relay();
    command
        .env("RAKWIRE_RELAY_CONFIG", &file)
        .env("RAKWIRE_RELAY_QUEUE", "2")
        .env("RAKWIRE_RELAY_MAX_DATAGRAM", "2")
        .env("RAKWIRE_RELAY_MAX_CLIENTS", "")
        .env("RAKWIRE_RELAY_ALLOW_ORIGIN", "https://a.example; https://b.example")
        .args(["config", "--explain", "--queue", "3"]);
    let text = printed(&mut command);
    for line in [
        "queue = 3 # --queue".to_owned(),
        "max_datagram = 2 # RAKWIRE_RELAY_MAX_DATAGRAM".to_owned(),
        format!("max_clients = 1 # {}:5", file.display()),
        "allow_origins = [\"https://a.example\", \"https://b.example\"] # RAKWIRE_RELAY_ALLOW_ORIGIN"
            .to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in:\n{text}");
    }
    let line = refused_with("RAKWIRE_RELAY_QUEUE", "x");
    assert!(line.starts_with("error: RAKWIRE_RELAY_QUEUE: 'x' is not a number"), "{line}");
}

fn refused_with(variable: &str, value: &str) -> String {
    let output =
        relay().env(variable, value).args(["check", "--target", "game=127.0.0.1:1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn keys_are_not_overwritten() {
    let (key, public) = keygen("kept.key", "ed25519");
    let before = fs::read(&key).unwrap();
    let line = refused(&["keygen", "--out", key.to_str().unwrap()]);
    assert!(line.contains("exists: choose another --out"), "{line}");
    assert_eq!(fs::read(&key).unwrap(), before);
    // Neither file is written if one of them exists. A single new file would block the next attempt.
    let (half, other_half) = (path("half.key"), path("half.key.pub"));
    fs::write(other_half, "taken").unwrap();
    let line = refused(&["keygen", "--out", half.to_str().unwrap()]);
    assert!(line.contains("half.key.pub' already exists") && !half.exists(), "{line}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // The private and the public key cannot be exchanged.
    let target = ["--target", "game=127.0.0.1:1", "--token-key"];
    let line = refused(&[&["check"], &target[..], &[key.to_str().unwrap()]].concat());
    assert!(line.contains("give the relay the public one"), "{line}");
    let line = refused(&["token", "--target", "game", "--key", public.to_str().unwrap()]);
    assert!(line.contains("use the private one"), "{line}");
}

#[tokio::test]
async fn a_created_token_admits_a_client() {
    for algorithm in ["ed25519", "hmac-sha256"] {
        let (key, for_relay) = keygen(&format!("made-{algorithm}.key"), algorithm);
        let target = format!("game={}", Server::echo().await);
        let arguments = ["--listen", "127.0.0.1:0", "--target", &target, "--token-key"];
        let program = Program::run(relay().args(arguments).arg(&for_relay).stderr(Stdio::null()));
        let token =
            printed(relay().args(["token", "--target", "game", "--address", "127.0.0.1", "--key"]).arg(&key));
        let path = format!("/ws?target=game&token={}", token.trim());
        let mut client = Client::connect(program.address, &path).await;
        client.send(b"hello").await;
        assert_eq!(client.receive().await, b"hello");
        assert_eq!(Client::connect(program.address, "/ws?target=game").await.closed().await.0, 4401);
    }
}

/// Fetches a token from an endpoint, as a page does.
async fn fetched(endpoint: SocketAddr) -> String {
    let (head, body) = get(endpoint, "/token").await;
    assert!(head.starts_with("http/1.1 200") && head.contains("cache-control: no-store"), "{head}");
    let (_, rest) = body.split_once(r#"{"token":""#).unwrap_or_else(|| panic!("{body}"));
    rest.split('"').next().unwrap().to_owned()
}

/// Runs an endpoint that issues tokens for a relay, and connects to the relay with a token.
async fn issues_tokens(for_relay: &PathBuf, endpoint: &mut Command) {
    let endpoint = Program::run(endpoint);
    let target = format!("game={}", Server::echo().await);
    let arguments = ["--listen", "127.0.0.1:0", "--target", &target, "--token-single-use", "--token-key"];
    let program = Program::run(relay().args(arguments).arg(for_relay).stderr(Stdio::null()));
    for _ in 0..2 {
        let path = format!("/ws?target=game&token={}", fetched(endpoint.address).await);
        let mut client = Client::connect(program.address, &path).await;
        client.send(b"hello").await;
        assert_eq!(client.receive().await, b"hello");
        assert_eq!(Client::connect(program.address, &path).await.closed().await.0, 4401, "used");
    }
}

#[tokio::test]
async fn the_node_example_issues_tokens() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/token-server.mjs");
    for algorithm in ["ed25519", "hmac-sha256"] {
        let (key, for_relay) = keygen(&format!("node-{algorithm}.key"), algorithm);
        let mut command = Command::new("node");
        command.arg(example).args(["--target", "game", "--listen", "127.0.0.1:0", "--key"]).arg(key);
        issues_tokens(&for_relay, &mut command).await;
    }
}

#[tokio::test]
async fn the_rust_example_issues_tokens() {
    let (key, for_relay) = keygen("rust.key", "ed25519");
    let mut command = Command::new(example("token_server"));
    command.arg(key).args(["game", "127.0.0.1:0"]);
    issues_tokens(&for_relay, &mut command).await;
}

/// Returns the program of an example. Cargo builds it together with all tests of the package, but not for a single
/// test.
fn example(name: &str) -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_rakwire-relay"));
    let example = program.parent().unwrap().join("examples").join(name);
    if !example.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--example", name]).current_dir(env!("CARGO_MANIFEST_DIR"));
        printed(&mut cargo);
    }
    example
}

#[test]
fn completions_and_manual_contain_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let text = printed(relay().args(["completions", shell]));
        assert!(text.contains("keygen") && text.contains("max-clients"), "{shell}");
    }
    let page = printed(relay().arg("man"));
    assert!(page.starts_with(".ie") && page.contains("max\\-clients") && page.contains("keygen"), "{page}");
}

/// Returns an output that cannot be written: a full disk, or a pipe without a reader.
#[cfg(target_os = "linux")]
fn unwritable(is_full: bool) -> Stdio {
    if is_full {
        return fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into();
    }
    let (output, reader) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(reader);
    std::os::fd::OwnedFd::from(output).into()
}

/// A panic would have exit status 101, and a signal none. A closed pipe is not a failure.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn commands_do_not_panic_without_writable_output() {
    let program = Program::start(Server::echo().await);
    let listed = format!("http://{}", program.address);
    let (key, _) = keygen("unwritable-token", "ed25519");
    let key = key.to_str().unwrap();
    let game = ["--target", "game=127.0.0.1:1"];
    for is_full in [true, false] {
        let made = path("unwritable");
        let _ = fs::remove_file(path("unwritable.pub"));
        let commands: [&[&str]; 9] = [
            &["--help"],
            &["--version"],
            &["check", game[0], game[1]],
            &["config", "--explain", game[0], game[1]],
            &["config", "--reference"],
            &["list", &listed],
            &["keygen", "--out", made.to_str().unwrap()],
            &["token", "--key", key, "--target", "game"],
            &["man"],
        ];
        for arguments in commands {
            let mut command = relay();
            command.args(arguments).stdin(Stdio::null());
            let status = command.stdout(unwritable(is_full)).stderr(unwritable(is_full)).status().unwrap();
            assert!(matches!(status.code(), Some(0..=1)), "{arguments:?}, full: {is_full}: {status:?}");
            let is_help = arguments[0].starts_with("--");
            assert!(is_help || status.success() != is_full, "{arguments:?}, full: {is_full}: {status:?}");
        }
    }
}
