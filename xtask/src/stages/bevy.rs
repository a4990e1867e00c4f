//! The stage of the backend of `bevy_replicon`.

use std::fs;

use anyhow::{Context, Result};

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
/// The game, which is a program and a page.
const EXAMPLE: &str = "snowballs";

/// Checks the backend for programs and for browsers, and plays in a page of the relay.
pub(super) fn check(shell: &Shell) -> Result<()> {
    workspaces::check(shell, FOLDER)?;
    shell.cmd_in(FOLDER, "./check", []).env("CARGO_TARGET_DIR", shell.path(&target_dir(FOLDER))).run()?;
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
