//! Tests two programs, one for RakNet 4 and one for SLikeNet. Each is compiled with RakNet's own headers and with
//! `rakwire/raknet_compat.h`. All builds of a program must connect to each other, and their bit streams must have the
//! same bytes.
//!
//! SLikeNet is in no package registry. Its headers differ from RakNet's only in paths, namespace and some overloads.
//! Its program is therefore compiled with RakNet's headers, under SLikeNet's namespace.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{Background, Build, compile, run};

/// Returns the folder `target/interop/cpp`, into which `interop/setup.sh` has downloaded and built RakNet.
fn raknet() -> PathBuf {
    let programs = std::env::var_os("INTEROP_BIN_DIR").map(PathBuf::from);
    let programs = programs.unwrap_or_else(|| crate::common::folder().join("../target/interop/bin"));
    let folder = programs.join("../cpp");
    assert!(
        folder.join("fetched/package/raknet/Source/RakPeerInterface.h").exists(),
        "RakNet's sources are missing at {}: run interop/setup.sh cpp, or set INTEROP_BIN_DIR to the folder of its programs",
        folder.display()
    );
    folder
}

/// Compiles a program with RakNet's headers, and links it with RakNet.
fn original(source: &str, test: &str) -> PathBuf {
    let folder = raknet();
    let program = crate::common::scratch(test).join("compat-original");
    let ours = [
        "peer.o",
        "tcp.o",
        "plugins.o",
        "PacketizedTCP.o",
        "ConnectionGraph2.o",
        "ReadyEvent.o",
        "RPC4Plugin.o",
    ];
    let objects = fs::read_dir(folder.join("build")).expect("the objects of RakNet").flatten();
    let is_library =
        |name: &str| name.ends_with(".o") && !name.starts_with("secure-") && !ours.contains(&name);
    let objects = objects.filter(|file| file.file_name().to_str().is_some_and(is_library));
    let mut command = Command::new("g++");
    command.args(["-O1", "-w", "-pthread", "-std=c++17", "-DORIGINAL", "-I"]);
    command.arg(folder.join("fetched/package/raknet/Source")).arg("-o").arg(&program);
    command.arg(crate::common::folder().join(source)).args(objects.map(|file| file.path()));
    run(&mut command);
    program
}

fn with_rakwire(source: &str, test: &str) -> PathBuf {
    compile("g++", "c++17", source, Build::Sanitized, &crate::common::scratch(test))
}

const COMPAT: &str = "tests/compat.cpp";
const CHAT: &str = "tests/chat.cpp";

#[test]
fn programs_built_with_raknet_and_rakwire_exchange_messages() {
    let programs = [original(COMPAT, "compat"), with_rakwire(COMPAT, "compat")];
    for server in &programs {
        for client in &programs {
            let (running, port) = Background::server(Command::new(server).args(["server", "0"]));
            let output = run(Command::new(client).args(["client", &port.to_string()]));
            let expected = "pong a game\ninvalid password\naccepted by 127.0.0.1, 1\nreceipt 1, connected 1, ping 1\n\
                            echoed 200, wrong 0\n";
            let pairing = format!("{} with {}", client.display(), server.display());
            assert_eq!(without_noise(&output), expected, "{pairing}");
            assert_eq!(without_noise(&running.finish()), "incoming 1\nleft\n", "{pairing}");
        }
    }
}

/// Returns the lines printed by the program itself, without the lines that RakNet prints.
fn without_noise(output: &str) -> String {
    const OURS: [&str; 12] = [
        "pong",
        "invalid",
        "accepted",
        "receipt",
        "closed",
        "echoed",
        "incoming",
        "left",
        "the end",
        "welcome",
        "hello",
        "connections",
    ];
    let ours = output.lines().filter(|line| OURS.iter().any(|start| line.starts_with(start)));
    ours.map(|line| format!("{line}\n")).collect()
}

/// One client of each library connects to a server.
#[test]
fn a_chat_for_slikenet_connects_clients_of_both_libraries() {
    let programs = [original(CHAT, "chat"), with_rakwire(CHAT, "chat")];
    for server in &programs {
        let (running, port) = Background::server(Command::new(server).args(["server", "0"]));
        let clients = programs.iter().zip(["one", "two"]).map(|(client, name)| {
            let mut command = Command::new(client);
            command.args(["client", &port.to_string(), name]);
            std::thread::spawn(move || run(&mut command))
        });
        let clients: Vec<_> = clients.collect();
        let heard = clients.into_iter().map(|client| client.join().expect("a client that succeeds"));
        let heard: Vec<_> = heard.map(|output| without_noise(&output)).collect();
        let expected = ["two", "one"]
            .map(|other| format!("welcome to a chat of 100%\nhello from {other}, statistics 1\n"));
        assert_eq!(heard, expected, "at {}", server.display());
        assert_eq!(without_noise(&running.finish()), "connections 2\nleft 2\n", "{}", server.display());
    }
}

#[test]
fn no_message_is_delivered_after_a_close_without_notification() {
    let [original, ours] = [original(COMPAT, "silent"), with_rakwire(COMPAT, "silent")]
        .map(|program| without_noise(&run(Command::new(program).arg("silent"))));
    let expected = "closed: 1 2 3 lost\n";
    assert_eq!(ours, expected);
    // RakNet prints "lost" only if its network thread has not yet closed the connection.
    assert!(expected.starts_with(original.trim_end()), "{original}");
}

#[test]
fn bit_streams_encode_the_same_bytes_as_raknet() {
    let [original, ours] = [original(COMPAT, "bits"), with_rakwire(COMPAT, "bits")]
        .map(|program| run(Command::new(program).arg("bits")));
    assert_eq!(ours, original);
}
