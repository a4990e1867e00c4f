//! Counts the instructions of the hot paths with callgrind and compares them with the committed table.
//!
//! Unlike times, counts do not depend on the load of the machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rakwire_bench::hot_path::HotPath;
use serde::{Deserialize, Serialize};

use crate::plugin_paths::PluginPath;

/// The maximum accepted ratio of counted instructions to those in the table.
const TOLERANCE: f64 = 1.02;

/// The path of the committed table, relative to the root of the repository.
const TABLE: &str = "bench/instructions.json";

/// Count the instructions of the hot paths and compare them with the table.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The path of the table
    #[arg(long, value_name = "FILE", default_value = TABLE)]
    table: PathBuf,
    /// Write the table instead of comparing with it
    #[arg(long)]
    write: bool,
}

/// The committed table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Table {
    /// The compiler version. Counts of different compilers are not comparable.
    rustc: String,
    architecture: String,
    /// Instructions per message or handshake.
    instructions: BTreeMap<String, u64>,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    WithinTolerance,
    /// The compiler or the architecture differs.
    Incomparable,
    TooMany,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let counted = count_all()?;
    check_plugins(&counted.instructions)?;
    if options.write {
        let text = serde_json::to_string_pretty(&counted)? + "\n";
        return std::fs::write(&options.table, text)
            .with_context(|| format!("{} cannot be written", options.table.display()));
    }
    let committed = read(&options.table)?;
    let (comparison, text) = compare(&committed, &counted);
    print!("{text}");
    match comparison {
        Comparison::WithinTolerance | Comparison::Incomparable => Ok(()),
        Comparison::TooMany => bail!(
            "some hot paths take over 2 % more instructions than in {}: optimise them, or update the table with \
             `cargo xtask bench --instructions` and give the reason",
            options.table.display()
        ),
    }
}

fn read(table: &Path) -> Result<Table> {
    let name = table.display();
    let text = std::fs::read_to_string(table).with_context(|| format!("{name} cannot be read"))?;
    serde_json::from_str(&text).with_context(|| format!("{name} is not a table of instructions"))
}

/// Returns the instructions of a hot path in the committed table.
pub(crate) fn committed(path: HotPath) -> Result<u64> {
    let instructions = read(Path::new(TABLE))?.instructions;
    let path = name(path);
    instructions.get(&path).copied().with_context(|| {
        format!("{TABLE} has no row {path}: update it with `cargo xtask bench --instructions`")
    })
}

fn count_all() -> Result<Table> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let rustc = Command::new("rustc").arg("--version").output().context("rustc cannot be run")?;
    let mut instructions = BTreeMap::new();
    for path in HotPath::value_variants() {
        let workload = Workload { command: "hot-path", name: name(*path), repetitions: path.repetitions() };
        instructions.insert(name(*path), count(&program, &workload)? / path.units());
    }
    for path in PluginPath::value_variants() {
        let repetitions = PluginPath::REPETITIONS;
        let workload = Workload { command: "plugin-path", name: name(*path), repetitions };
        instructions.insert(name(*path), count(&program, &workload)? / PluginPath::UNITS);
    }
    Ok(Table {
        rustc: String::from_utf8_lossy(&rustc.stdout).trim().to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        instructions,
    })
}

fn name(path: impl ValueEnum) -> String {
    path.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A subcommand of this program that callgrind runs to count its instructions.
struct Workload {
    command: &'static str,
    name: String,
    repetitions: u64,
}

/// Returns the instructions per repetition. The difference between two runs excludes startup and shutdown.
fn count(program: &Path, workload: &Workload) -> Result<u64> {
    let few = workload.repetitions;
    let difference = total(program, workload, 2 * few)?.saturating_sub(total(program, workload, few)?);
    Ok(difference / few)
}

/// Returns the number of instructions that this program executes for `repetitions` repetitions, including startup.
fn total(program: &Path, workload: &Workload, repetitions: u64) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([workload.command, &workload.name, &repetitions.to_string()])
        .stdout(Stdio::null())
        .output()
        .context("valgrind cannot be run; install it, for example with `apt-get install valgrind`")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    match collected(&printed) {
        Some(count) if output.status.success() => Ok(count),
        _ => bail!("callgrind counted nothing for {}: {}", workload.name, printed.trim()),
    }
}

/// Parses the number in callgrind's line `==PID== Collected : NUMBER`.
fn collected(printed: &str) -> Option<u64> {
    let line = printed.lines().find_map(|line| line.split_once("Collected : "))?;
    line.1.trim().parse().ok()
}

/// Checks that plugin support costs no instructions if no plugin is attached.
///
/// The empty hook of the drivers and a host without plugins may each take at most 2 % more instructions than a peer
/// without a hook. All counts are from the same build, so the check does not depend on the compiler.
fn check_plugins(counted: &BTreeMap<String, u64>) -> Result<()> {
    let count = |path| {
        counted.get(&name(path)).copied().with_context(|| format!("the row {} was not counted", name(path)))
    };
    let absent = count(PluginPath::Absent)?;
    for path in [PluginPath::EmptyHook, PluginPath::EmptyHost] {
        let now = count(path)?;
        if now as f64 > absent as f64 * TOLERANCE {
            bail!(
                "{} takes {now} instructions per message, over 2 % more than the {absent} of a peer without a hook",
                name(path)
            );
        }
    }
    Ok(())
}

/// Compares two tables, and returns one line per hot path.
fn compare(committed: &Table, counted: &Table) -> (Comparison, String) {
    let same = committed.rustc == counted.rustc && committed.architecture == counted.architecture;
    let mut comparison = if same { Comparison::WithinTolerance } else { Comparison::Incomparable };
    let mut text = format!("{:<22} {:>10} {:>10} {:>8}\n", "instructions", "table", "now", "change");
    for (name, now) in &counted.instructions {
        let before = committed.instructions.get(name).copied();
        let ratio = before.map_or(f64::INFINITY, |before| *now as f64 / before as f64);
        if ratio > TOLERANCE && same {
            comparison = Comparison::TooMany;
        }
        let (before, change) = match before {
            Some(before) => (before.to_string(), format!("{:+.1} %", (ratio - 1.0) * 100.0)),
            None => ("none".to_owned(), "new".to_owned()),
        };
        text += &format!("{name:<22} {before:>10} {now:>10} {change:>8}\n");
    }
    if !same {
        text += &format!(
            "the table is for {} on {}, this is {} on {}: not comparable\n",
            committed.rustc, committed.architecture, counted.rustc, counted.architecture
        );
    }
    (comparison, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rustc: &str, counts: &[(&str, u64)]) -> Table {
        Table {
            rustc: rustc.to_owned(),
            architecture: "a".to_owned(),
            instructions: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        }
    }

    #[test]
    fn over_2_percent_more_instructions_fail_the_comparison() {
        let committed = table("1", &[("a", 1_000), ("b", 1_000)]);
        let comparison = |counts: &[(&str, u64)]| compare(&committed, &table("1", counts)).0;
        assert_eq!(comparison(&[("a", 1_020), ("b", 100)]), Comparison::WithinTolerance);
        assert_eq!(comparison(&[("a", 1_021), ("b", 1_000)]), Comparison::TooMany);
        assert_eq!(comparison(&[("a", 1_000), ("c", 1)]), Comparison::TooMany);
    }

    #[test]
    fn counts_of_another_compiler_are_not_compared() {
        let (comparison, text) = compare(&table("1", &[("a", 1_000)]), &table("2", &[("a", 2_000)]));
        assert_eq!(comparison, Comparison::Incomparable);
        assert!(text.contains("+100.0 %") && text.ends_with("not comparable\n"), "{text}");
    }

    #[test]
    fn an_empty_hook_or_host_may_add_at_most_2_percent_of_instructions() {
        let check = |hook, host| {
            let rows =
                [("plugins_absent", 1_000), ("plugins_hook_empty", hook), ("plugins_host_empty", host)];
            check_plugins(&table("1", &rows).instructions).is_ok()
        };
        assert!(check(1_020, 1_020) && check(900, 1_000));
        assert!(!check(1_021, 1_000) && !check(1_000, 1_021));
        assert!(check_plugins(&BTreeMap::new()).is_err());
    }

    #[test]
    fn the_instruction_count_is_parsed_from_the_output_of_callgrind() {
        let printed = "==7== Events    : Ir\n==7== Collected : 4125\n==7== \n==7== I   refs:      4,125\n";
        assert_eq!(collected(printed), Some(4_125));
        assert_eq!(collected("==7== nothing"), None);
    }
}
