//! Captures of secure connections, with and without their keys.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, Server, run, text};

const MESSAGE: &str = "a private message";

fn rakwire(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run(Path::new(env!("CARGO_BIN_EXE_rakwire")), arguments, "");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Captures a session in `NAME.pcap`, with a key log written by the client.
fn session(folder: &Folder, name: &str, more: &[&str]) -> [String; 3] {
    let file = |ending: &str| folder.file(&format!("{name}.{ending}"));
    let (server_key, pcap, of_client, of_server) =
        (file("key"), file("pcap"), file("client-keys"), file("server-keys"));
    let (_, key, error) = rakwire(&["keygen", &server_key]);
    let key = key.lines().next().expect(&error);
    let echo = ["echo", "--listen", "127.0.0.1:0", "--secure", &server_key, "--key-log", &of_server];
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_rakwire")), &echo, "listening on ");
    let send = ["send", &server.announced, MESSAGE, "--count", "20", "--server-key", key];
    let record = ["--pcap", &pcap, "--key-log", &of_client];
    let (status, _, error) = rakwire(&[&send[..], &record, more].concat());
    assert_eq!(status, Some(0), "{error}");
    [pcap, of_client, of_server]
}

/// Returns the datagrams of a capture as `decode` prints them.
fn decode(pcap: &str, more: &[&str]) -> Vec<Value> {
    let (status, out, error) = rakwire(&[&["decode", "--json", "--pcap", pcap], more].concat());
    assert_eq!(status, Some(0), "{error}");
    out.lines().map(|line| serde_json::from_str(line).expect("an object on each line")).collect()
}

fn is_unopened(datagram: &Value) -> bool {
    datagram["packet"]["kind"] == "sealed"
}

/// Counts the messages with the text per direction, which the server's port determines.
fn messages(datagrams: &[Value]) -> [usize; 2] {
    let server = datagrams[0]["to"].as_str().expect("an address");
    let wanted: String = MESSAGE.bytes().map(|byte| format!("{byte:02x}")).collect();
    let payloads = |to_server: bool| {
        let of = datagrams.iter().filter(move |one| (one["to"] == server) == to_server);
        let capsules = of.filter_map(|one| one["packet"]["capsules"].as_array()).flatten();
        let texts = capsules.map(|capsule| capsule["payload_hex"].as_str().expect("hex"));
        texts.filter(|hex| hex.ends_with(&wanted)).count()
    };
    [payloads(true), payloads(false)]
}

/// Checks that the keys of either side decrypt every datagram of a capture, and that other keys, or none, decrypt
/// nothing.
fn opens_with_its_keys_alone(name: &str, identity: bool) {
    let folder = Folder::new(name);
    let client_key = folder.file("client.key");
    rakwire(&["keygen", &client_key]);
    let shown = if identity { &["--identity", &client_key][..] } else { &[] };
    let [pcap, of_client, of_server] = session(&folder, "one", shown);
    let [_, of_another, _] = session(&folder, "another", shown);

    for keys in [&of_client, &of_server] {
        let opened = decode(&pcap, &["--key-log", keys]);
        assert!(!opened.iter().any(is_unopened));
        // A message that was sent again counts twice.
        let messages = messages(&opened);
        assert!(messages.iter().all(|count| *count >= 20), "{messages:?}");
        assert!(opened.iter().filter(|one| one["sealed"] == true).count() >= 40);
        assert!(opened.iter().all(|one| one["packet"]["error"].is_null()));
    }
    for keys in [&[][..], &["--key-log", &of_another]] {
        let closed = decode(&pcap, keys);
        assert_eq!(messages(&closed), [0, 0]);
        let sealed: Vec<&Value> = closed.iter().filter(|one| one["sealed"] == true).collect();
        assert!(sealed.len() >= 40 && sealed.iter().all(|one| is_unopened(one)));
        assert!(sealed.iter().all(|one| one["length"].as_u64() > Some(19)));
    }
    let (status, table, _) = rakwire(&["decode", "--pcap", &pcap, "--key-log", &of_client]);
    assert_eq!(status, Some(0));
    assert!(table.contains(MESSAGE) && table.contains(" sealed\ndata, "), "{table}");
    let (_, table, _) = rakwire(&["decode", "--pcap", &pcap]);
    assert!(!table.contains(MESSAGE) && table.contains(" sealed\nsealed, "), "{table}");
}

#[test]
fn a_capture_opens_only_with_its_own_keys() {
    opens_with_its_keys_alone("key-log", false);
}

#[test]
fn a_capture_with_a_client_identity_opens_only_with_its_own_keys() {
    opens_with_its_keys_alone("key-log-identity", true);
}

#[cfg(unix)]
#[test]
fn a_key_log_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("key-log-owner");
    let before = folder.file("one.client-keys");
    fs::write(&before, "").expect("a file");
    fs::set_permissions(&before, fs::Permissions::from_mode(0o644)).expect("our own file");
    let [_, of_client, of_server] = session(&folder, "one", &[]);
    for keys in [of_client, of_server] {
        assert_eq!(fs::metadata(keys).expect("a file").permissions().mode() & 0o777, 0o600);
    }
}

/// Rewrites a capture of rakwire with another link type and `prefix` bytes before each packet, as other tools write it.
fn with_link(capture: &[u8], link: u8, prefix: u8) -> Vec<u8> {
    let (header, mut rest) = capture.split_at(24);
    let mut other = [&header[..23], &[link]].concat();
    if link == 20 {
        // Link type 276 takes two bytes, 1 and 20.
        other[22..].copy_from_slice(&[1, 20]);
    }
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[8..12].try_into().expect("four bytes"));
        let longer = (length + u32::from(prefix)).to_be_bytes();
        let (record, after) = rest.split_at(16 + length as usize);
        other.extend([&record[..8], &longer, &longer, &vec![0; prefix.into()], &record[16..]].concat());
        rest = after;
    }
    other
}

#[test]
fn captures_of_other_tools_are_read() {
    let folder = Folder::new("key-log-links");
    let [pcap, _, _] = session(&folder, "one", &[]);
    let (expected, ours) = (decode(&pcap, &[]), fs::read(&pcap).expect("a capture"));
    let other = folder.file("other.pcap");
    for (link, prefix) in [(0, 4), (1, 14), (113, 16), (20, 20)] {
        fs::write(&other, with_link(&ours, link, prefix)).expect("a file");
        assert_eq!(decode(&other, &[]), expected, "link type {link}");
    }
    fs::write(&other, [&[0x0A, 0x0D, 0x0D, 0x0A][..], &[0; 60]].concat()).expect("a file");
    is_refused(&["decode", "--pcap", &other], &["pcapng", "editcap"]);
}

/// Checks for exit status 2 and one line on standard error with all these parts.
fn is_refused(arguments: &[&str], parts: &[&str]) {
    let (status, _, error) = rakwire(arguments);
    assert_eq!((status, error.lines().count()), (Some(2), 1), "{error}");
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn damaged_files_are_reported_with_name_and_position() {
    let folder = Folder::new("key-log-damaged");
    let [pcap, keys, _] = session(&folder, "one", &[]);
    let log = fs::read_to_string(&keys).expect("a key log");
    let damaged = folder.file("damaged");
    let with_log = |log: &str, parts: &[&str]| {
        fs::write(&damaged, log).expect("a file");
        is_refused(&["decode", "--pcap", &pcap, "--key-log", &damaged], &[&[&damaged[..]], parts].concat());
    };
    with_log(&format!("# a comment\n\n{}", &log[..log.len() - 2]), &["line 4", "hexadecimal"]);
    with_log(&log.replace("TO_CLIENT_0", "TO_UNKNOWN_0"), &["line 2", "label"]);
    with_log("nonsense\n", &["line 1"]);
    is_refused(&["decode", "--pcap", &pcap, "--key-log", "/nowhere/keys"], &["/nowhere/keys"]);

    let capture = fs::read(&pcap).expect("a capture");
    for (bytes, part) in
        [(&capture[..capture.len() - 1], "record "), (&capture[..30], "record 1"), (b"no capture", "pcap")]
    {
        fs::write(&damaged, bytes).expect("a file");
        is_refused(&["decode", "--pcap", &damaged], &[&damaged, part]);
    }
    is_refused(&["decode", "00", "--key-log", &keys], &["--pcap"]);
    is_refused(&["send", "127.0.0.1:9", "x", "--key-log", &keys], &["--server-key"]);
    is_refused(
        &["send", "127.0.0.1:9", "x", "--server-key", "any", "--key-log", "/nowhere/keys"],
        &["/nowhere/keys"],
    );
}
