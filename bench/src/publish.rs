//! `docs/performance.md` and its plots, written from a report.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use plotters::prelude::*;

use crate::report::{Better, Report, Row, markdown, number};

/// Writes the documentation of a report.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(long, value_name = "FILE", default_value = "target/bench/report.json")]
    report: PathBuf,
    /// The document; what stands between its two marks is replaced
    #[arg(long, value_name = "FILE", default_value = "docs/performance.md")]
    document: PathBuf,
    /// Where the plots go, beside the document
    #[arg(long, value_name = "FOLDER", default_value = "images")]
    images: PathBuf,
}

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench --publish` -->";
const END: &str = "<!-- end of the figures -->";
/// Bars of a plot.
const BAR: u32 = 26;
const WIDTH: u32 = 760;

pub(crate) fn run(options: &Options) -> Result<()> {
    let report = Report::read(&options.report)?;
    let folder = options.document.parent().unwrap_or_else(|| Path::new(".")).join(&options.images);
    std::fs::create_dir_all(&folder)?;
    let mut plots = Vec::new();
    for chart in charts(&report) {
        let name = format!("bench-{}.svg", chart.name);
        plot(&chart, &folder.join(&name)).with_context(|| format!("{name} cannot be drawn"))?;
        plots.push(format!("![{}]({}/{name})", chart.name, options.images.display()));
    }
    let text = std::fs::read_to_string(&options.document)
        .with_context(|| format!("{} cannot be read", options.document.display()))?;
    let text = replaced(&text, &figures(&report, &plots))
        .with_context(|| format!("{} has no place for figures", options.document.display()))?;
    std::fs::write(&options.document, text)
        .with_context(|| format!("{} cannot be written", options.document.display()))
}

/// The document with other figures between its marks.
fn replaced(document: &str, figures: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{figures}\n{END}{after}"))
}

fn figures(report: &Report, plots: &[String]) -> String {
    let sitting = &report.sitting;
    let peers = sitting.peers.iter().map(|(name, version)| format!("{name} ({version})"));
    let (met, all) = report.goals();
    let [before, after] = sitting.load;
    let mut text = format!(
        "Measured by `{}` at commit {} with {}, on {} ({}), medians of {} runs, beside {}. The load of the machine was \
         {before} before and {after} after. {met} of {all} goals are met.\n\n",
        sitting.command,
        sitting.commit,
        sitting.rustc,
        sitting.processor,
        sitting.system,
        sitting.runs,
        peers.collect::<Vec<_>>().join(", "),
    );
    text += &report.table();
    text += "\nEvery pairing, client to server:\n\n";
    text += &pairings(report);
    for plot in plots {
        text += &format!("\n{plot}\n");
    }
    text
}

/// One line for each pairing, one column for each row that has pairings.
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

/// Bars beside each other.
struct Chart {
    name: String,
    unit: String,
    better: Better,
    bars: Vec<(String, f64)>,
}

/// Rows of the same thing in other numbers, which are drawn together.
const FAMILIES: [&str; 2] = ["core_connections", "core_queue"];

/// A chart for each row that has something to compare, and one for each family.
fn charts(report: &Report) -> Vec<Chart> {
    let chart = |name: &str, row: &Row, bars| {
        let (name, unit) = (name.to_owned(), row.unit.clone());
        Chart { name, unit, better: row.better, bars }
    };
    let rows = report.rows.iter().map(|row| chart(&row.name, row, bars(row)));
    let families = FAMILIES.iter().filter_map(|family| {
        let members = report.rows.iter().filter(|row| number_in(family, row).is_some());
        let bars = members
            .clone()
            .filter_map(|row| Some((format!("rakwire, {}", number_in(family, row)?), row.value)));
        Some(chart(family, members.clone().next()?, bars.collect()))
    });
    rows.chain(families).filter(|chart| !chart.bars.is_empty()).collect()
}

/// The number of a row of a family: 10 of `core_queue_10`.
fn number_in<'r>(family: &str, row: &'r Row) -> Option<&'r str> {
    let number = row.name.strip_prefix(family)?.strip_prefix('_')?;
    number.parse::<u32>().is_ok().then_some(number)
}

/// What a plot of the row shows: names and values.
fn bars(row: &Row) -> Vec<(String, f64)> {
    let values = row.pairings.iter().filter_map(|entry| Some((entry.pairing.to_string(), entry.value?)));
    let mut bars: Vec<(String, f64)> = values.collect();
    if bars.is_empty() {
        let ours = row
            .best_peer
            .as_ref()
            .map(|best| vec![("rakwire".to_owned(), row.value), (best.name.clone(), best.value)]);
        bars = ours.unwrap_or_default();
    } else if let Some(limit) = row.limit {
        bars.push(("bare socket".to_owned(), limit));
    }
    bars.sort_by(|(_, a), (_, b)| if row.better == Better::Higher { b.total_cmp(a) } else { a.total_cmp(b) });
    bars
}

fn plot(chart: &Chart, path: &Path) -> Result<()> {
    let bars = &chart.bars;
    let count = u32::try_from(bars.len())?;
    let most = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let root = SVGBackend::new(path, (WIDTH, 50 + count * BAR)).into_drawing_area();
    let drawn = |error: &dyn std::fmt::Display| anyhow!("{error}");
    root.fill(&WHITE).map_err(|error| drawn(&error))?;
    let text = |size| ("sans-serif", size).into_font();
    let title = format!(
        "{}, {} ({} is better)",
        chart.name,
        chart.unit,
        match chart.better {
            Better::Higher => "more",
            Better::Lower => "less",
        }
    );
    root.draw(&Text::new(title, (10, 10), text(18))).map_err(|error| drawn(&error))?;
    let (left, room) = (230, f64::from(WIDTH) - 330.0);
    for (at, (name, value)) in bars.iter().enumerate() {
        let top = 40 + i32::try_from(at)? * i32::try_from(BAR)?;
        let color = if name.contains("rakwire") { RGBColor(30, 110, 180) } else { RGBColor(170, 170, 170) };
        let right = left + (room * value / most).round().max(1.0) as i32;
        let bar = Rectangle::new([(left, top), (right, top + 18)], color.filled());
        root.draw(&bar).map_err(|error| drawn(&error))?;
        root.draw(&Text::new(name.clone(), (10, top + 2), text(14))).map_err(|error| drawn(&error))?;
        root.draw(&Text::new(number(*value), (right + 6, top + 2), text(14)))
            .map_err(|error| drawn(&error))?;
    }
    root.present().map_err(|error| drawn(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Best;

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let document = format!("# Speed\n\n{BEGIN}\nold\n{END}\n\nafter\n");
        let new = replaced(&document, "new\n").unwrap();
        assert_eq!(new, format!("# Speed\n\n{BEGIN}\n\nnew\n\n{END}\n\nafter\n"));
        assert_eq!(replaced(&new, "new\n").unwrap(), new);
        assert!(replaced("nothing", "new").is_none());
    }

    #[test]
    fn rows_that_differ_in_a_number_are_drawn_together() {
        let row = |name: &str, value| Row::new(name, value, "ns/message", Better::Lower);
        let rows = vec![row("core_100b", 1.0), row("core_queue_1", 2.0), row("core_queue_1000", 3.0)];
        let charts = charts(&Report { rows, ..Report::default() });
        assert_eq!(charts.len(), 1);
        assert_eq!(charts[0].name, "core_queue");
        assert_eq!(charts[0].bars, [("rakwire, 1".to_owned(), 2.0), ("rakwire, 1000".to_owned(), 3.0)]);
    }

    #[test]
    fn a_plot_shows_every_bar() {
        let row = Row::new("idle_memory", 1_000.0, "bytes", Better::Lower)
            .beside_peer(Some(Best { name: "other".to_owned(), value: 4_000.0 }));
        let path = std::env::temp_dir().join(format!("rakwire-bench-plot-{}.svg", std::process::id()));
        let report = Report { rows: vec![row], ..Report::default() };
        plot(&charts(&report)[0], &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        for part in ["rakwire", "other", "4,000", "idle_memory, bytes (less is better)"] {
            assert!(svg.contains(part), "{part:?} in\n{svg}");
        }
    }
}
