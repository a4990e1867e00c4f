//! The command that measures all rows in one session, step by step.

mod estimate;
mod figure;
mod history;
mod resume;
mod runner;
mod step;
mod workloads;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use self::estimate::Estimate;
use self::history::History;
use self::runner::Runner;
pub(crate) use self::step::Step;
use crate::clients;
use crate::core_only::{self, Effort};
use crate::environment;
use crate::fairness;
use crate::goals;
use crate::idle;
use crate::pairing::{Bench, Network};
use crate::process::Cores;
use crate::publish;
use crate::report::{self, REPORT, Report, Row};

/// The time limit of a program in one measurement.
const LIMIT: Duration = Duration::from_secs(45);
const QUICK_LIMIT: Duration = Duration::from_secs(8);

/// Measure everything and print a table.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure every row once, with little work and two implementations, as a smoke test
    #[arg(long)]
    quick: bool,
    /// Measure only rows with one of these texts in their names
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Keep the rows of the existing report that are not measured this time
    #[arg(long, requires = "only")]
    keep: bool,
    /// Resume an interrupted session: measure the rows that are missing in the report
    #[arg(long, conflicts_with = "keep")]
    resume: bool,
    /// The number of measurements of each pairing; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Write the document and its plots from the report, if it is complete
    #[arg(long, conflicts_with = "quick")]
    publish: bool,
    /// The path of the report, by default target/bench/report.json, and report-quick.json beside it for a quick
    /// measurement
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The folder with the programs of the other RakNet implementations
    #[arg(long, value_name = "FOLDER", default_value = "target/interop/bin")]
    peers: PathBuf,
}

impl Options {
    const fn effort(&self) -> Effort {
        if self.quick { Effort::Quick } else { Effort::Full }
    }

    const fn runs(&self) -> u32 {
        if self.quick { 1 } else { self.runs }
    }

    fn report(&self) -> PathBuf {
        report::path(self.report.as_deref(), "report", self.quick)
    }

    /// Returns the path of the durations and time limits of earlier sessions.
    fn history(&self) -> PathBuf {
        self.report().with_extension("history.json")
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut session = Session::begin(options)?;
    session.measure()?;
    session.end()?;
    if options.publish { publish::run(&publish::Options::of(options.report())) } else { Ok(()) }
}

struct Session<'o> {
    options: &'o Options,
    runner: Runner,
    report: Report,
    /// The earlier report from which rows are kept (`--keep`).
    earlier: Option<Report>,
}

impl<'o> Session<'o> {
    fn begin(options: &'o Options) -> Result<Self> {
        let limit = if options.quick { QUICK_LIMIT } else { LIMIT };
        let bench =
            Bench { peers: options.peers.clone(), cores: Cores::choose()?, runs: options.runs(), limit };
        let history = History::read(&options.history())?;
        let environment = environment::begin(options.runs())?;
        let report = if options.resume {
            let report = Report::read(&options.report()).context("there is no session to resume")?;
            resume::continued(report, &environment)?
        } else {
            Report { environment, ..Report::default() }
        };
        let earlier = || Report::read(&options.report()).context("there is no report to keep rows of");
        let earlier = options.keep.then(earlier).transpose()?;
        Ok(Self { options, runner: Runner { bench, effort: options.effort(), history }, report, earlier })
    }

    fn measure(&mut self) -> Result<()> {
        let selected: Vec<Step> =
            Step::ALL.into_iter().filter(|step| step.is_selected(&self.options.only)).collect();
        ensure!(!selected.is_empty(), "no row has a name that contains {}", self.options.only.join(" or "));
        let steps: Vec<Step> =
            selected.into_iter().filter(|step| !self.report.steps.contains_key(step.name())).collect();
        for (at, step) in steps.iter().enumerate() {
            let estimate = Estimate { effort: self.options.effort(), runs: self.options.runs() };
            eprintln!("{}", estimate.line(at, &steps, &self.runner.history));
            self.step(*step)?;
        }
        Ok(())
    }

    /// Measures the rows of one step, and writes the report and the history.
    fn step(&mut self, step: Step) -> Result<()> {
        let began = Instant::now();
        let rows = rows_of(step, &mut self.runner).with_context(|| format!("{} failed", step.name()))?;
        let seconds = began.elapsed().as_secs_f64();
        self.report.rows.extend(rows);
        self.report.steps.insert(step.name().to_owned(), seconds);
        self.runner.history.record(step, seconds, self.options.runs());
        environment::end(&mut self.report.environment)?;
        self.runner.history.write(&self.options.history())?;
        report::write(&self.with_kept_rows(), &self.options.report())
    }

    /// Returns the current report with the kept rows and the goals.
    fn with_kept_rows(&self) -> Report {
        let mut report = self.report.clone();
        if let Some(earlier) = &self.earlier {
            report.keep(earlier.clone());
        }
        goals::judge(&mut report);
        report
    }

    fn end(self) -> Result<()> {
        let report = self.with_kept_rows();
        print!("{}", report.table());
        let (met, all) = report.goals();
        println!(
            "{met} of {all} goals are met; the load was {:?}; {}",
            report.environment.load,
            self.options.report().display()
        );
        let failed = report.rows.iter().filter(|row| !row.value.is_finite()).map(|row| row.name.as_str());
        let failed: Vec<&str> = failed.collect();
        if failed.is_empty() {
            Ok(())
        } else {
            bail!("rakwire could not be measured in {}", failed.join(", "))
        }
    }
}

fn rows_of(step: Step, runner: &mut Runner) -> Result<Vec<Row>> {
    match step {
        Step::Messages => workloads::messages(runner),
        Step::BulkLarge => workloads::bulk(runner, step, 1, 10_000_000),
        Step::BulkSmall => workloads::bulk(runner, step, runner.count(1_000), 10_000),
        Step::PingPong => workloads::round_trips(runner),
        Step::BusyPingPong => workloads::busy_round_trips(runner),
        Step::NoLoss => workloads::losses(runner, step, Network::Lossy(0.0)),
        Step::Loss1 => workloads::losses(runner, step, Network::Lossy(0.01)),
        Step::Loss5 => workloads::losses(runner, step, Network::Lossy(0.05)),
        Step::Loss15 => workloads::heavy_losses(runner, step, Network::Lossy(0.15)),
        Step::Bursts => workloads::heavy_losses(runner, step, Network::Bursts),
        Step::Core => core_only::core(runner.effort, runner.bench.runs),
        Step::Fairness => Ok(fairness::rows(runner.effort)),
        Step::Clients => clients::rows(&runner.bench, runner.effort),
        Step::Shards => clients::shards(&runner.bench, step.rounds(runner.bench.runs), runner.effort),
        Step::Idle => idle::rows(&runner.bench, runner.effort),
    }
}

/// Print the table of an existing report.
#[derive(Debug, Args)]
pub(crate) struct Show {
    #[arg(default_value = REPORT)]
    report: PathBuf,
}

pub(crate) fn show(options: &Show) -> Result<()> {
    print!("{}", Report::read(&options.report).context("run `cargo xtask bench` first")?.table());
    Ok(())
}
