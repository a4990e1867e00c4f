//! Tests of the model, its layers, and their error messages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::protocol::ProtocolKind;

/// Writes a file for one test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("rakwire-relay-{}-{name}.toml", std::process::id()));
    fs::write(&path, text).unwrap();
    path
}

fn option(key: &str) -> &'static OptionInfo {
    OPTIONS.iter().find(|option| option.key == key).unwrap()
}

fn flag(key: &str, values: &[&str]) -> Override {
    let option = option(key);
    let values = values.iter().map(|&value| value.to_owned()).collect();
    Override { option, source: Source::Flag(format!("--{}", option.flag)), values }
}

fn variable(key: &str, value: &str) -> Override {
    let option = option(key);
    Override { option, source: Source::Variable(option.variable().unwrap()), values: vec![value.to_owned()] }
}

/// Returns the error for a configuration file, with `FILE` in place of its path. The text is empty if there is no
/// error.
fn file_error(name: &str, text: &str) -> String {
    let path = file(name, text);
    let error = Loaded::load(Some(&path), &[]).err().map(|error| error.to_string()).unwrap_or_default();
    fs::remove_file(&path).unwrap();
    error.replace(&path.display().to_string(), "FILE")
}

/// Returns the names of the fields at a position of the file, as listed in the error about an unknown field.
fn fields(text: &str) -> BTreeSet<String> {
    let error = toml::from_str::<Config>(text).unwrap_err();
    let (_, expected) = error.message().split_once("expected ").unwrap();
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_option_table_matches_the_model() {
    let mut keys = BTreeSet::new();
    for section in fields("\"?\" = 1") {
        let table = match section.as_str() {
            "targets" => "targets.game".to_owned(),
            section if !OPTIONS.iter().any(|option| option.key == section) => section.to_owned(),
            _ => {
                keys.insert(section);
                continue;
            }
        };
        let key = table.replace("targets.game", "targets.*");
        keys.extend(fields(&format!("[{table}]\n\"?\" = 1")).iter().map(|field| format!("{key}.{field}")));
    }
    keys.insert("targets".to_owned());
    let table: BTreeSet<String> = OPTIONS.iter().map(|option| option.key.to_owned()).collect();
    assert_eq!(keys, table);
}

#[test]
fn flags_are_unique() {
    let flags: Vec<_> = OPTIONS.iter().map(|option| option.flag).filter(|flag| !flag.is_empty()).collect();
    let unique: BTreeSet<_> = flags.iter().collect();
    assert_eq!(flags.len(), unique.len());
    assert_eq!(option("limits.max_clients").variable().as_deref(), Some("RAKWIRE_RELAY_MAX_CLIENTS"));
}

#[test]
fn the_explained_defaults_are_a_valid_file_with_the_same_values() {
    let path = file("defaults", "[targets.game]\naddress = \"127.0.0.1:1\"\n");
    let loaded = Loaded::load(Some(&path), &[]).unwrap();
    let explained = file("explained", &loaded.explain());
    assert_eq!(Loaded::load(Some(&explained), &[]).unwrap().config, loaded.config);
    fs::remove_file(path).unwrap();
    fs::remove_file(explained).unwrap();
}

#[test]
fn option_choices_match_the_model() {
    for option in OPTIONS {
        let OptionKind::Choice(values) = option.kind else { continue };
        let key = option.key.replace('*', "game");
        let (table, key) = key.rsplit_once('.').unwrap();
        let choice = |value: &str| {
            let address = if table.starts_with("targets") { "address = \"a:1\"\n" } else { "" };
            toml::from_str::<Config>(&format!("[{table}]\n{address}{key} = \"{value}\"\n"))
        };
        assert!(values.iter().all(|value| choice(value).is_ok()), "{key}");
        let error = choice("?").unwrap_err();
        assert_eq!(error.message().matches('`').count() / 2 - 1, values.len(), "{error}");
    }
}

#[test]
fn later_layers_take_precedence_and_each_value_is_explained_with_its_source() {
    let path = file(
        "layers",
        "listen = \"127.0.0.1:1\"\n[limits]\nqueue = 1\nmax_clients = 2\nidle_timeout = \"3s\"\n\
         [targets.game]\naddress = \"127.0.0.1:1\"\nkind = \"raknet\"\n",
    );
    let overrides = [
        variable("limits.queue", "10"),
        variable("limits.idle_timeout", "1m 30s"),
        flag("limits.queue", &["20"]),
        flag(
            "targets",
            &["game=127.0.0.1:2", "other=127.0.0.1:3,kind=game-protocol,resume_within=5,queue_bytes=4096"],
        ),
    ];
    let loaded = Loaded::load(Some(&path), &overrides).unwrap();
    let Config { listen, limits, targets, .. } = &loaded.config;
    assert_eq!(listen.to_string(), "127.0.0.1:1");
    assert_eq!((limits.queue.get(), limits.max_clients, limits.idle_timeout.as_secs()), (20, 2, 90));
    let of = |name: &str| &targets[&name.parse().unwrap()];
    assert_eq!((of("game").address.as_str(), of("game").kind), ("127.0.0.1:2", ProtocolKind::RakNet));
    assert_eq!((of("other").kind, of("other").resume_within.as_secs()), (ProtocolKind::GameProtocol, 5));

    let text = loaded.explain().replace(&path.display().to_string(), "FILE");
    for line in [
        "listen = \"127.0.0.1:1\" # FILE:1",
        "queue = 20 # --queue",
        "max_clients = 2 # FILE:4",
        "idle_timeout = \"1m 30s\" # RAKWIRE_RELAY_IDLE_TIMEOUT",
        "max_datagram = 1472 # default",
        "kind = \"raknet\" # FILE:8",
        "address = \"127.0.0.1:2\" # --target",
        "# serve is not set",
        "# --queue, RAKWIRE_RELAY_QUEUE; 1 to 65536 datagrams; default 256; changes with a reload",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in:\n{text}");
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn mistakes_in_a_file_are_reported_with_their_line() {
    let cases = [
        ("listen = ", "FILE:1: "),
        ("\nlisten = 5\n", "FILE:2: listen: 5 is not a string"),
        ("\nlisten = \"localhost\"\n", "FILE:2: listen: write it as ADDRESS:PORT"),
        ("lisen = \"127.0.0.1:1\"\n", "FILE:1: lisen: there is no such key: did you mean listen?"),
        ("[limits]\nqueue = 1\nqeue = 1\n", "FILE:3: limits.qeue: there is no such key: did you mean queue?"),
        (
            "[limits]\nqueue = 0\n",
            "FILE:2: limits.queue: 0 is out of range: write a number from 1 to 65536 (datagrams)",
        ),
        (
            "[limits]\nidle_timeout = \"2 parsecs\"\n",
            "FILE:2: limits.idle_timeout: '2 parsecs': write a number of seconds",
        ),
        (
            "[limits]\nidle_timeout = 100000\n",
            "FILE:2: limits.idle_timeout: 100000 is out of range: write a time from 1s to 1day",
        ),
        ("[limits]\nmax_clients = -1\n", "FILE:2: limits.max_clients: -1 is out of range"),
        ("[limits]\nmax_clients = true\n", "FILE:2: limits.max_clients: true is not a number"),
        (
            "[targets.game]\naddress = \"127.0.0.1\"\n",
            "FILE:2: targets.game.address: write the address as HOST:PORT",
        ),
        ("[targets.game]\nkind = \"raknet\"\n", "FILE:1: targets.game: a target needs its address"),
        (
            "[targets.\"a=b\"]\naddress = \"127.0.0.1:1\"\n",
            "FILE:1: targets.\"a=b\": put a name of 1 to 64 bytes",
        ),
        (
            "[admission]\nallow_origins = [\"example.org\"]\n",
            "FILE:2: admission.allow_origins: write it as SCHEME://HOST",
        ),
        (
            "[admission]\nallow_origins = [\"https://play.*.org\"]\n",
            "FILE:2: admission.allow_origins: '*' can only replace whole labels at the beginning of a host",
        ),
        (
            "[admission]\n\ntrusted_proxies = [\"proxy\"]\n",
            "FILE:3: admission.trusted_proxies: 'proxy' is not an address or a network",
        ),
        ("[log]\nformat = \"xml\"\n", "FILE:2: log.format: 'xml' is not one of text, json"),
        ("[a]\n[a]\n", "FILE:2: duplicate key"),
    ];
    for (text, expected) in cases {
        let error = file_error("mistake", text);
        assert!(error.starts_with(expected), "{text:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn inconsistencies_are_reported_with_the_line_of_a_key() {
    let target = "[targets.game]\naddress = \"127.0.0.1:1\"\n";
    let whole = [
        (
            format!("listen = \"0.0.0.0:1\"\n{target}"),
            "FILE:1: listen: 0.0.0.0:1 can be reached by other machines",
        ),
        (format!("\nserve = \"no/such\"\n{target}"), "FILE:2: serve: '"),
        (format!("{target}[tls]\n\nkey = \"k\"\n"), "FILE:5: tls.key: a key needs its certificate"),
        (
            format!("{target}[admission]\nbans = \"no/such\"\n"),
            "FILE:4: admission.bans: no/such: cannot be read",
        ),
        (format!("{target}[tokens]\nkeys = [\"no/such\"]\n"), "FILE:4: tokens.keys: no/such: cannot be read"),
        (String::new(), "FILE: no target given: add a table [targets.NAME]"),
    ];
    for (text, expected) in whole {
        let error = file_error("whole", &text);
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
    assert!(
        Loaded::load(Some(Path::new("no/such.toml")), &[])
            .unwrap_err()
            .to_string()
            .starts_with("cannot read")
    );
}

#[test]
fn mistakes_in_flags_and_variables_are_reported_with_their_option() {
    let target = flag("targets", &["game=127.0.0.1:1"]);
    let error = |given: Override| Loaded::load(None, &[target.clone(), given]).unwrap_err().to_string();
    let cases = [
        (flag("listen", &["localhost"]), "--listen: write it as ADDRESS:PORT"),
        (flag("listen", &["0.0.0.0:1"]), "--listen: 0.0.0.0:1 can be reached by other machines"),
        (
            variable("limits.queue", "x"),
            "RAKWIRE_RELAY_QUEUE: 'x' is not a number: write one from 1 to 65536 (datagrams)",
        ),
        (flag("limits.max_datagram", &["65508"]), "--max-datagram: 65508 is out of range"),
        (
            flag("admission.allow_any_origin", &["maybe"]),
            "--allow-any-origin: 'maybe' is neither true nor false",
        ),
        (flag("log.format", &["xml"]), "--log-format: 'xml' is not one of text, json"),
        (flag("targets", &["game"]), "--target: 'game': put a name"),
        (flag("targets", &["a=127.0.0.1:1,kid=raw"]), "--target: 'kid' is not a setting of a target"),
        (flag("targets", &["a=127.0.0.1:1,kind"]), "--target: 'kind': write a setting as NAME=VALUE"),
        (flag("targets", &["a=127.0.0.1:1,queue_age=1h"]), "--target: queue_age: 1h is out of range"),
        (flag("targets", &["a=127.0.0.1:1", "a=127.0.0.1:2"]), "--target: target 'a' is given twice"),
    ];
    for (given, expected) in cases {
        let error = error(given);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_public_address_requires_configured_origins() {
    let public = [flag("targets", &["game=127.0.0.1:1"]), flag("listen", &["0.0.0.0:1"])];
    let with = |more: Override| Loaded::load(None, &[&public[..], &[more]].concat()).is_ok();
    assert!(Loaded::load(None, &public).is_err());
    assert!(with(flag("admission.allow_any_origin", &["true"])));
    assert!(!with(flag("admission.allow_any_origin", &["false"])));
    assert!(with(flag("admission.allow_origins", &["https://play.example.org"])));
    assert!(with(flag("admission.allow_origins", &["*"])));
}

#[test]
fn changes_are_sorted_by_when_they_take_effect() {
    let old = Config::default().with_target("a=127.0.0.1:1".parse().unwrap());
    assert_eq!(Changes::between(&old, &old), Changes::default());
    assert_eq!(Changes::default().to_string(), "nothing changed");
    let mut new = Config::new("127.0.0.1:9".parse().unwrap()).with_target("b=127.0.0.1:1".parse().unwrap());
    new.limits.max_clients = 5;
    let changes = Changes::between(&old, &new);
    assert_eq!(changes.after_restart, ["listen"]);
    assert!(changes.applied.contains(&"targets.a.address".to_owned()), "{changes}");
    assert!(changes.applied.contains(&"targets.b.address".to_owned()), "{changes}");
    assert!(changes.applied.contains(&"limits.max_clients".to_owned()), "{changes}");
    assert!(changes.to_string().ends_with("; after a restart: listen"), "{changes}");
}

#[test]
fn errors_are_found_before_anything_is_opened() {
    let config = |listen: &str| Config::new(listen.parse().unwrap());
    let local = config("127.0.0.1:0").with_target("a=127.0.0.1:1".parse().unwrap());
    assert!(matches!(config("127.0.0.1:0").check(), Err(ConfigError::NoTarget)));
    let public = Config { listen: "0.0.0.0:0".parse().unwrap(), ..local.clone() };
    assert!(matches!(public.check(), Err(ConfigError::OriginsRequired(_))));
    let missing = Config { serve: Some("no/such/directory".into()), ..local.clone() };
    assert!(matches!(missing.check(), Err(ConfigError::ServeDirectory(_))));
    let mut two = local;
    two.tls.self_signed = true;
    two.tls.acme_domains = vec!["play.example.org".to_owned()];
    assert!(matches!(two.check(), Err(ConfigError::Contradiction { key: "tls", .. })));
    let tls = flag("discovery.store", &["rediss://10.0.0.2/#insecure"]);
    assert!(Loaded::load(None, &[tls]).unwrap_err().to_string().contains("rediss://HOST:PORT/"));
    let front = |setting: &str, more: &[Override]| {
        let target = format!("game=127.0.0.1:1,kind=raknet{setting}");
        let flags = [flag("targets", &[&target]), flag("udp.listen", &["127.0.0.1:0"])];
        Loaded::load(None, &[&flags, more].concat()).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(front("", &[]), "");
    assert_eq!(front(",source=loopback-pool,proxy_protocol=true", &[]), "");
    let path = file("key", &crate::token::SigningKey::hmac_sha256().unwrap().to_text());
    let key = flag("tokens.keys", &[path.to_str().unwrap()]);
    let refused = front("", std::slice::from_ref(&key));
    assert!(refused.contains("--udp-allow-without-token"), "{refused}");
    assert_eq!(front("", &[key, flag("udp.allow_without_token", &["true"])]), "");
    fs::remove_file(&path).unwrap();
}

/// The documentation contains the option table as printed by the program.
#[test]
fn the_documentation_contains_the_option_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/documents/relay.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("### Options\n").unwrap();
    let section = section.split("\n#").next().unwrap();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with('|')).collect();
    let reference = reference();
    let expected: Vec<&str> = reference.lines().collect();
    for row in &expected {
        assert!(rows.contains(row), "docs/relay.md lacks this row, see 'config --reference': {row}");
    }
    assert_eq!(rows, expected, "docs/relay.md has other rows, see 'config --reference'");
}

#[test]
fn passwords_are_not_shown() {
    for (url, shown) in [
        ("redis://10.0.0.2/1", "redis://10.0.0.2/1"),
        ("redis://relay:secret@10.0.0.2:6379/1", "redis://relay:***@10.0.0.2:6379/1"),
        ("redis://:secret@10.0.0.2/", "redis://:***@10.0.0.2/"),
        ("redis://:se/cr@et@10.0.0.2/", "redis://:***@10.0.0.2/"),
        ("unix:///run/redis.sock?db=1&pass=secret", "unix:///run/redis.sock?***"),
    ] {
        let loaded = Loaded::read(None, &[flag("discovery.store", &[url])]).unwrap();
        assert_eq!(loaded.config.discovery.store.as_deref(), Some(url));
        for text in [loaded.explain(), loaded.to_toml(), format!("{:?}", loaded.config)] {
            assert!(text.contains(shown), "{url}: {text}");
            assert!(!text.contains("secret") && !text.contains("cr@et"), "{url}: {text}");
        }
    }
}

#[test]
fn data_channels_are_offered_only_if_clients_may_use_them() {
    let has_webrtc = |change: fn(&mut Config)| {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        change(&mut config);
        config.has_webrtc().unwrap()
    };
    assert!(!has_webrtc(|_| {}));
    assert!(
        !has_webrtc(|config| config.admission.allow_origins = vec!["https://a.example".parse().unwrap()])
    );
    assert!(has_webrtc(|config| config.admission.allow_any_origin = true));
    assert!(has_webrtc(|config| config.tokens.keys = vec!["key".into()]));
    assert!(has_webrtc(|config| config.webrtc.allow_without_origin = true));
    assert!(!has_webrtc(|config| {
        config.webrtc.allow_without_origin = true;
        config.webrtc.enabled = false;
    }));
}

#[test]
fn the_data_channel_certificate_is_created_once() {
    let path = file("webrtc", "nonsense");
    let mut config = Config::new("127.0.0.1:0".parse().unwrap());
    config.webrtc.certificate = Some(path.clone());
    let refused = config.make_webrtc_certificate().unwrap_err().to_string();
    assert!(refused.contains("private key"), "{refused}");
    fs::remove_file(&path).unwrap();
    assert!(config.webrtc_certificate().unwrap().is_none());
    let made = *config.make_webrtc_certificate().unwrap().fingerprint();
    assert_eq!(*config.make_webrtc_certificate().unwrap().fingerprint(), made);
    fs::remove_file(&path).unwrap();
}

/// An MTU of 1,492 means 1,464 bytes for RakNet implementations that count the IPv4 and UDP headers, and 1,492 for
/// those that do not.
#[test]
fn datagrams_of_raknet_may_be_as_long_as_the_mtu() {
    let longest = |max_datagram| {
        let limits = Limits { max_datagram, ..Limits::default() };
        [ProtocolKind::RakNet, ProtocolKind::GameProtocol, ProtocolKind::Raw]
            .map(|it| limits.longest_datagram(it))
    };
    assert_eq!(longest(Limits::default().max_datagram), [1_492, 1_472, 1_472]);
    assert_eq!(longest(1_200), [1_228, 1_200, 1_200]);
    assert_eq!(longest(9_000), [9_000; 3]);
    assert_eq!(longest(65_507), [65_507; 3]);
}
