//! The environment of a measurement: machine, build and load.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result};

use crate::report::Environment;

/// The names of the version variables in `interop/setup.sh`.
const VERSIONS: [(&str, &str); 3] = [
    ("cpp", "cpp_version="),
    ("rust-raknet", "rust_raknet_version="),
    ("tokio-raknet", "tokio_raknet_version="),
];

/// Describes this machine and this build.
pub(crate) fn begin(runs: u32) -> Result<Environment> {
    let script = std::fs::read_to_string("interop/setup.sh").unwrap_or_default();
    let version = |(name, key): (&str, &str)| {
        let line = script.lines().find_map(|line| line.strip_prefix(key))?;
        Some((name.to_owned(), line.replace('@', " ")))
    };
    Ok(Environment {
        command: "cargo xtask bench".to_owned(),
        commit: commit(),
        rustc: output_of("rustc", &["--version"]),
        boot: boot(),
        system: output_of("uname", &["-sr"]),
        processor: processor(),
        load: [load()?; 2],
        runs,
        peers: VERSIONS.into_iter().filter_map(version).collect::<BTreeMap<_, _>>(),
    })
}

/// Records the load of the machine at the end of the measurement.
pub(crate) fn end(environment: &mut Environment) -> Result<()> {
    let [_, end] = &mut environment.load;
    *end = load()?;
    Ok(())
}

fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// Returns the commit, with `-dirty` if files other than the documents differ from it. Documents may differ, because
/// publishing figures changes them.
fn commit() -> String {
    let hash = output_of("git", &["rev-parse", "--short=12", "HEAD"]);
    let changes = output_of("git", &["status", "--porcelain", "-uno", "--", ".", ":(exclude)docs"]);
    if changes.is_empty() { hash } else { hash + "-dirty" }
}

/// Returns the system's id of its current boot.
fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map_or_else(|_| "unknown".to_owned(), |id| id.trim().to_owned())
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{}, {cores} cores", name.map_or("unknown", |(_, name)| name))
}

fn load() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").context("the system does not report its load")?;
    text.split(' ').next().and_then(|load| load.parse().ok()).context("the system does not report its load")
}
