//! Writes `docs/performance.md` and its plots from a report.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::chart::draw;
use crate::plots::charts;
use crate::report::{Kept, REPORT, Report, Row, markdown, names_in_markdown, number};
use crate::session::Step;
use crate::summary;

/// Write the figures and plots of a report into the documentation.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(long, value_name = "FILE", default_value = REPORT)]
    report: PathBuf,
    /// The document; the text between its two markers is replaced
    #[arg(long, value_name = "FILE", default_value = DOCUMENT)]
    document: PathBuf,
    /// The folder of the plots, relative to the document
    #[arg(long, value_name = "FOLDER", default_value = IMAGES)]
    images: PathBuf,
}

impl Options {
    /// Publishes this report in the usual document.
    pub(crate) fn of(report: PathBuf) -> Self {
        Self { report, document: DOCUMENT.into(), images: IMAGES.into() }
    }
}

const DOCUMENT: &str = "docs/performance.md";
const IMAGES: &str = "images";

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench --publish` -->";
const END: &str = "<!-- end of the figures -->";
/// The picture at the top of the document.
const SUMMARY: &str = "bench-summary.svg";

pub(crate) fn run(options: &Options) -> Result<()> {
    let report = Report::read(&options.report)?;
    if let Some(reason) = refusal(&report) {
        bail!(
            "the report is not published: {reason}; measure all rows in one session with `cargo xtask bench`"
        );
    }
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

/// Returns why a report must not be published, or `None` if all of its rows are from one complete session.
fn refusal(report: &Report) -> Option<String> {
    if let Some(kept) = report.kept.first() {
        return Some(format!("{} are {}", names_in_markdown(&kept.rows), difference(report, kept)));
    }
    let names = Step::ALL.map(|step| step.name().to_owned());
    let missing: Vec<String> = names.into_iter().filter(|name| !report.steps.contains_key(name)).collect();
    (!missing.is_empty()).then(|| format!("{} are not measured yet", names_in_markdown(&missing)))
}

/// Returns how the session of the kept rows differs from the report's session.
fn difference(report: &Report, kept: &Kept) -> String {
    let (now, before) = (&report.environment, &kept.environment);
    if before.commit != now.commit {
        format!("from commit {}, and the others from {}", before.commit, now.commit)
    } else if before.boot != now.boot {
        "from before the machine was restarted".to_owned()
    } else {
        "from an earlier session".to_owned()
    }
}

/// Replaces the text between the markers of a document.
pub(crate) fn write_figures(document: &Path, begin: &str, figures: &str) -> Result<()> {
    let name = document.display();
    let text = std::fs::read_to_string(document).with_context(|| format!("{name} cannot be read"))?;
    let text =
        replaced(&text, begin, figures).with_context(|| format!("{name} has no markers for the figures"))?;
    std::fs::write(document, text).with_context(|| format!("{name} cannot be written"))
}

/// Returns the document with new figures between its markers, or `None` if a marker is missing.
fn replaced(document: &str, begin: &str, figures: &str) -> Option<String> {
    let (before, rest) = document.split_once(begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n\n{figures}\n{END}{after}"))
}

fn figures(report: &Report, plots: &[String]) -> String {
    let (met, all) = report.goals();
    let mut text = format!("{} {met} of {all} goals are met.\n\n", report.environment.sentences());
    text += &report.table();
    text += "\n## Pairings\n\nAll pairings, client to server:\n\n";
    text += &pairings(report);
    text += "\nPlots of the rows. Blue: rakwire is the client, the server or both. Grey: without rakwire. Hollow: a goal.\n";
    for plot in plots {
        text += &format!("\n{plot}\n");
    }
    text
}

/// Formats one line per row and pairing.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Environment;

    fn environment(commit: &str, boot: &str) -> Environment {
        Environment { commit: commit.to_owned(), boot: boot.to_owned(), ..Environment::default() }
    }

    /// Returns a report of a session that has measured every step.
    fn complete() -> Report {
        let steps = Step::ALL.iter().map(|step| (step.name().to_owned(), 1.0)).collect();
        Report { environment: environment("a", "1"), steps, ..Report::default() }
    }

    fn refused_with(kept: Environment) -> String {
        let kept = vec![Kept { environment: kept, rows: vec!["core_100b".to_owned()] }];
        refusal(&Report { kept, ..complete() }).expect("a reason")
    }

    #[test]
    fn a_report_of_one_session_is_published() {
        assert_eq!(refusal(&complete()), None);
    }

    #[test]
    fn rows_of_several_sessions_are_not_published() {
        let reason = refused_with(environment("b", "1"));
        assert_eq!(reason, "`core_100b` are from commit b, and the others from a");
        assert!(refused_with(environment("a", "2")).ends_with("before the machine was restarted"));
        assert!(refused_with(environment("a", "1")).ends_with("from an earlier session"));
    }

    #[test]
    fn an_incomplete_session_is_not_published() {
        let mut report = complete();
        report.steps.remove("idle");
        report.steps.remove("fair");
        assert_eq!(refusal(&report).as_deref(), Some("`fair`, `idle` are not measured yet"));
    }

    #[test]
    fn only_the_text_between_the_markers_is_replaced() {
        let document = format!("# Performance\n\n{BEGIN}\nold\n{END}\n\nafter\n");
        let new = replaced(&document, BEGIN, "new\n").unwrap();
        assert_eq!(new, format!("# Performance\n\n{BEGIN}\n\nnew\n\n{END}\n\nafter\n"));
        assert_eq!(replaced(&new, BEGIN, "new\n").unwrap(), new);
        assert!(replaced("nothing", BEGIN, "new").is_none());
    }
}
