//! Tests C and C++ programs, compiled with all warnings as errors. They run under the sanitizers and valgrind, and
//! connect to each other and to C++ RakNet.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Background, Build, compile, run};

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// Runs a server of `examples/server.c` and a client of `examples/echo.c`.
fn echo(server: &mut Command, client: &mut Command, arguments: &[&str]) {
    let (server, port) = Background::server(server.args(["127.0.0.1:0", "1"]));
    let output = run(client.arg(address(port)).args(arguments));
    assert!(output.contains("wrong 0"), "{output}");
    let log = server.finish();
    assert!(log.contains(" connected\n") && log.contains(" disconnected: the peer disconnected"), "{log}");
}

/// Compiles the examples.
fn examples(compiler: &str, standard: &str, build: Build, to: &Path) -> [PathBuf; 2] {
    ["examples/server.c", "examples/echo.c"].map(|source| compile(compiler, standard, source, build, to))
}

#[test]
fn examples_run_with_the_shared_library() {
    let to = crate::common::scratch("shared");
    let [server, client] = examples("gcc", "c11", Build::Shared, &to);
    echo(&mut Command::new(server), &mut Command::new(client), &["1000", "100"]);
}

#[test]
fn examples_run_under_the_sanitizers() {
    let to = crate::common::scratch("sanitized");
    let [server, client] = examples("gcc", "c11", Build::Sanitized, &to);
    for arguments in [["1000", "100"], ["3", "300000"]] {
        echo(&mut Command::new(&server), &mut Command::new(&client), &arguments);
    }
}

#[test]
fn examples_run_under_valgrind() {
    let to = crate::common::scratch("valgrind");
    let [server, client] = examples("gcc", "c11", Build::Static, &to);
    let valgrind = |program: PathBuf| {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=definite"]);
        command.args(["--errors-for-leak-kinds=definite"]).arg(program);
        command
    };
    echo(&mut valgrind(server), &mut valgrind(client), &["20", "2000"]);
}

#[test]
fn a_wrong_password_is_reported_to_the_client() {
    let to = crate::common::scratch("password");
    let [server, client] = examples("gcc", "c11", Build::Sanitized, &to);
    let (_server, port) = Background::server(Command::new(server).args(["127.0.0.1:0", "1", "friends"]));
    let refused = Command::new(&client).args([&address(port), "1", "10", "enemies"]).output();
    let refused = refused.expect("a client that runs");
    assert!(!refused.status.success());
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("password"), "{text}");
    run(Command::new(&client).args([&address(port), "1", "10", "friends"]));
}

/// The programs call every function with invalid arguments, and check the error codes.
#[test]
fn invalid_input_returns_error_codes_in_c_and_cpp() {
    let to = crate::common::scratch("bad");
    for (compiler, standard, source) in [
        ("gcc", "c11", "tests/bad_input.c"),
        ("g++", "c++17", "tests/bad_input_cpp.cpp"),
        ("g++", "c++20", "tests/bad_input_cpp.cpp"),
    ] {
        run(&mut Command::new(compile(compiler, standard, source, Build::Sanitized, &to)));
    }
}

#[test]
fn calls_on_another_thread_stop_a_debug_build_and_fail_in_a_release_build() {
    let to = crate::common::scratch("threads");
    let source = "tests/threads.cpp";
    let release = to.join("release.cpp");
    let include = crate::common::folder().join(source);
    fs::write(&release, format!("#define NDEBUG\n#include \"{}\"\n", include.display())).expect("a program");
    for source in [source, release.to_str().expect("a path in UTF-8")] {
        run(&mut Command::new(compile("g++", "c++17", source, Build::Sanitized, &to)));
    }
}

/// Returns the code blocks of a document that are in one language.
fn blocks<const COUNT: usize>(document: &str, language: &str) -> [String; COUNT] {
    let text = fs::read_to_string(crate::common::folder().join(document)).expect("a document");
    let open = format!("```{language}\n");
    let found = text.split(&open).skip(1).map(|rest| rest.split("```").next().unwrap_or_default().to_owned());
    let found: Vec<_> = found.collect();
    found.try_into().unwrap_or_else(|found: Vec<_>| {
        panic!("{document} has {} blocks of {language}, not {COUNT}", found.len())
    })
}

/// Compiles code of a document that is only a part of a program.
fn check_part(name: &str, header: &str, before: &str, code: &str, compiler: &str) {
    let source = crate::common::scratch("parts").join(name);
    let text = format!("#include <{header}>\nvoid game(void);\nvoid game(void) {{\n{before}{code}}}\n");
    fs::write(&source, text).expect("a program");
    let mut command = Command::new(compiler);
    command
        .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
        .arg(crate::common::folder().join("include"));
    run(command.arg(&source));
}

#[test]
fn examples_of_the_readme_compile() {
    let [in_c] = blocks("README.md", "c");
    check_part("readme.c", "rakwire.h", "", &in_c, "gcc");
    let [in_cpp] = blocks("README.md", "cpp");
    check_part("readme.cpp", "rakwire.hpp", "", &in_cpp, "g++");
}

#[test]
fn the_server_and_the_client_of_from_c_md_run() {
    let to = crate::common::scratch("chapter");
    let [server, secure] = blocks("../docs/from-c.md", "cpp");
    check_part("chapter.cpp", "rakwire.hpp", "rakwire::Key server_public_key{};\n", &secure, "g++");
    let [client] = blocks("../docs/from-c.md", "c");
    let program = |name: &str, code: &str, port: u16, compiler: &str, standard: &str| {
        assert!(code.contains(":19132"), "{name} has no port to replace");
        let source = to.join(name);
        fs::write(&source, code.replace("19132", &port.to_string())).expect("a program");
        compile(compiler, standard, source.to_str().expect("a path in UTF-8"), Build::Sanitized, &to)
    };

    // The server in docs/from-c.md echoes to three clients, and continues to run after they have disconnected.
    let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = free.expect("a free port").port();
    let mut running =
        Background::start(&mut Command::new(program("server.cpp", &server, port, "g++", "c++17")));
    let [_, echo] = examples("gcc", "c11", Build::Static, &to);
    for _ in 0..3 {
        let output = run(Command::new(&echo).args([&address(port), "100", "100"]));
        assert!(output.contains("wrong 0"), "{output}");
    }
    assert!(running.is_running());

    // The client in docs/from-c.md connects. `stdbuf` makes the server flush each line.
    let [other, _] = examples("gcc", "c11", Build::Static, &to);
    let (mut other, port) =
        Background::server(Command::new("stdbuf").arg("-oL").arg(other).arg("127.0.0.1:0"));
    let mut running = Background::start(&mut Command::new(program("client.c", &client, port, "gcc", "c11")));
    assert!(other.line().ends_with(" connected"));
    assert!(running.is_running());
}

/// The program does not count the first exchange, which allocates buffers.
#[test]
fn message_exchange_and_errors_in_a_signal_handler_allocate_nothing() {
    let to = crate::common::scratch("allocations");
    let output = run(&mut Command::new(compile("gcc", "c11", "tests/allocations.c", Build::Static, &to)));
    assert_eq!(output, "allocations 0, in a signal handler 0\n");
}

/// The program calls every function, and checks its effect.
#[test]
fn every_function_has_its_effect_when_called_from_c() {
    let to = crate::common::scratch("functions");
    run(&mut Command::new(compile("gcc", "c11", "tests/functions.c", Build::Sanitized, &to)));
}

/// Returns the folder of the programs that `interop/setup.sh` builds.
fn interop() -> PathBuf {
    let folder = std::env::var_os("INTEROP_BIN_DIR").map(PathBuf::from);
    folder.unwrap_or_else(|| crate::common::folder().join("../target/interop/bin"))
}

fn original() -> PathBuf {
    let peer = interop().join("cpp-peer");
    assert!(
        peer.exists(),
        "{} is missing: run interop/setup.sh cpp, or set INTEROP_BIN_DIR to the folder of its programs",
        peer.display()
    );
    peer
}

#[test]
fn a_client_in_c_receives_echoes_from_raknet() {
    let to = crate::common::scratch("original-server");
    let [_, client] = examples("gcc", "c11", Build::Sanitized, &to);
    let (server, port) = Background::server(Command::new(original()).args(["server", "--port", "0"]));
    for arguments in [["1000", "100"], ["1", "150000"]] {
        let output = run(Command::new(&client).arg(address(port)).args(arguments));
        assert!(output.contains("wrong 0"), "{output}");
    }
    drop(server);
}

#[test]
fn raknet_receives_echoes_from_a_server_in_c() {
    let to = crate::common::scratch("original-client");
    let [server, _] = examples("gcc", "c11", Build::Sanitized, &to);
    let (server, port) = Background::server(Command::new(server).args(["127.0.0.1:0", "1"]));
    let output = run(Command::new(original()).args(["client", &address(port), "--count", "100"]));
    assert!(output.contains("\"echoed\":100"), "{output}");
    drop(server);
}
