//! End-to-end tests of `rakwire bench`.

use std::path::Path;

use serde_json::Value;

use crate::support::{self, Server, text};
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rakwire"))
}

/// Durations to try; on a busy machine a short measurement may see too few messages.
const SECONDS: [&str; 3] = ["0.2", "2", "10"];

fn measure(listen: &[&str], more: &[&str], seconds: &str) -> (Option<i32>, String, String) {
    let server =
        Server::start(program(), &[&["bench", "--listen", "127.0.0.1:0"], listen].concat(), "listening on ");
    let arguments = [&["bench", &server.announced, "--seconds", seconds], more].concat();
    let output = support::run(program(), &arguments, "");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn bench_prints_the_measured_path_as_json() {
    let finds_something = |seconds| {
        let (status, out, err) = measure(&[], &["--json", "--size", "2000"], seconds);
        assert_eq!((status, err.as_str()), (Some(0), ""));
        let found: Value = serde_json::from_str(&out).expect("JSON");
        let messages = found["throughput"]["messages"].as_u64().expect("a count");
        assert_eq!(found["throughput"]["bytes"].as_u64(), Some(messages * 2_000));
        assert!(found["round_trip_us"]["p50"].as_u64() <= found["round_trip_us"]["max"].as_u64(), "{out}");
        assert_eq!(
            (&found["mtu"]["before"], &found["mtu"]["after"]),
            (&1_492.into(), &1_492.into()),
            "{out}"
        );
        messages > 0 && found["round_trips"].as_u64() > Some(0)
    };
    assert!(SECONDS.into_iter().any(finds_something), "no measurement has messages");
}

#[test]
fn bench_reports_losses_of_the_path() {
    let are_near = |seconds| {
        let (status, out, err) = measure(&["--simulate", "loss=30%,seed=3"], &[], seconds);
        assert_eq!((status, err.as_str()), (Some(0), ""));
        let line = out.lines().find(|line| line.starts_with("unreliable lost")).expect("the line");
        let percent = line.split_whitespace().nth(2).and_then(|value| value.parse::<f64>().ok());
        (5.0..60.0).contains(&percent.expect("a number"))
    };
    assert!(SECONDS.into_iter().any(are_near), "the reported losses differ");
}

#[test]
fn conflicting_arguments_are_reported_in_one_line() {
    for (arguments, status, part) in [
        (&["bench"][..], 2, "HOST:PORT"),
        (&["bench", "nowhere"], 2, "cannot use \"nowhere\" as an address"),
        (&["bench", "127.0.0.1:1", "--listen", "127.0.0.1:0"], 2, "cannot be used with"),
        (&["bench", "127.0.0.1:1", "--size", "1"], 2, "--size"),
        (&["bench", "--listen", "nowhere"], 2, "cannot listen on \"nowhere\""),
    ] {
        let output = support::run(program(), arguments, "");
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains(part) && err.lines().count() == 1, "{err}");
    }
}
