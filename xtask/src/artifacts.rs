//! Build outputs of the commands: packages and pages for browsers, programs, and tests.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::files;
use crate::shell::Shell;
use crate::targets::{STATIC, WASM};

/// The WebAssembly file of the npm package.
pub const WASM_FILE: &str = "wasm/pkg/rakwire.wasm";
/// The package with the game's client and messages.
pub(crate) const GAME_PACKAGE: &str = "snowfight/wasm/pkg";
/// The page, ready to be served.
pub const PAGE: &str = "web/dist";

/// Prints the sizes and the imported modules of a WebAssembly file as JSON.
const INSPECT: &str = include_str!("inspect.mjs");

/// Builds the npm package as its README describes: WebAssembly and glue in wasm/pkg, the TypeScript API in wasm/dist.
pub fn npm_package(shell: &Shell) -> Result<String> {
    shell.cmd_for(WASM, "wasm", "npm", ["run", "build"]).run()?;
    let Inspection { raw, gzip, .. } = inspect_wasm(shell)?;
    Ok(format!("{WASM_FILE} has {raw} bytes, {gzip} with gzip"))
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
    built_page(shell)
}

/// Builds the page.
pub fn page(shell: &Shell) -> Result<String> {
    shell.cmd_in("web", "npm", ["run", "build"]).run()?;
    built_page(shell)
}

fn built_page(shell: &Shell) -> Result<String> {
    for page in ["index.html", "echo.html", "overhead.html", "servers.html"] {
        if !shell.path(PAGE).join(page).is_file() {
            bail!("the build of the pages did not produce {PAGE}/{page}");
        }
    }
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

/// Builds the programs. They only need to run, so a short build matters more than fast code.
pub fn programs(shell: &Shell) -> Result<String> {
    shell.cmd("cargo", ["build", "--bins"].into_iter().chain(PROGRAM_PACKAGES)).run()?;
    built_programs(shell).map(|programs| format!("{}, and others", programs.rakwire.display()))
}

const DEMO_PROGRAMS: [&str; 3] = ["rakwire-relay", "snowfight-server", "demo-echo"];

/// The programs that the demo runs.
pub(crate) struct DemoPrograms {
    pub(crate) relay: PathBuf,
    pub(crate) snowfight: PathBuf,
    pub(crate) echo: PathBuf,
}

/// Builds the programs of the demo, without features that it does not use: the command-line tool, and the relay's
/// certificates.
pub(crate) fn demo_programs(shell: &Shell) -> Result<String> {
    let packages = ["build", "-p", "rakwire-relay", "--no-default-features", "-p", "snowfight-server"];
    let programs = DEMO_PROGRAMS.iter().flat_map(|name| ["--bin", name]);
    shell.cmd("cargo", packages.into_iter().chain(programs)).run()?;
    built_demo_programs(shell).map(|programs| format!("{}, and others", programs.snowfight.display()))
}

/// Returns the programs of the demo as built by [`demo_programs`] or [`host_tests`].
pub(crate) fn built_demo_programs(shell: &Shell) -> Result<DemoPrograms> {
    let folder = target_dir(shell)?.join("debug");
    let [relay, snowfight, echo] = DEMO_PROGRAMS.map(|name| folder.join(name));
    for program in [&relay, &snowfight, &echo] {
        check_is_there(program)?;
    }
    Ok(DemoPrograms { relay, snowfight, echo })
}

fn check_is_there(program: &Path) -> Result<()> {
    if !program.is_file() {
        bail!("the build did not produce {}", program.display());
    }
    Ok(())
}

/// The tests of all crates. A single command builds each dependency once, with the features of all of them.
pub const HOST_TESTS: [&str; 4] = ["test", "--workspace", "--exclude", "rakwire-interop"];

/// Builds the tests of all crates, and with them the programs.
pub fn host_tests(shell: &Shell) -> Result<String> {
    shell.cmd("cargo", HOST_TESTS.into_iter().chain(["--no-run"])).run()?;
    built_programs(shell).map(|programs| format!("{}, and others", programs.rakwire.display()))
}

/// Returns the programs as built by [`programs`] or [`host_tests`], and sets their paths for all later children.
pub fn built_programs(shell: &Shell) -> Result<Programs> {
    programs_of(shell, "debug")
}

/// Builds the programs with optimisation.
pub fn fast_programs(shell: &Shell) -> Result<Programs> {
    shell.cmd("cargo", ["build", "--release", "--bins"].into_iter().chain(PROGRAM_PACKAGES)).run()?;
    programs_of(shell, "release")
}

/// Builds the tool and the relay with optimisation, each as a file that needs no system library.
pub fn static_programs(shell: &Shell) -> Result<[PathBuf; 2]> {
    let build = ["build", "--release", "--locked", "--bins", "--target", STATIC];
    let packages = ["-p", "rakwire-cli", "-p", "rakwire-relay"];
    shell.cmd_for(STATIC, ".", "cargo", build.into_iter().chain(packages)).run()?;
    let folder = target_dir(shell)?.join(STATIC).join("release");
    let programs = ["rakwire", "rakwire-relay"].map(|name| folder.join(name));
    programs.iter().try_for_each(|program| check_is_there(program))?;
    Ok(programs)
}

const PROGRAM_PACKAGES: [&str; 6] = ["-p", "rakwire-cli", "-p", "rakwire-relay", "-p", "snowfight-server"];

fn programs_of(shell: &Shell, profile: &str) -> Result<Programs> {
    let folder = target_dir(shell)?.join(profile);
    let [rakwire, relay, snowfight] =
        ["rakwire", "rakwire-relay", "snowfight-server"].map(|name| folder.join(name));
    let programs = Programs { rakwire, relay, snowfight };
    for program in [&programs.rakwire, &programs.relay, &programs.snowfight] {
        check_is_there(program)?;
    }
    shell.set("RAKWIRE_BIN", &programs.rakwire);
    shell.set("RAKWIRE_RELAY_BIN", &programs.relay);
    shell.set("SNOWFIGHT_BIN", &programs.snowfight);
    Ok(programs)
}

/// Builds the relay with optimisation, and sets its path for all later children.
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

/// Properties of a WebAssembly file.
pub struct Inspection {
    raw: u64,
    /// Size in bytes, compressed at the highest level.
    pub gzip: u64,
    /// The modules that it imports from.
    pub imports: Vec<String>,
}

/// Reads the sizes and the imports of the WebAssembly file of the npm package.
pub fn inspect_wasm(shell: &Shell) -> Result<Inspection> {
    let output = shell.cmd("node", ["--input-type=module", "--eval", INSPECT, WASM_FILE]).output()?;
    if !output.status.success() {
        bail!("{WASM_FILE} cannot be inspected");
    }
    parse_inspection(&output.stdout).context("the inspection of the WebAssembly file is not valid")
}

fn parse_inspection(printed: &str) -> Option<Inspection> {
    let value: Value = serde_json::from_str(printed).ok()?;
    let imports = value["imports"].as_array()?.iter();
    Some(Inspection {
        raw: value["raw"].as_u64()?,
        gzip: value["gzip"].as_u64()?,
        imports: imports.map(|module| module.as_str().map(str::to_owned)).collect::<Option<_>>()?,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inspection_is_parsed() {
        let found = parse_inspection(r#"{"raw":10,"gzip":5,"imports":["./rakwire_bg.js","env"]}"#).unwrap();
        assert_eq!((found.raw, found.gzip), (10, 5));
        assert_eq!(found.imports, ["./rakwire_bg.js", "env"]);
        assert!(parse_inspection("{}").is_none());
        assert!(parse_inspection("not json").is_none());
    }
}
