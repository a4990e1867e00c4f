//! The commands and their options.

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::demo;
use crate::setup::Need;
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

/// A command with its options.
pub enum Request {
    /// Installs all tools.
    Setup,
    /// Builds something: the npm package, or the page.
    Build(Need),
    /// Builds the site, or only the book.
    Site {
        /// True to leave out the references and the demo.
        only_book: bool,
    },
    /// Runs the demo.
    Demo(demo::Options),
    /// Runs pairs of RakNet implementations, with these arguments of the runner.
    Interop(Vec<String>),
    /// Lists the stages of all tiers.
    List,
    /// Runs or lists stages, as the command of a tier.
    Tier(Tier, Selection),
    /// A command of `xtask-tools`, with its name and its arguments.
    Tools(Vec<String>),
}

/// The stages to run.
#[derive(Debug, PartialEq, Eq)]
pub enum Selection {
    /// Those of the tier.
    All,
    /// The named stages, of any tier.
    Only(Vec<String>),
    /// None: they are listed.
    List,
    /// None: their table is printed.
    Table,
}

/// Parses the arguments of this process. Exits if they are invalid or request help.
pub fn parse() -> Request {
    request(&command().get_matches())
}

/// Returns the definition of all commands.
pub fn command() -> Command {
    let plain = [
        ("setup", "Install everything that the other commands need"),
        ("wasm", "Build the npm package: wasm/pkg and wasm/dist"),
        ("web", "Build the page: web/dist"),
    ];
    let tiers = [
        (Tier::Check, "Run before a commit: formatting, lints and checks of texts"),
        (Tier::Test, "Run the tests of every part, with one other RakNet implementation"),
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

fn request(matches: &ArgMatches) -> Request {
    // Without arguments the help is shown, so the only case without a command is `--list`.
    let Some((name, of_command)) = matches.subcommand() else { return Request::List };
    if let Some(tier) = Tier::ALL.into_iter().find(|tier| tier.name() == name) {
        return Request::Tier(tier, selection(of_command));
    }
    match name {
        "wasm" => Request::Build(Need::NpmPackage),
        "web" => Request::Build(Need::Page),
        "site" => Request::Site { only_book: of_command.get_flag("book") },
        "demo" => Request::Demo(demo_options(of_command)),
        "setup" => Request::Setup,
        "interop" => Request::Interop(arguments(of_command).collect()),
        of_tools => Request::Tools([of_tools.to_owned()].into_iter().chain(arguments(of_command)).collect()),
    }
}

/// Returns the arguments of a command that forwards them.
fn arguments(matches: &ArgMatches) -> impl Iterator<Item = String> {
    matches.get_many::<String>("arguments").into_iter().flatten().cloned()
}

fn selection(matches: &ArgMatches) -> Selection {
    // Only `ci` has the option `table`.
    let is_set = |name| matches!(matches.try_get_one::<bool>(name), Ok(Some(true)));
    match matches.get_many::<String>("only") {
        Some(names) => Selection::Only(names.cloned().collect()),
        None if is_set("list") => Selection::List,
        None if is_set("table") => Selection::Table,
        None => Selection::All,
    }
}

fn demo_options(matches: &ArgMatches) -> demo::Options {
    demo::Options {
        port: matches.get_one("port").copied(),
        smoke: matches.get_flag("smoke"),
        slow_page: matches.get_flag("slow-page"),
        // These have defaults.
        blocked: matches.get_one("blocked").copied().unwrap_or_default(),
        seconds: matches.get_one("seconds").copied().unwrap_or_default(),
        runs: matches.get_one("runs").copied().unwrap_or_default(),
        mcu: matches.get_flag("mcu"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Request {
        let words = ["xtask"].into_iter().chain(line.split_whitespace());
        request(&command().try_get_matches_from(words).unwrap())
    }

    fn is_refused(line: &str) -> bool {
        command().try_get_matches_from(["xtask"].into_iter().chain(line.split_whitespace())).is_err()
    }

    #[test]
    fn the_command_definition_is_valid() {
        command().debug_assert();
    }

    #[test]
    fn stages_can_be_separated_by_commas_or_repeated() {
        let Request::Tier(Tier::Test, Selection::Only(names)) = parsed("test --only a,b --only c") else {
            panic!("not these stages")
        };
        assert_eq!(names, ["a", "b", "c"]);
        assert!(matches!(parsed("check"), Request::Tier(Tier::Check, Selection::All)));
        assert!(matches!(parsed("nightly --list"), Request::Tier(Tier::Nightly, Selection::List)));
        assert!(matches!(parsed("ci --table"), Request::Tier(Tier::Ci, Selection::Table)));
        assert!(matches!(parsed("--list"), Request::List) && is_refused("--list ci") && is_refused(""));
        assert!(is_refused("test --table") && is_refused("ci --list --only a"));
    }

    #[test]
    fn tool_commands_receive_all_their_arguments() {
        let Request::Tools(args) = parsed("size mcu --profile a --help") else { panic!("not of the tools") };
        assert_eq!(args, ["size", "mcu", "--profile", "a", "--help"]);
        let Request::Tools(args) = parsed("bench -h") else { panic!("not of the tools") };
        assert_eq!(args, ["bench", "-h"]);
        assert!(matches!(parsed("fuzz"), Request::Tools(args) if args == ["fuzz"]));
    }

    #[test]
    fn demo_options_have_defaults_and_limits() {
        let Request::Demo(options) = parsed("demo --smoke --slow-page --seconds 3") else {
            panic!("no demo")
        };
        assert_eq!((options.blocked, options.seconds, options.runs), (90, 3, 1));
        assert!(options.smoke && options.slow_page && !options.mcu && options.port.is_none());
        let Request::Demo(options) = parsed("demo --port 81 --mcu") else { panic!("no demo") };
        assert_eq!((options.port, options.mcu, options.smoke), (Some(81), true, false));
        assert!(is_refused("demo --smoke --port 1") && is_refused("demo --smoke --slow-page --blocked 100"));
        assert!(is_refused("demo --slow-page") && is_refused("demo --smoke --mcu"));
    }
}
