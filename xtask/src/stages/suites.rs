//! Stages that run the tests of the parts, alone and with programs of others.

use std::path::Path;

use anyhow::Result;

use super::boards;
use crate::artifacts;
use crate::demo;
use crate::files;
use crate::interop;
use crate::npm_size;
use crate::quickstarts;
use crate::results::Runner;
use crate::schedule::{Load, Resource};
use crate::setup::Need;
use crate::shell::Shell;
use crate::smoke;
use crate::stage::{Stage, Tier};
use crate::targets::WASM;

/// The needs of the tests of the npm package that run in Node and Chromium.
const NODE_AND_CHROMIUM: [Need; 5] =
    [Need::Node, Need::NpmPackage, Need::Chromium, Need::HostTests, Need::CppPeer];

/// The needs of a page in several browsers that talks to our programs and to other servers.
const BROWSERS: [Need; 11] = [
    Need::Node,
    Need::NpmPackage,
    Need::Chromium,
    Need::Firefox,
    Need::Xvfb,
    Need::OpenSsl,
    Need::CertUtil,
    Need::IpRoute,
    Need::Nftables,
    Need::HostTests,
    Need::CppPeer,
];

/// The needs of games between pages.
const DEMO: [Need; 3] = [Need::Page, Need::Chromium, Need::HostTests];

/// The tests for the development of a change.
#[rustfmt::skip]
pub(super) fn tests() -> [Stage; 7] {
    [
        Stage::new("cargo", "the tests of all crates except the core, including those behind the distribution's proxies and routers",
            &[Need::HostTests, Need::Nginx, Need::HaProxy, Need::Caddy, Need::IpRoute, Need::Nftables],
            |shell| cargo_tests(shell, "*/core:*/deps/*) exit ;;", &[]))
            .reruns(Runner::Cargo).load(Load::Half).tier(Tier::Test, "the tests"),
        Stage::new("core", "the tests of the core", &[Need::HostTests],
            |shell| cargo_tests(shell, "*/core:*/deps/*) ;; *) exit ;;", &["--tests"]))
            .reruns(Runner::Cargo).tier(Tier::Test, "the tests of the core keep a core busy; most others wait"),
        Stage::new("wasm", "the npm package in Node and Chromium: build, size, contents, tests", &NODE_AND_CHROMIUM, wasm_tests)
            .reruns(Runner::Node("wasm")).load(Load::Half).tier(Tier::Test, "the same core with another API"),
        Stage::new("game", "the messages and the client of the game in JavaScript", &[Need::Node, Need::GamePackage], game_tests)
            .tier(Tier::Test, "seconds"),
        Stage::new("interop-smoke", "our endpoint with one other RakNet, the original called from Python",
            &[Need::HostTests, Need::PythonPeer], interop::smoke)
            .part_of("interop").tier(Tier::Test, "the one other RakNet that is available in seconds"),
        Stage::new("web", "the page in Chromium", &[Need::Page, Need::Chromium, Need::HostTests, Need::CppPeer], web_tests)
            .reruns(Runner::Node("web")).tier(Tier::Test, "the page that `cargo xtask demo` serves"),
        Stage::new("demo", "the demo: a page watches a game with bots, and two pages play against each other over RakNet, with and without replication",
            &DEMO, demo_game)
            .part_of("demo-all").tier(Tier::Test, "all parts together"),
    ]
}

/// Tests with more programs, and of other parts that a change may break.
#[rustfmt::skip]
pub(super) fn tests_of_all_peers() -> [Stage; 8] {
    [
        Stage::new("demo-all", "the demo: two pages play against each other with each protocol", &DEMO, demo_games)
            .tier(Tier::Nightly, "takes minutes, because pages are rendered without a GPU"),
        Stage::new("secure", "the tests of secure connections with the BLAKE2s implementation of servers", &[], secure_tests)
            .uses(Resource::DevProfile).tier(Tier::Ci, "compiles the core again, for one hash function"),
        Stage::new("wasm-pack", "the game package built by wasm-pack", &[Need::Node, Need::WasmPack], wasm_pack_tests)
            .tier(Tier::Nightly, "its tool takes minutes to install"),
        Stage::new("interop", "our endpoint and the relay with other implementations, and the page of the results",
            &[Need::HostTests, Need::Peers, Need::Redis, Need::HaProxy, Need::TShark], interop::stage)
            .tier(Tier::Ci, "downloads and compiles all other RakNet implementations"),
        Stage::new("wasm-browsers", "the npm package in Firefox and Chromium, with each transport and with other servers",
            &BROWSERS, |shell| npm_tests(shell, |file| OTHER_BROWSERS.contains(&file)))
            .reruns(Runner::Node("wasm")).load(Load::Half).tier(Tier::Ci, "needs another browser, certificates and networks"),
        Stage::new("wasm-closing", "the npm package in Firefox and Chromium: closed tabs, silent transports, failing relays",
            &BROWSERS, |shell| npm_tests(shell, |file| CLOSING.contains(&file)))
            .reruns(Runner::Node("wasm")).load(Load::Half).tier(Tier::Nightly, "waits for timeouts of each browser and transport"),
        Stage::new("quickstarts", "the commands of the quickstarts print the documented output",
            &[Need::HostTests], quickstarts::check)
            .load(Load::Half).tier(Tier::Ci, "documents change less often than code"),
        Stage::new("parts", "tests of the core that depend on its profile pass in both, and one without an allocator",
            &[], boards::parts)
            .uses(Resource::DevProfile).part_of("parts-all").tier(Tier::Ci, "compiles the core three more times"),
    ]
}

/// Runs the test programs that these branches of `case FOLDER:PROGRAM in` do not skip. The folder is that of the package.
/// Cargo does not select the programs, because it would then build the crates with other features.
fn cargo_tests(shell: &Shell, branches: &str, more: &[&str]) -> Result<()> {
    let script = format!("case $PWD:$1 in {branches} esac; exec \"$@\"");
    let runner = format!("target.'cfg(unix)'.runner = {:?}", ["sh", "-c", &script, "sh"]);
    let args = ["--no-fail-fast", "--config", &runner].into_iter().chain(more.iter().copied());
    let tests = shell.cmd("cargo", artifacts::HOST_TESTS.into_iter().chain(args));
    // Most tests of drivers and of the relay wait for sockets and timers.
    tests.env("RUST_TEST_THREADS", "6").run()
}

/// Runs the tests of secure connections with the BLAKE2s implementation of servers: in the whole workspace the driver for
/// boards selects the smaller one.
fn secure_tests(shell: &Shell) -> Result<()> {
    shell.cmd("cargo", ["test", "-p", "rakwire", "--lib", "secure::"]).run()
}

fn wasm_tests(shell: &Shell) -> Result<()> {
    npm_size::check(shell, &[])?;
    npm_tests(shell, |file| !OTHER_BROWSERS.contains(&file) && !CLOSING.contains(&file))
}

/// Tests of the npm package that need more than Node, Chromium and one other server.
const OTHER_BROWSERS: [&str; 5] = [
    "foreign.test.mjs",
    "local-network.test.mjs",
    "paths.test.mjs",
    "transports.test.mjs",
    "webrtc.test.mjs",
];
/// Tests that mostly wait for timeouts, in all browsers.
const CLOSING: [&str; 3] = ["failures-firefox.test.mjs", "leave.test.mjs", "unanswered.test.mjs"];

/// Runs the tests of the npm package in files with these names.
fn npm_tests(shell: &Shell, is_wanted: impl Fn(&str) -> bool) -> Result<()> {
    const FOLDER: &str = "wasm/tests";
    artifacts::built_programs(shell)?;
    let names = files::names(&shell.path(FOLDER))?.into_iter();
    let wanted = names.filter(|name| name.ends_with(".test.mjs") && is_wanted(name));
    let files: Vec<_> = wanted.map(|name| format!("tests/{name}")).collect();
    let args = ["--test", "--test-concurrency=2", "--test-reporter=spec"];
    // The tests build an example for browsers.
    shell.cmd_for(WASM, "wasm", "node", args.into_iter().chain(files.iter().map(String::as_str))).run()
}

fn game_tests(shell: &Shell) -> Result<()> {
    game_tests_with(shell, &shell.path(artifacts::GAME_PACKAGE))
}

/// Builds the package of the game with wasm-pack, and runs its tests.
fn wasm_pack_tests(shell: &Shell) -> Result<()> {
    let folder = shell.path("target/wasm-pack/snowfight");
    artifacts::wasm_pack(shell, &folder.to_string_lossy())?;
    game_tests_with(shell, &folder)
}

fn game_tests_with(shell: &Shell, package: &Path) -> Result<()> {
    let tests = ["--test", "--test-reporter=spec", "tests/messages.test.mjs"];
    shell.cmd_in("snowfight/wasm", "node", tests).env("SNOWFIGHT_PACKAGE", package).run()
}

fn web_tests(shell: &Shell) -> Result<()> {
    artifacts::built_programs(shell)?;
    shell.cmd_in("web", "npm", ["test"]).run()
}

/// Plays one game with the variant that uses the most parts: RakNet, secure and plain.
fn demo_game(shell: &Shell) -> Result<()> {
    demo::smoke_test(shell, &["raknet", "replication"]).map(|line| shell.print(line))
}

fn demo_games(shell: &Shell) -> Result<()> {
    demo::smoke_test(shell, &smoke::WAYS).map(|line| shell.print(line))
}
