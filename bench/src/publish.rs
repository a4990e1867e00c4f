//! `docs/performance.md` and its plots, written from a report.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::chart::{Bar, BarKind, draw};
use crate::report::{Better, Report, Row, markdown, number};
use crate::summary;

/// Write the figures and plots of a report into the documentation.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(long, value_name = "FILE", default_value = "target/bench/report.json")]
    report: PathBuf,
    /// The document; the text between its two markers is replaced
    #[arg(long, value_name = "FILE", default_value = "docs/performance.md")]
    document: PathBuf,
    /// The folder of the plots, relative to the document
    #[arg(long, value_name = "FOLDER", default_value = "images")]
    images: PathBuf,
}

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench --publish` -->";
const END: &str = "<!-- end of the figures -->";
/// The picture with which the document begins.
const SUMMARY: &str = "bench-summary.svg";

pub(crate) fn run(options: &Options) -> Result<()> {
    let report = Report::read(&options.report)?;
    let folder = options.document.parent().unwrap_or_else(|| Path::new(".")).join(&options.images);
    std::fs::create_dir_all(&folder)?;
    draw(summary::TITLE, &summary::bars(&report), &folder.join(SUMMARY))
        .context("the summary cannot be drawn")?;
    let mut plots = Vec::new();
    for chart in charts(&report) {
        let name = format!("bench-{}.svg", chart.name);
        draw(&chart.title(), &chart.bars, &folder.join(&name))
            .with_context(|| format!("{name} cannot be drawn"))?;
        plots.push(format!(
            "{}:\n\n![{}]({}/{name})",
            chart.row_names(),
            chart.name,
            options.images.display()
        ));
    }
    write_figures(&options.document, BEGIN, &figures(&report, &plots))
}

/// Replaces the figures in a document.
pub(crate) fn write_figures(document: &Path, begin: &str, figures: &str) -> Result<()> {
    let name = document.display();
    let text = std::fs::read_to_string(document).with_context(|| format!("{name} cannot be read"))?;
    let text =
        replaced(&text, begin, figures).with_context(|| format!("{name} has no markers for the figures"))?;
    std::fs::write(document, text).with_context(|| format!("{name} cannot be written"))
}

/// The document with new figures between its markers.
fn replaced(document: &str, begin: &str, figures: &str) -> Option<String> {
    let (before, rest) = document.split_once(begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n\n{figures}\n{END}{after}"))
}

fn figures(report: &Report, plots: &[String]) -> String {
    let environment = &report.environment;
    let peers = environment.peers.iter().map(|(name, version)| format!("{name} ({version})"));
    let (met, all) = report.goals();
    let [before, after] = environment.load;
    let mut text = format!(
        "Measured by `{}` at commit {} with {}, on {} ({}), medians of {} runs, compared with {}. The load of the machine was \
         {before} before and {after} after. {met} of {all} goals are met.\n\n",
        environment.command,
        environment.commit,
        environment.rustc,
        environment.processor,
        environment.system,
        environment.runs,
        peers.collect::<Vec<_>>().join(", "),
    );
    for kept in &report.kept {
        let [before, after] = kept.environment.load;
        text += &format!(
            "Rows of an earlier session, at commit {}, with a load of {before} before and {after} after: {}.\n\n",
            kept.environment.commit,
            names_in_markdown(&kept.rows),
        );
    }
    text += &report.table();
    text += "\nEvery pairing, client to server:\n\n";
    text += &pairings(report);
    text += "\nThe rows as plots: blue has rakwire at one end or both, grey has not, and a hollow bar is a goal.\n";
    for plot in plots {
        text += &format!("\n{plot}\n");
    }
    text
}

/// One line per row and pairing.
fn pairings(report: &Report) -> String {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| !row.pairings.is_empty()).collect();
    let mut lines = vec![["row", "pairing", "value", "unit"].map(str::to_owned)];
    for row in rows {
        for entry in &row.pairings {
            let value = match (entry.value, &entry.error) {
                (Some(value), _) => number(value),
                (None, error) => error.clone().unwrap_or_default(),
            };
            lines.push([row.name.clone(), entry.pairing.to_string(), value, row.unit.clone()]);
        }
    }
    markdown(&lines)
}

fn names_in_markdown(rows: &[String]) -> String {
    let names = rows.iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

/// A chart of one row, or of several that belong together.
#[derive(Debug)]
struct Chart {
    name: String,
    unit: String,
    better: Better,
    /// The names of its rows.
    rows: Vec<String>,
    bars: Vec<Bar>,
}

impl Chart {
    /// The names of its rows in Markdown.
    fn row_names(&self) -> String {
        names_in_markdown(&self.rows)
    }

    fn title(&self) -> String {
        let better = match self.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
        };
        format!("{}, {} ({better} is better)", self.name, self.unit)
    }
}

/// One chart per row, except for rows that share one.
fn charts(report: &Report) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for row in &report.rows {
        let (name, bars) = match shared(row) {
            Some((name, bar)) => (name, vec![bar]),
            None => (row.name.as_str(), bars(row)),
        };
        let index = charts.iter().position(|chart| chart.name == name).unwrap_or_else(|| {
            let (name, unit) = (name.to_owned(), row.unit.clone());
            charts.push(Chart { name, unit, better: row.better, rows: Vec::new(), bars: Vec::new() });
            charts.len() - 1
        });
        charts[index].rows.push(row.name.clone());
        charts[index].bars.extend(bars);
    }
    charts
}

/// The chart that a row shares with others, and its bar there.
fn shared(row: &Row) -> Option<(&'static str, Bar)> {
    let baseline =
        |chart, what| Some((chart, Bar::new(format!("UDP baseline, {what}"), row.value, BarKind::Others)));
    match row.name.as_str() {
        "udp_flood" => baseline("udp_flood", "one datagram per call"),
        "udp_flood_batched" => baseline("udp_flood", "many datagrams per call"),
        "udp_pingpong_64b" => baseline("udp_pingpong_64b", "median"),
        "udp_pingpong_64b_p99" => baseline("udp_pingpong_64b", "99th percentile"),
        _ => ["core_connections", "core_queue"].into_iter().find_map(|family| {
            let number = number_in(family, row)?;
            Some((family, Bar::new(format!("rakwire, {number}"), row.value, BarKind::Ours)))
        }),
    }
}

/// The number in the name of a row of a family: 10 in `core_queue_10`.
fn number_in<'r>(family: &str, row: &'r Row) -> Option<&'r str> {
    let number = row.name.strip_prefix(family)?.strip_prefix('_')?;
    number.parse::<u32>().is_ok().then_some(number)
}

/// The bars of a chart with this row only, the best first.
fn bars(row: &Row) -> Vec<Bar> {
    let mut bars = if row.pairings.is_empty() { with_best_peer(row) } else { paired(row) };
    if let Some(target) = row.target() {
        bars.push(Bar::new(goal_name(row.better), target, BarKind::Goal));
    }
    bars.sort_by(|a, b| match row.better {
        Better::Higher => b.value.total_cmp(&a.value),
        Better::Lower => a.value.total_cmp(&b.value),
    });
    bars
}

fn with_best_peer(row: &Row) -> Vec<Bar> {
    let ours = Bar::new("rakwire", row.value, BarKind::Ours);
    let best = row.best_peer.as_ref().map(|best| Bar::new(&best.name, best.value, BarKind::Others));
    [ours].into_iter().chain(best).collect()
}

/// Every pairing that has a value, and the UDP baseline.
fn paired(row: &Row) -> Vec<Bar> {
    let pairings = row.pairings.iter().filter_map(|entry| {
        let kind = if entry.pairing.is_foreign() { BarKind::Others } else { BarKind::Ours };
        Some(Bar::new(entry.pairing.to_string(), entry.value?, kind))
    });
    pairings.chain(row.baseline.map(|baseline| Bar::new("UDP baseline", baseline, BarKind::Others))).collect()
}

const fn goal_name(better: Better) -> &'static str {
    match better {
        Better::Higher => "goal: at least",
        Better::Lower => "goal: at most",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::Pairing;
    use crate::report::{Best, Entry};

    fn row(name: &str, value: f64) -> Row {
        Row::new(name, value, "ns/message", Better::Lower)
    }

    fn report(rows: Vec<Row>) -> Report {
        Report { rows, ..Report::default() }
    }

    #[test]
    fn only_the_text_between_the_markers_is_replaced() {
        let document = format!("# Performance\n\n{BEGIN}\nold\n{END}\n\nafter\n");
        let new = replaced(&document, BEGIN, "new\n").unwrap();
        assert_eq!(new, format!("# Performance\n\n{BEGIN}\n\nnew\n\n{END}\n\nafter\n"));
        assert_eq!(replaced(&new, BEGIN, "new\n").unwrap(), new);
        assert!(replaced("nothing", BEGIN, "new").is_none());
    }

    #[test]
    fn rows_that_differ_in_a_number_are_drawn_together() {
        let rows = vec![row("core_100b", 1.0), row("core_queue_1", 2.0), row("core_queue_1000", 3.0)];
        let charts = charts(&report(rows));
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[1].name, "core_queue");
        let bars =
            [Bar::new("rakwire, 1", 2.0, BarKind::Ours), Bar::new("rakwire, 1000", 3.0, BarKind::Ours)];
        assert_eq!(charts[1].bars, bars);
    }

    #[test]
    fn every_row_is_in_exactly_one_plot_with_its_value() {
        let pairing = Entry { pairing: Pairing::OURS, value: Some(1.0), error: None, runs: Vec::new() };
        let peer = Best { name: "other".to_owned(), value: 20.0 };
        let report = report(vec![
            row("udp_flood", 5.0),
            row("udp_flood_batched", 6.0),
            row("udp_pingpong_64b", 7.0),
            row("udp_pingpong_64b_p99", 8.0),
            Row { pairings: vec![pairing], ..row("pingpong_64b", 1.0).compared_with_baseline(Some(9.0)) },
            row("core_100b", 2.0).goal(150.0),
            row("core_queue_1", 3.0),
            row("idle_memory", 4.0).compared_with_peer(Some(peer)),
            row("neither_goal_nor_peer", 10.0),
        ]);
        let charts = charts(&report);
        for row in &report.rows {
            let mut with = charts.iter().filter(|chart| chart.rows.contains(&row.name));
            let chart = with.next().unwrap_or_else(|| panic!("{} has no plot", row.name));
            assert!(chart.bars.iter().any(|bar| bar.value == row.value), "{} in {chart:?}", row.name);
            assert!(with.next().is_none(), "{} has two plots", row.name);
        }
        assert_eq!(charts[0].row_names(), "`udp_flood`, `udp_flood_batched`");
    }

    #[test]
    fn a_title_says_which_direction_is_better() {
        let charts = charts(&report(vec![row("idle_memory", 1.0)]));
        assert_eq!(charts[0].title(), "idle_memory, ns/message (lower is better)");
    }

    #[test]
    fn a_goal_is_drawn_next_to_the_measured_value() {
        let charts = charts(&report(vec![row("core_100b", 175.0).goal(150.0)]));
        let bars =
            [Bar::new("goal: at most", 150.0, BarKind::Goal), Bar::new("rakwire", 175.0, BarKind::Ours)];
        assert_eq!(charts[0].bars, bars);
    }
}
