//! The stage of the backend of `bevy_replicon`.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::artifacts;
use crate::files;
use crate::setup::Need;
use crate::shell::Shell;
use crate::targets::WASM;
use crate::workspaces::{self, cargo, target_dir};

pub(super) const NEEDS: [Need; 7] = [
    Need::Components,
    Need::Node,
    Need::Packages,
    Need::Chromium,
    Need::Programs,
    Need::WasmTarget,
    Need::WasmBindgen,
];

const FOLDER: &str = "bevy";
const CHAPTER: &str = "docs/from-bevy.md";
/// The manifest of a new crate, with the profile of the backend's workspace.
const MANIFEST: &str = r#"[package]
name = "game"
edition = "2024"

[workspace]

[profile.dev]
debug = "line-tables-only"

[profile.dev.package."*"]
debug = false
"#;
/// The game, which is a program and a page.
const EXAMPLE: &str = "snowballs";

/// Checks the backend for programs and for browsers, and plays in a page of the relay.
pub(super) fn check(shell: &Shell) -> Result<()> {
    workspaces::check(shell, FOLDER)?;
    install(shell)?;
    let examples = ["--example", "browser", "--example", EXAMPLE];
    let for_browsers = [&["--locked", "--lib"], &examples[..], &["--target", WASM]].concat();
    // The examples enable secure connections, so the library is also checked alone.
    for built in [&["--locked", "--lib", "--target", WASM][..], for_browsers.as_slice()] {
        cargo(shell, FOLDER, &[&["clippy"], built, &["--", "-D", "warnings"]].concat()).run()?;
    }
    cargo(shell, FOLDER, &[&["build"], &for_browsers[..]].concat()).run()?;
    let built = shell.path(&target_dir(FOLDER));
    let page = built.join("page");
    let wasm = built.join(WASM).join("debug/examples").join(EXAMPLE).with_extension("wasm");
    let bind = [files::text(&wasm)?, "--out-dir", files::text(&page)?, "--target", "web", "--no-typescript"];
    shell.cmd("wasm-bindgen", bind).run()?;
    let html = shell.path("bevy/examples").join(EXAMPLE).join("index.html");
    fs::copy(&html, page.join("index.html")).with_context(|| format!("copy {}", html.display()))?;
    artifacts::built_programs(shell)?;
    // Cargo has built the program with the tests.
    let program = built.join("debug/examples").join(EXAMPLE);
    let test = shell.cmd_in(FOLDER, "node", ["--test", "--test-reporter=spec", "tests/page.test.mjs"]);
    test.env("SNOWBALLS_BIN", program).env("SNOWBALLS_PAGE", page).run()
}

/// Returns the code of the first block of a document in this language.
fn block<'t>(text: &'t str, language: &str) -> Result<&'t str> {
    let found = text.split_once(&format!("```{language}\n")).and_then(|(_, rest)| rest.split_once("```"));
    found.map(|(code, _)| code).with_context(|| format!("{CHAPTER} has no block of {language}"))
}

/// Runs the commands of the chapter in a new crate next to a clone, and checks the server of the chapter in it. The crate
/// takes over the locked versions and the target folder, so that Bevy is not compiled again.
fn install(shell: &Shell) -> Result<()> {
    let text = shell.read(CHAPTER)?;
    let commands = block(&text, "sh")?;
    ensure!(commands.lines().count() == 2, "{CHAPTER} does not begin with two commands");
    let built = shell.path(&target_dir(FOLDER));
    let folder = built.join("install");
    files::empty_folder(&folder)?;
    std::os::unix::fs::symlink(shell.path("."), folder.join("rakwire"))
        .context("create a link to the repository")?;
    let game = folder.join("game");
    files::create_folder(&game.join("src"))?;
    files::write(&game.join("Cargo.toml"), MANIFEST)?;
    files::write(&game.join("src/main.rs"), block(&text, "rust")?)?;
    files::copy(&shell.path(FOLDER).join("Cargo.lock"), &game.join("Cargo.lock"))?;
    shell.cmd("sh", ["-e", "-c", commands]).folder(&game).run()?;
    shell.cmd("cargo", ["check"]).folder(&game).env("CARGO_TARGET_DIR", &built).run()
}
