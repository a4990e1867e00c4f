//! The messages about an invalid configuration. `check`, a start and a reload print the same message, in one line.

use std::fs;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::process::Output;

use crate::program::{refused, relay};
use crate::reload::{FromFile, echoes};
use crate::support::{Server, directory};

/// Words that a parser or Rust's types would use.
const FOREIGN_WORDS: [&str; 12] = [
    "`",
    "usize",
    "u32",
    "u16",
    "invalid type",
    "invalid value",
    "unknown field",
    "unknown variant",
    "missing field",
    "Some(",
    "Err(",
    "Error",
];

/// The text that replaces `BASE` in a case.
const BASE: &str = "listen = \"127.0.0.1:0\"\n[targets.game]\naddress = \"127.0.0.1:1\"\n";

/// The text that replaces `GAME` in a case.
const GAME: &str = "[targets.game]\naddress = \"127.0.0.1:19132\"\nkind = \"raknet\"\n";

/// Files and the expected messages. In these, `FILE` is the path; [`cases`] replaces other words in capitals.
const CASES: &[(&str, &str)] = &[
    // Targets.
    (
        "listen = \"127.0.0.1:0\"\n[targets.game]\naddress = \"169.254.169.254:80\"\n",
        "FILE:3: targets.game.address: '169.254.169.254:80' of target 'game' is not a unicast address that a game \
         server can have (unspecified, multicast, broadcast, link-local and cloud-metadata addresses are refused): \
         use the address of the game server",
    ),
    (
        "listen = \"127.0.0.1:0\"\n[targets.game]\naddress = \"UNRESOLVABLE\"\n",
        "FILE:3: targets.game.address: cannot resolve 'UNRESOLVABLE' of target 'game' (LOOKUP): check the host name",
    ),
    (
        "[targets.game]\naddress = \"192.0.2.1:1\"\nsource = \"loopback-pool\"\n",
        "FILE:2: targets.game.address: '192.0.2.1:1' of target 'game' is not in 127.0.0.0/8: source = \
         loopback-pool is for a game server on this machine, so remove it or use an address such as 127.0.0.1",
    ),
    ("listen = \"127.0.0.1:0\"\n", "FILE: no target given: add a table [targets.NAME] with an address"),
    (
        "[targets.game]\nkind = \"raknet\"\n",
        "FILE:1: targets.game: a target needs its address: add address = \"HOST:PORT\"",
    ),
    (
        "[targets.\"a=b\"]\naddress = \"127.0.0.1:1\"\n",
        "FILE:1: targets.\"a=b\": put a name of 1 to 64 bytes and '=' before the address, as in \
         game=127.0.0.1:19132",
    ),
    (
        "BASEspare_addresses = [\"127.0.0.1:2\", \"127.0.0.1:3\", \"127.0.0.1:4\", \"127.0.0.1:5\", \
         \"127.0.0.1:6\", \"127.0.0.1:7\", \"127.0.0.1:8\", \"127.0.0.1:9\"]\n",
        "FILE:4: targets.game.spare_addresses: 8 spare addresses are too many: write at most 7",
    ),
    (
        "BASEspare_addresses = [\"127.0.0.1:2\", \"UNRESOLVABLE\"]\n",
        "FILE:4: targets.game.spare_addresses: cannot resolve 'UNRESOLVABLE' of target 'game' (LOOKUP): check the host name",
    ),
    // Ports.
    (
        "listen = \"UNRESOLVABLE\"\nGAME",
        "FILE:1: listen: cannot resolve 'UNRESOLVABLE' (LOOKUP): check the name, or listen on an IP address",
    ),
    (
        "listen = \"localhost:9464\"\nGAME[admin]\nlisten = \"127.0.0.1:9464\"\n",
        "FILE:6: admin.listen: listen already has this port, for clients: choose another one",
    ),
    (
        "listen = \"127.0.0.1:9464\"\nGAME[admin]\nlisten = \"127.0.0.1:9464\"\n",
        "FILE:6: admin.listen: listen already has this port, for clients: choose another one",
    ),
    (
        "listen = \"[::]:9464\"\nGAME[admission]\nallow_any_origin = true\n[admin]\nlisten = \
         \"127.0.0.1:9464\"\n",
        "FILE:8: admin.listen: listen already has this port, for clients: choose another one",
    ),
    (
        "GAME[udp]\nlisten = \"127.0.0.1:19132\"\n",
        "FILE:5: udp.listen: the front and target 'game' have the same address (127.0.0.1:19132), so the relay \
         would send to itself: choose another udp.listen",
    ),
    (
        "GAME[udp]\nlisten = \"[::]:19132\"\n",
        "FILE:5: udp.listen: the front and target 'game' have the same address (127.0.0.1:19132), so the relay \
         would send to itself: choose another udp.listen",
    ),
    (
        "listen = \"127.0.0.1:19132\"\nGAME[webtransport]\nmode = \"on\"\n",
        "FILE:3: targets.game.address: WebTransport of the relay and target 'game' have the same address \
         (127.0.0.1:19132), so the relay would send to itself: choose another webtransport.listen",
    ),
    (
        "listen = \"127.0.0.1:8080\"\nGAMEspare_addresses = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\n[webtransport]\nmode = \
         \"on\"\nlisten = \"127.0.0.1:2\"\n",
        "FILE:5: targets.game.spare_addresses: WebTransport of the relay and target 'game' have the same address \
         (127.0.0.1:2), so the relay would send to itself: choose another webtransport.listen",
    ),
    (
        "GAME[udp]\nlisten = \"127.0.0.1:0\"\ntarget = \"gane\"\n",
        "FILE:6: udp.target: no target has this name: set udp.target to the name of a configured target",
    ),
    // Admission.
    (
        "listen = \"0.0.0.0:8080\"\nGAME",
        "FILE:1: listen: 0.0.0.0:8080 can be reached by other machines: choose the pages that may connect with \
         admission.allow_origins ('*' means any) or admit all with admission.allow_any_origin, or listen on \
         127.0.0.1",
    ),
    (
        "BASE[admission]\nproxy_protocol = true\n",
        "FILE:5: admission.proxy_protocol: headers are read only from trusted proxies, and none are configured: \
         list them in admission.trusted_proxies, or remove this setting",
    ),
    (
        "BASE[admission]\nforwarded_header = \"forwarded\"\n",
        "FILE:5: admission.forwarded_header: headers are read only from trusted proxies, and none are configured: \
         list them in admission.trusted_proxies, or remove this setting",
    ),
    (
        "BASE[admission]\nbans = \"no/such\"\n",
        "FILE:5: admission.bans: no/such: cannot be read (MISSING): check the path and the permissions",
    ),
    (
        "BASE[admission]\nallow_origins = [\"example.org\"]\n",
        "FILE:5: admission.allow_origins: write it as SCHEME://HOST[:PORT] without a path, as in \
         https://play.example.org, or '*' for any",
    ),
    (
        "BASE[admission]\ntrusted_proxies = [\"proxy\"]\n",
        "FILE:5: admission.trusted_proxies: 'proxy' is not an address or a network: write it as 192.0.2.1, \
         192.0.2.0/24 or 2001:db8::/32",
    ),
    // Limits and times.
    (
        "BASE[clients]\nper_prefix = 2\n",
        "FILE:5: clients.per_prefix: 2 is below clients.per_address (64): the limit of a prefix must not be below \
         that of one address",
    ),
    (
        "BASE[clients]\nper_address = 300\n",
        "FILE:5: clients.per_address: 300 is above clients.per_prefix (256): the limit of a prefix must not be \
         below that of one address",
    ),
    (
        "BASE[clients]\nrate_per_address = 10\nrate_per_prefix = 9\n",
        "FILE:6: clients.rate_per_prefix: 9 is below clients.rate_per_address (10): the limit of a prefix must \
         not be below that of one address",
    ),
    (
        "BASE[clients]\nburst_per_prefix = 63\n",
        "FILE:5: clients.burst_per_prefix: 63 is below clients.burst_per_address (64): the limit of a prefix must \
         not be below that of one address",
    ),
    (
        "BASE[limits]\nidle_timeout = 7\n",
        "FILE:5: limits.idle_timeout: 7s is below limits.ping_interval (15s): an idle session would be closed \
         before its first ping",
    ),
    (
        "BASE[limits]\nping_interval = \"1h\"\n",
        "FILE:5: limits.ping_interval: 1h is above limits.idle_timeout (1m): an idle session would be closed \
         before its first ping",
    ),
    (
        "BASE[tokens]\nmax_lifetime = 4\n",
        "FILE:5: tokens.max_lifetime: 4s is below tokens.leeway (5s): a token would be valid for longer after its \
         expiry than before",
    ),
    // Certificates.
    (
        "BASE[tls]\nacme_domains = [\"play.example.org\", \"192.0.2.1\"]\n",
        "FILE:5: tls.acme_domains: '192.0.2.1' is an address, and the relay obtains certificates by ACME only for \
         host names: use a host name",
    ),
    (
        "BASE[tls]\nacme_domains = [\"[2001:db8::1]:443\"]\n",
        "FILE:5: tls.acme_domains: '[2001:db8::1]:443' is an address, and the relay obtains certificates by ACME \
         only for host names: use a host name",
    ),
    (
        "BASE[tls]\nacme_domains = [\"*.example.org\"]\n",
        "FILE:5: tls.acme_domains: '*.example.org' is a wildcard, for which the relay cannot obtain a certificate \
         by ACME: list each host name",
    ),
    (
        "BASE[tls]\nacme_domains = [\"https://play.example.org\"]\n",
        "FILE:5: tls.acme_domains: 'https://play.example.org' is not a host name: write it as play.example.org",
    ),
    ("BASE[tls]\n\nkey = \"k\"\n", "FILE:6: tls.key: a key needs its certificate: add tls.certificate"),
    (
        "BASE[tls]\ncertificate = \"no/such\"\nkey = \"no/key\"\n",
        "FILE:5: tls.certificate: cannot read 'no/such' (MISSING): check the path and the permissions",
    ),
    // Types.
    (
        "BASE[limits]\nmax_clients = \"many\"\n",
        "FILE:5: limits.max_clients: 'many' is not a number: write one from 1 to 1000000 (clients)",
    ),
    (
        "BASE[limits]\nmax_clients = -1\n",
        "FILE:5: limits.max_clients: -1 is out of range: write a number from 1 to 1000000 (clients)",
    ),
    (
        "BASE[limits]\nidle_timeout = true\n",
        "FILE:5: limits.idle_timeout: true is not a duration: write a number of seconds, or a string with units, as in \
         \"250ms\", \"60s\" or \"1h 30m\"",
    ),
    (
        "BASE[limits]\nidle_timeout = \"2 parsecs\"\n",
        "FILE:5: limits.idle_timeout: '2 parsecs': write a number of seconds, or a string with units, as in \
         \"250ms\", \"60s\" or \"1h 30m\"",
    ),
    (
        "BASE[admission]\nallow_any_origin = \"yes\"\n",
        "FILE:5: admission.allow_any_origin: 'yes' is neither true nor false",
    ),
    (
        "BASE[admission]\nallow_origins = \"https://play.example.org\"\n",
        "FILE:5: admission.allow_origins: 'https://play.example.org' is not a list of strings: write it as \
         [\"ORIGIN\"]",
    ),
    (
        "BASE[discovery]\nstore = [\"redis://:secret@10.0.0.2/\"]\n",
        "FILE:5: discovery.store: a list is not a string: write URL in quotation marks",
    ),
    (
        "BASEkind = \"rak-net\"\n",
        "FILE:4: targets.game.kind: 'rak-net' is not one of raw, raknet, game-protocol: did you mean raknet?",
    ),
    ("listen = 5\n", "FILE:1: listen: 5 is not a string: write ADDR in quotation marks"),
    (
        "listen = \"localhost\"\n",
        "FILE:1: listen: write it as ADDRESS:PORT or NAME:PORT, as in 127.0.0.1:8080, [::1]:8080 or localhost:8080",
    ),
    ("limits = 5\n", "FILE:1: limits: 5 is not a valid value: write a table [limits] with settings"),
    (
        "targets = [\"game=127.0.0.1:1\"]\n",
        "FILE:1: targets: a list is not a target: write tables as [targets.NAME]",
    ),
    // Unknown keys.
    (
        "BASE\n[limits]\nmax_client = 5\nqueue = 0\n",
        "FILE:6: limits.max_client: there is no such key: did you mean max_clients?",
    ),
    ("max_clients = 5\nBASE", "FILE:1: max_clients: there is no such key: did you mean limits.max_clients?"),
    (
        "admin-listen = \"127.0.0.1:9464\"\nBASE",
        "FILE:1: admin-listen: there is no such key: did you mean admin.listen?",
    ),
    ("BASE[limts]\nmax_clients = 5\n", "FILE:4: limts: there is no such key: did you mean limits?"),
    ("BASEkid = \"raw\"\n", "FILE:4: targets.game.kid: there is no such key: did you mean kind?"),
    (
        "nonsense = 5\nBASE",
        "FILE:1: nonsense: there is no such key: 'rakwire-relay config --reference' lists all",
    ),
];

/// Returns the table, with the parts that depend on the system filled in.
fn cases() -> impl Iterator<Item = (String, String)> {
    // A label of 64 bytes is too long for a query.
    let unresolvable = format!("{}.invalid:1", "a".repeat(64));
    let lookup = unresolvable.to_socket_addrs().unwrap_err().to_string();
    let missing = fs::read("no/such").unwrap_err().to_string();
    let in_place = move |text: &str| {
        let words = [
            ("BASE", BASE),
            ("GAME", GAME),
            ("UNRESOLVABLE", &unresolvable),
            ("LOOKUP", &lookup),
            ("MISSING", &missing),
        ];
        words.iter().fold(text.to_owned(), |text, (word, meaning)| text.replace(word, meaning))
    };
    CASES.iter().map(move |(text, message)| (in_place(text), in_place(message)))
}

/// Arguments, variables without their prefix, and the expected message.
type Elsewhere = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str);

/// Invalid options in arguments and environment variables.
const ELSEWHERE: &[Elsewhere] = &[
    (
        &["--clients-per-prefix", "2"],
        &[],
        "--clients-per-prefix: 2 is below --clients-per-address (64): the limit of a prefix must not be below \
         that of one address",
    ),
    (
        &["--clients-per-prefix", "2"],
        &[("CLIENTS_PER_ADDRESS", "3")],
        "--clients-per-prefix: 2 is below RAKWIRE_RELAY_CLIENTS_PER_ADDRESS (3): the limit of a prefix must not \
         be below that of one address",
    ),
    (
        &[],
        &[("PROXY_PROTOCOL", "true")],
        "RAKWIRE_RELAY_PROXY_PROTOCOL: headers are read only from trusted proxies, and none are configured: list \
         them in \
         RAKWIRE_RELAY_TRUSTED_PROXY, or remove this setting",
    ),
    (
        &["--acme-domain", "192.0.2.1"],
        &[],
        "--acme-domain: '192.0.2.1' is an address, and the relay obtains certificates by ACME only for host \
         names: use a host name",
    ),
    (&["--tls-key", "k"], &[], "--tls-key: a key needs its certificate: add --tls-certificate"),
    (
        &[],
        &[("MAX_CLIENTS", "many")],
        "RAKWIRE_RELAY_MAX_CLIENTS: 'many' is not a number: write one from 1 to 1000000 (clients)",
    ),
    (&["--log-format", "jsn"], &[], "--log-format: 'jsn' is not one of text, json: did you mean json?"),
    (
        &["--target", "other=127.0.0.1:1,kid=raw"],
        &[],
        "--target: 'kid' is not a setting of a target: did you mean kind?",
    ),
    (
        &["--target", "other=192.0.2.1:1,source=loopback-pool"],
        &[],
        "--target: '192.0.2.1:1' of target 'other' is not in 127.0.0.0/8: source = loopback-pool is for a game server on this \
         machine, so remove it or use an address such as 127.0.0.1",
    ),
    (&["--max-client", "5"], &[], "unexpected argument '--max-client' found: did you mean --max-clients?"),
];

fn assert_plain(message: &str) {
    for word in FOREIGN_WORDS {
        assert!(!message.contains(word), "{word}: {message}");
    }
}

#[test]
fn check_and_start_report_the_same_file_errors() {
    let path = directory("check").join("relay.toml");
    for (text, message) in cases() {
        fs::write(&path, &text).unwrap();
        for command in [&["check"][..], &["run"]] {
            let line = refused(&[command, &["--config", path.to_str().unwrap()]].concat());
            let line = line.replace(path.to_str().unwrap(), "FILE");
            assert_eq!(line, format!("error: {message}\n"), "{command:?} of {text}");
            assert_plain(&line);
        }
    }
}

#[test]
fn errors_name_options_as_in_their_source() {
    for (arguments, variables, message) in ELSEWHERE {
        let variables = variables.iter().map(|(name, value)| (format!("RAKWIRE_RELAY_{name}"), value));
        for command in ["check", "run"] {
            let mut program = relay();
            program.args([command, "--listen", "127.0.0.1:0", "--target", "game=127.0.0.1:1"]);
            let Output { status, stdout, stderr } =
                program.args(*arguments).envs(variables.clone()).output().unwrap();
            let line = String::from_utf8(stderr).unwrap();
            assert_eq!(line, format!("error: {message}\n"), "{command} {arguments:?}");
            assert_eq!((status.code(), stdout.len()), (Some(2), 0));
            assert_plain(&line);
        }
    }
}

#[tokio::test]
async fn a_reload_reports_the_same_errors_and_keeps_the_old_file() {
    let server = Server::echo().await;
    let path = directory("check").join("reload.toml");
    let good = BASE.replace("127.0.0.1:1\"", &format!("{server}\""));
    fs::write(&path, &good).unwrap();
    let relay = FromFile::start(&path).await;
    let mut early = relay.client("game").await;
    for (text, message) in cases() {
        fs::write(&path, &text).unwrap();
        let error = relay.reloader.reload().await.unwrap_err().to_string();
        assert_eq!(error.replace(path.to_str().unwrap(), "FILE"), message, "{text}");
        echoes(&mut early).await;
        echoes(&mut relay.client("game").await).await;
    }
    fs::write(&path, good).unwrap();
    assert_eq!(relay.reloader.reload().await.unwrap().to_string(), "nothing changed");
}

#[test]
fn valid_configurations_are_accepted() {
    let path = directory("check").join("works.toml");
    let accepts = |path: &Path, text: &str| {
        fs::write(path, text).unwrap();
        let output = relay().args(["check", "--config"]).arg(path).output().unwrap();
        assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for more in [
        "source = \"loopback-pool\"\n",
        "[admin]\nlisten = \"127.0.0.1:0\"\n",
        "[admin]\nlisten = \"127.0.0.1:9464\"\n",
        // Zero means unlimited.
        "[clients]\nper_prefix = 0\nper_address = 300\n",
        "[clients]\nper_address = 0\nper_prefix = 3\n",
        "[clients]\nrate_per_address = 0\nburst_per_address = 300\n",
        "[admission]\nforwarded_header = \"x-forwarded-for\"\n",
        "[admission]\nforwarded_header = \"none\"\n",
        "[limits]\nidle_timeout = 15\n",
        "kind = \"raknet\"\n[udp]\nlisten = \"127.0.0.2:1\"\n",
        "kind = \"raknet\"\n[udp]\nlisten = \"127.0.0.1:0\"\n",
    ] {
        accepts(&path, &format!("{BASE}{more}"));
    }
    // If a game server uses the relay's UDP port, there is no WebTransport.
    for mode in ["", "[webtransport]\nmode = \"auto\"\n", "[webtransport]\nmode = \"off\"\n"] {
        accepts(&path, &format!("listen = \"127.0.0.1:19132\"\n{GAME}{mode}"));
    }
    // The printed configuration must be valid.
    let printed = relay().args(["config", "--explain", "--target", "game=127.0.0.1:1"]).output().unwrap();
    accepts(&path, &String::from_utf8(printed.stdout).unwrap());
}
