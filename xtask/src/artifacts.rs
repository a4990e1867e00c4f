//! Builds what the commands need: packages and pages for browsers, programs, and tests.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::files;
use crate::shell::Shell;
use crate::targets::{STATIC, WASM};

/// The WebAssembly file of the npm package.
const WASM_FILE: &str = "wasm/pkg/rakwire.wasm";
/// The folder of the package with the game's client and messages.
pub(crate) const GAME_PACKAGE: &str = "snowfight/wasm/pkg";
/// The folder of the built page.
pub const PAGE: &str = "web/dist";

/// Builds the npm package as its README describes: WebAssembly and glue in wasm/pkg, the TypeScript API in wasm/dist.
pub fn npm_package(shell: &Shell) -> Result<String> {
    shell.cmd_for(WASM, "wasm", "npm", ["run", "build"]).run()?;
    let bytes = fs::metadata(shell.path(WASM_FILE))
        .with_context(|| format!("the build did not produce {WASM_FILE}"))?
        .len();
    Ok(format!("{WASM_FILE} has {bytes} bytes"))
}

/// Builds the package with the game's client and messages, in snowfight/wasm/pkg.
pub fn game_package(shell: &Shell) -> Result<String> {
    let build = ["build", "-p", "snowfight-wasm", "--lib", "--profile", "npm", "--target", WASM];
    shell.cmd_for(WASM, ".", "cargo", build).run()?;
    bind_game(shell, "npm")
}

/// Builds the WebAssembly of the demo with a single cargo call and without size optimisation: a development build of
/// the npm package, and the game's client and messages.
pub(crate) fn demo_wasm(shell: &Shell) -> Result<String> {
    let build = ["build.mjs", "--development", "-p", "snowfight-wasm"];
    shell.cmd_for(WASM, "wasm", "node", build).run()?;
    bind_game(shell, "debug").map(|game| format!("wasm/pkg and {game}"))
}

/// Creates the game package from the WebAssembly in a profile's build folder.
fn bind_game(shell: &Shell, profile: &str) -> Result<String> {
    let built = target_dir(shell)?.join(WASM).join(profile).join("snowfight_wasm.wasm");
    shell.cmd("wasm-bindgen", [files::text(&built)?, "--out-dir", GAME_PACKAGE, "--target", "web"]).run()?;
    Ok(GAME_PACKAGE.to_owned())
}

/// Builds the package of the game with wasm-pack, in a separate folder.
pub(crate) fn wasm_pack(shell: &Shell, folder: &str) -> Result<()> {
    let build = ["build", "--mode", "no-install", "--no-opt", "--target", "web", "--out-dir", folder];
    shell.cmd_for(WASM, "snowfight/wasm", "wasm-pack", build.into_iter().chain(["--profile", "npm"])).run()
}

/// Builds the page with the demo WebAssembly, without type checks.
pub(crate) fn demo_page(shell: &Shell) -> Result<String> {
    shell.cmd_in("web", "node_modules/.bin/vite", ["build"]).run()?;
    Ok(PAGE.to_owned())
}

/// Builds the page.
pub fn page(shell: &Shell) -> Result<String> {
    shell.cmd_in("web", "npm", ["run", "build"]).run()?;
    Ok(PAGE.to_owned())
}

/// The programs that users run: the command-line tool, the relay and the game's server.
pub struct Programs {
    /// The command-line tool.
    pub rakwire: PathBuf,
    /// The relay.
    pub relay: PathBuf,
    /// The game's server.
    pub snowfight: PathBuf,
}

/// Builds the programs without optimisation, because a short build matters more than fast code.
pub fn programs(shell: &Shell) -> Result<String> {
    shell.cmd("cargo", ["build", "--bins"].into_iter().chain(PROGRAM_PACKAGES)).run()?;
    built_programs(shell).map(|programs| format!("{}, and others", programs.rakwire.display()))
}

const DEMO_PROGRAMS: [&str; 3] = ["rakwire-relay", "snowfight-server", "demo-echo"];

/// Builds the programs of the demo, without the features that it does not use, such as the relay's certificates.
pub(crate) fn demo_programs(shell: &Shell) -> Result<String> {
    let packages = ["build", "-p", "rakwire-relay", "--no-default-features", "-p", "snowfight-server"];
    let programs = DEMO_PROGRAMS.iter().flat_map(|name| ["--bin", name]);
    shell.cmd("cargo", packages.into_iter().chain(programs)).run()?;
    Ok(built_demo_programs(shell)?[1].display().to_string() + ", and others")
}

/// Returns the relay, the game server and the echo server of the demo as built by [`demo_programs`] or [`host_tests`].
pub(crate) fn built_demo_programs(shell: &Shell) -> Result<[PathBuf; 3]> {
    built(shell, "debug", DEMO_PROGRAMS)
}

/// Returns programs in the build folder of a profile.
fn built<const N: usize>(shell: &Shell, profile: &str, names: [&str; N]) -> Result<[PathBuf; N]> {
    let folder = target_dir(shell)?.join(profile);
    let programs = names.map(|name| folder.join(name));
    match programs.iter().find(|program| !program.is_file()) {
        Some(missing) => bail!("the build did not produce {}", missing.display()),
        None => Ok(programs),
    }
}

/// The tests of all crates, as arguments of cargo. One command builds each dependency once, with the union of features.
pub const HOST_TESTS: [&str; 4] = ["test", "--workspace", "--exclude", "rakwire-interop"];

/// Builds the tests and the programs of all crates.
pub fn host_tests(shell: &Shell) -> Result<String> {
    shell.cmd("cargo", HOST_TESTS.into_iter().chain(["--no-run"])).run()?;
    built_programs(shell).map(|programs| format!("{}, and others", programs.rakwire.display()))
}

/// Returns the programs built by [`programs`] or [`host_tests`], and sets their paths for all later child processes.
pub fn built_programs(shell: &Shell) -> Result<Programs> {
    programs_of(shell, "debug")
}

/// Builds the programs with optimisation.
pub fn fast_programs(shell: &Shell) -> Result<Programs> {
    shell.cmd("cargo", ["build", "--release", "--bins"].into_iter().chain(PROGRAM_PACKAGES)).run()?;
    programs_of(shell, "release")
}

/// Builds the command-line tool and the relay with optimisation, each as a static program.
pub fn static_programs(shell: &Shell) -> Result<[PathBuf; 2]> {
    let build = ["build", "--release", "--locked", "--bins", "--target", STATIC];
    let packages = ["-p", "rakwire-cli", "-p", "rakwire-relay"];
    shell.cmd_for(STATIC, ".", "cargo", build.into_iter().chain(packages)).run()?;
    built(shell, &format!("{STATIC}/release"), ["rakwire", "rakwire-relay"])
}

const PROGRAM_PACKAGES: [&str; 6] = ["-p", "rakwire-cli", "-p", "rakwire-relay", "-p", "snowfight-server"];

fn programs_of(shell: &Shell, profile: &str) -> Result<Programs> {
    let [rakwire, relay, snowfight] =
        built(shell, profile, ["rakwire", "rakwire-relay", "snowfight-server"])?;
    let programs = Programs { rakwire, relay, snowfight };
    shell.set("RAKWIRE_BIN", &programs.rakwire);
    shell.set("RAKWIRE_RELAY_BIN", &programs.relay);
    shell.set("SNOWFIGHT_BIN", &programs.snowfight);
    Ok(programs)
}

/// Builds the relay with optimisation, and sets its path for all later child processes.
pub fn fast_relay(shell: &Shell) -> Result<String> {
    shell.cmd("cargo", ["build", "--release", "--package", "rakwire-relay"]).run()?;
    let relay = target_dir(shell)?.join("release/rakwire-relay");
    shell.set("RAKWIRE_RELAY_BIN", &relay);
    Ok(relay.display().to_string())
}

/// Builds the benchmark program.
pub fn benchmark(shell: &Shell) -> Result<String> {
    shell.cmd("cargo", ["build", "--release", "--package", "rakwire-bench"]).run()?;
    Ok("rakwire-bench".to_owned())
}

/// Returns the output of `cargo metadata` about the packages of the workspace.
pub fn metadata(shell: &Shell) -> Result<Value> {
    let output = shell.cmd("cargo", ["metadata", "--no-deps", "--format-version", "1"]).output()?;
    serde_json::from_str(&output.stdout).context("`cargo metadata` did not print JSON")
}

/// Returns cargo's target folder.
pub fn target_dir(shell: &Shell) -> Result<PathBuf> {
    let metadata = metadata(shell)?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .context("`cargo metadata` reports no target folder")
}
