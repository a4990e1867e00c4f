//! The stages of `cargo xtask test` and `cargo xtask ci`.

use anyhow::{Result, bail};

use crate::artifacts;
use crate::checks;
use crate::demo;
use crate::fuzz;
use crate::mcu;
use crate::named_tests as documentation;
use crate::setup::{Need, THUMB, WASM};
use crate::shell::{Shell, Stdout};
use crate::size;
use crate::stage::Stage;

/// Every test of every part.
pub(crate) fn test_stages() -> Vec<Stage> {
    let mut stages = host_stages();
    stages.extend(microcontroller_stages());
    stages
}

fn microcontroller_stages() -> Vec<Stage> {
    vec![
        Stage {
            name: "size",
            about: "flash and RAM on microcontrollers, and no panic in the core",
            needs: &size::NEEDS,
            run: size::stage,
        },
        Stage {
            name: "mcu",
            about: "the firmware in QEMU, against our server and those of others",
            needs: &mcu::NEEDS,
            run: mcu::stage,
        },
    ]
}

fn host_stages() -> Vec<Stage> {
    vec![
        Stage {
            name: "targets",
            about: "the core builds for microcontrollers and for browsers",
            needs: &[Need::ThumbTarget, Need::WasmTarget],
            run: targets,
        },
        Stage { name: "edges", about: "no part depends on what it must not", needs: &[], run: checks::edges },
        Stage {
            name: "docs",
            about: "the tests that the documentation names exist",
            needs: &[],
            run: named_tests,
        },
        Stage {
            name: "cargo",
            about: "the tests of all crates, with foreign RakNet peers",
            needs: &[Need::Peers],
            run: cargo_tests,
        },
        Stage {
            name: "fuzz",
            about: "generated input against the core, for a minute",
            needs: &[Need::CargoFuzz],
            run: fuzz::stage,
        },
        Stage {
            name: "wasm",
            about: "the npm package: build, contents, tests",
            needs: &[
                Need::Node,
                Need::WasmTarget,
                Need::WasmBindgen,
                Need::WasmPack,
                Need::Packages,
                Need::Chromium,
            ],
            run: wasm_tests,
        },
        Stage {
            name: "web",
            about: "the page in Chromium",
            needs: &[Need::Node, Need::Packages, Need::Chromium, Need::Peers],
            run: web_tests,
        },
        Stage {
            name: "demo",
            about: "the demo, once through connect, send and echo in Chromium",
            needs: &[Need::Node, Need::Packages, Need::Chromium],
            run: demo_smoke,
        },
    ]
}

/// What a change must pass: the cheap checks first, then every test.
pub(crate) fn ci_stages() -> Vec<Stage> {
    let mut stages = vec![
        Stage { name: "fmt", about: "the code is formatted", needs: &[Need::Components], run: fmt },
        Stage { name: "deny", about: "licences, bans and sources", needs: &[Need::CargoDeny], run: deny },
        Stage { name: "clippy", about: "no lint warns", needs: &[Need::Components], run: clippy },
        Stage {
            name: "firmware",
            about: "the firmwares are formatted, and no lint warns",
            needs: &[Need::Components, Need::FirmwareTargets],
            run: mcu::lints,
        },
        Stage { name: "doc", about: "the documentation builds without warnings", needs: &[], run: doc },
    ];
    stages.extend(test_stages());
    stages
}

fn fmt(shell: &mut Shell) -> Result<()> {
    shell.cmd("cargo", ["fmt", "--all", "--check"]).run()?;
    shell.cmd_in(fuzz::FOLDER, "cargo", ["fmt", "--check"]).run()
}

fn deny(shell: &mut Shell) -> Result<()> {
    shell.cmd("cargo", ["deny", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]).run()
}

fn clippy(shell: &mut Shell) -> Result<()> {
    let args = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    shell.cmd("cargo", args).run()
}

fn doc(shell: &mut Shell) -> Result<()> {
    let doc = shell.cmd("cargo", ["doc", "--workspace", "--no-deps"]);
    doc.with(|command| {
        command.env("RUSTDOCFLAGS", "-D warnings");
    })
    .run()
}

fn targets(shell: &mut Shell) -> Result<()> {
    for target in [THUMB, WASM] {
        let args = ["build", "-p", "rakwire", "--no-default-features", "--target", target];
        shell.cmd_for(target, ".", "cargo", args).run()?;
    }
    Ok(())
}

fn named_tests(shell: &mut Shell) -> Result<()> {
    documentation::check(&shell.path("."))
}

fn cargo_tests(shell: &mut Shell) -> Result<()> {
    shell.cmd("cargo", ["test", "--workspace", "--exclude", "rakwire"]).run()?;
    shell.cmd("cargo", ["test", "-p", "rakwire", "--all-features"]).run()
}

fn wasm_tests(shell: &mut Shell) -> Result<()> {
    artifacts::wasm(shell)?;
    let imports = artifacts::inspect_wasm(shell)?.imports;
    if imports.iter().any(|module| module == "env") {
        bail!("{} imports from \"env\", which no page provides", artifacts::WASM_FILE);
    }
    println!("{} imports from: {}", artifacts::WASM_FILE, imports.join(", "));
    artifacts::binaries(shell)?;
    shell.cmd_in("wasm", "npm", ["test"]).run()
}

fn web_tests(shell: &mut Shell) -> Result<()> {
    artifacts::binaries(shell)?;
    artifacts::web(shell)?;
    shell.cmd_in("web", "npm", ["test"]).run()
}

fn demo_smoke(shell: &mut Shell) -> Result<()> {
    let before = shell.stdout;
    shell.stdout = Stdout::ToStderr;
    let line = demo::smoke_test(shell);
    shell.stdout = before;
    println!("{}", line?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn stages_have_names_of_their_own() {
        let stages = ci_stages();
        let names: BTreeSet<_> = stages.iter().map(|stage| stage.name).collect();
        assert_eq!(names.len(), stages.len());
    }

    #[test]
    fn ci_runs_every_test_stage() {
        let ci: BTreeSet<_> = ci_stages().iter().map(|stage| stage.name).collect();
        assert!(test_stages().iter().all(|stage| ci.contains(stage.name)));
    }
}
