//! The commands and their options.

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::demo;
use crate::stage::Tier;

/// The commands of `xtask-tools` and their descriptions.
pub const OF_TOOLS: [(&str, &str); 8] = [
    ("mcu", "Run the firmware of microcontrollers in QEMU"),
    ("size", "Measure memory use, and compare it with the committed tables"),
    ("fuzz", "Search for faults in the core with generated input"),
    ("soak", "Run the core over simulated bad networks, or a server and clients for hours"),
    ("mutants", "Insert faults into a copy of the core, one at a time: the tests must find each of them"),
    ("bench", "Compare speed with other RakNet implementations and with the plain socket"),
    ("package-relay", "Build the Debian package of the relay, in target/relay-package"),
    ("release", "Check and pack a release, and print the commands that upload it"),
];

const LIST_HELP: &str = "List the stages with tier, last duration, needs and purpose, without running them";

/// Returns the definition of all commands.
pub fn command() -> Command {
    let plain = [
        ("setup", "Install everything that the other commands need"),
        ("wasm", "Build the npm package: wasm/pkg and wasm/dist"),
        ("web", "Build the page: web/dist"),
    ];
    let tiers = [
        (Tier::Check, "Run before a commit: formatting, lints and checks of texts"),
        (Tier::Test, "Test every part, also against one other RakNet implementation"),
        (Tier::Ci, "Run before a merge: `check`, `test`, all other RakNet implementations, sizes, packages"),
        (Tier::Nightly, "Run everything: `ci`, and stages that are slow or rarely find anything"),
    ];
    Command::new("xtask")
        .bin_name("cargo xtask")
        .about("The commands of this repository")
        .arg_required_else_help(true)
        .args_conflicts_with_subcommands(true)
        .arg(flag("list", LIST_HELP))
        .subcommands(plain.map(|(name, about)| Command::new(name).about(about)))
        .subcommand(site_command())
        .subcommand(demo_command())
        .subcommand(
            forwarded("interop").about("Run pairs of RakNet implementations, and judge their datagrams"),
        )
        .subcommands(tiers.map(|(tier, about)| tier_command(tier).about(about)))
        .subcommands(OF_TOOLS.map(|(name, about)| forwarded(name).about(about)))
}

/// Defines a command that forwards its arguments to `xtask-tools`.
fn forwarded(name: &'static str) -> Command {
    let arguments = Arg::new("arguments").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
    Command::new(name).disable_help_flag(true).arg(arguments.help("Arguments of the tool: see --help"))
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn tier_command(tier: Tier) -> Command {
    let only = Arg::new("only").long("only").value_name("NAME,…").action(ArgAction::Append);
    let only =
        only.value_delimiter(',').help("Run only these stages, of any tier, with the set-up that they need");
    let list = flag("list", LIST_HELP);
    let command = Command::new(tier.name()).arg(only).arg(list.conflicts_with("only"));
    let table = flag("table", "Print the stage table of CONTRIBUTING.md");
    if tier == Tier::Ci { command.arg(table.conflicts_with_all(["only", "list"])) } else { command }
}

fn site_command() -> Command {
    Command::new("site")
        .about("Build the book, the references and the pages of the demo: target/site")
        .arg(flag("book", "Build only the book, which takes seconds, and check its links"))
}

fn demo_command() -> Command {
    let number = |name: &'static str, value: &'static str, default: &'static str| {
        Arg::new(name).long(name).value_name(value).default_value(default).requires("slow-page")
    };
    let port = Arg::new("port").long("port").value_name("PORT").value_parser(clap::value_parser!(u16));
    let percent = clap::value_parser!(u8).range(0..100);
    let seconds = clap::value_parser!(u16).range(1..=600);
    Command::new("demo")
        .about("Run a game server, the relay and the page until Ctrl-C")
        .arg(port.help("The page's port (default: 8080, or a free one if that is taken)"))
        .arg(
            flag(
                "smoke",
                "On free ports, let two pages in headless Chromium play against each other with each protocol; \
                 print the outcome as a line of JSON",
            )
            .conflicts_with("port"),
        )
        .arg(
            flag(
                "slow-page",
                "Instead of a game, measure a slow page beside a fast one, with and without \
                 pacing of snapshots: round trips, ages of what is shown, snapshots, drops",
            )
            .requires("smoke"),
        )
        .arg(
            number("blocked", "MS", "90")
                .value_parser(percent)
                .help("Milliseconds of every 100 for which the main thread of the slow page is blocked"),
        )
        .arg(number("seconds", "SECONDS", "10").value_parser(seconds).help("Duration of each measurement"))
        .arg(
            number("runs", "N", "1")
                .value_parser(clap::value_parser!(u32))
                .help("Number of measurements per case"),
        )
        .arg(
            flag("mcu", "Add a microcontroller emulated by QEMU as a player; its log appears in this terminal")
                .conflicts_with("smoke"),
        )
}

/// Returns the arguments of a command that forwards them.
pub fn arguments(matches: &ArgMatches) -> impl Iterator<Item = &str> {
    matches.get_many::<String>("arguments").into_iter().flatten().map(String::as_str)
}

/// Returns the options of the command `demo`.
pub fn demo_options(matches: &ArgMatches) -> demo::Options {
    demo::Options {
        port: matches.get_one("port").copied(),
        smoke: matches.get_flag("smoke"),
        slow_page: matches.get_flag("slow-page"),
        // These options have defaults, so a value is always present.
        blocked: matches.get_one("blocked").copied().unwrap_or_default(),
        seconds: matches.get_one("seconds").copied().unwrap_or_default(),
        runs: matches.get_one("runs").copied().unwrap_or_default(),
        mcu: matches.get_flag("mcu"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<(String, ArgMatches)> {
        let words = ["xtask"].into_iter().chain(line.split_whitespace());
        command().try_get_matches_from(words).ok()?.remove_subcommand()
    }

    #[test]
    fn options_are_parsed_and_contradictions_refused() {
        command().debug_assert();
        let all = |line, name| -> Vec<String> {
            parsed(line).unwrap().1.get_many::<String>(name).unwrap().cloned().collect()
        };
        assert_eq!(all("test --only a,b --only c", "only"), ["a", "b", "c"]);
        // The commands of the tools receive all their arguments.
        assert_eq!(all("size mcu --update --help", "arguments"), ["mcu", "--update", "--help"]);
        assert_eq!(all("bench -h", "arguments"), ["-h"]);
        assert_eq!(all("interop --only loss --json", "arguments"), ["--only", "loss", "--json"]);
        for good in ["ci --table", "nightly --list", "site --book", "fuzz"] {
            assert!(parsed(good).is_some(), "{good}");
        }
        for bad in
            ["--list ci", "test --table", "ci --list --only a", "demo --smoke --port 1", "demo --slow-page"]
        {
            assert!(parsed(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn demo_options_have_defaults_and_limits() {
        let options = |line| parsed(line).map(|(_, matches)| demo_options(&matches));
        let slow = options("demo --smoke --slow-page --seconds 3").unwrap();
        assert_eq!((slow.blocked, slow.seconds, slow.runs), (90, 3, 1));
        assert!(slow.smoke && slow.slow_page && !slow.mcu && slow.port.is_none());
        let played = options("demo --port 81 --mcu").unwrap();
        assert_eq!((played.port, played.mcu, played.smoke), (Some(81), true, false));
        assert!(options("demo --smoke --slow-page --blocked 100").is_none());
    }
}
