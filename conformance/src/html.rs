//! Writes reports as a single self-contained HTML file that is readable on phones.

use crate::case::{Outcome, Report};
use crate::cases;
use crate::report::{Subject, Totals, escape, level, outcome, summary};
use std::fmt::Write as _;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.4 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}\
h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}\
h2 small{font-weight:normal}nav a{display:inline-block;margin:.15rem .8rem .15rem 0}\
ol{list-style:none;margin:0;padding:0}li{border-top:1px solid #8886;padding:.45rem 0 .45rem 6.2rem;position:relative}\
li>b{position:absolute;left:0;width:5.8rem}li p{margin:0}li small{opacity:.75;overflow-wrap:anywhere}\
pre{overflow:auto;font-size:.8rem;background:#8882;padding:.5rem}code{overflow-wrap:anywhere}\
.passed>b{color:#2a8a2a}.failed>b{color:#d02020}.deviates>b{color:#b87000}.skipped>b{color:#888}";

/// Returns all reports as an HTML page.
#[must_use]
pub fn page(subject: &Subject, reports: &[Report], strict: bool) -> String {
    let name = escape(&subject.peer.name);
    let version = escape(&subject.peer.version);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>RakNet conformance of {name}</title><style>{STYLE}</style></head><body>\n\
         <h1>RakNet conformance of {name} {version}</h1>\n<p>{}.</p>\n<p><code>{}</code></p>\n",
        summary(Totals::of(reports, strict)),
        escape(&subject.command),
    );
    if !subject.peer.note.is_empty() {
        let _ = writeln!(out, "<p>{}</p>", escape(&subject.peer.note));
    }
    let groups = reports.chunk_by(|a, b| a.case.number / 100 == b.case.number / 100);
    out.push_str("<nav>");
    for group in groups.clone() {
        let number = group[0].case.number;
        let _ = write!(out, "<a href=\"#g{}\">{}</a>", number / 100, escape(cases::group(number)));
    }
    out.push_str("</nav>\n");
    for group in groups {
        let number = group[0].case.number;
        let totals = summary(Totals::of(group, strict));
        let heading = escape(cases::group(number));
        let _ = writeln!(out, "<h2 id=\"g{}\">{heading} <small>{totals}</small></h2>\n<ol>", number / 100);
        group.iter().for_each(|report| item(report, strict, &mut out));
        out.push_str("</ol>\n");
    }
    out.push_str("</body></html>\n");
    out
}

fn item(report: &Report, strict: bool, out: &mut String) {
    let case = report.case;
    let (word, reason) = outcome(report, strict);
    let _ = write!(
        out,
        "<li class=\"{word}\" id=\"c{0}\"><b>{word}</b><p>{0} {1}: {2}</p>",
        case.number,
        level(case.level),
        escape(case.requirement),
    );
    let _ = write!(out, "<small>{} &middot; {}#{}</small>", escape(case.name), case.page(), case.section);
    if !reason.is_empty() {
        let _ = write!(out, "<p><em>{}</em></p>", escape(reason));
    }
    if matches!(report.outcome, Outcome::Failed(_)) {
        let dump = escape(&report.trace.dump());
        let _ = write!(out, "<details><summary>datagrams of the case</summary><pre>{dump}</pre></details>");
    }
    out.push_str("</li>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Options, run};
    use crate::check::Timing;
    use crate::model::{Fault, Model, Setup};
    use crate::wire::id;
    use std::time::Duration;

    #[test]
    fn the_html_report_is_one_file_with_the_datagrams_of_failures() {
        let model = Model::start(Setup::default(), Fault::Mute(id::PONG)).unwrap();
        let timing = Timing::with_answer(Duration::from_millis(60));
        let case = cases::all().next().unwrap();
        let report = run(case, model.address(), timing, &Options::default()).unwrap();
        let mut subject = Subject::default();
        subject.peer.name = "<peer>".into();
        let page = page(&subject, &[report], false);
        assert!(page.contains("name=\"viewport\"") && page.contains("&lt;peer&gt;"), "{page}");
        assert!(page.contains("<li class=\"failed\" id=\"c101\">"), "{page}");
        assert!(page.contains("suite -&gt; peer  33 bytes"), "{page}");
        assert!(!page.contains("src=") && !page.contains("http"), "{page}");
    }
}
