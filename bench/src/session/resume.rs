//! Decides whether an interrupted session can be resumed.

use anyhow::{Result, bail};

use crate::report::{Environment, Report};

/// Returns the report of an interrupted session if the session can continue in the environment `now`.
///
/// The session can continue if all of these conditions hold:
///
/// - The commit is the same, without uncommitted changes.
/// - The machine has not been restarted.
/// - The number of runs is the same.
/// - The report has no kept rows.
pub(super) fn continued(report: Report, now: &Environment) -> Result<Report> {
    let before = &report.environment;
    if before.commit != now.commit {
        bail!(
            "the session cannot be resumed: it began at commit {}, and this is {}",
            before.commit,
            now.commit
        );
    }
    if now.commit.ends_with("-dirty") {
        bail!(
            "the session cannot be resumed: commit {} has changes, which may differ from those at its beginning",
            now.commit
        );
    }
    if before.boot != now.boot {
        bail!("the session cannot be resumed: the machine was restarted after its beginning");
    }
    if before.runs != now.runs {
        bail!(
            "the session cannot be resumed: it has {} runs instead of {}; set --runs",
            before.runs,
            now.runs
        );
    }
    if !report.kept.is_empty() {
        bail!("the session cannot be resumed: its report has rows of an earlier one");
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Kept;

    fn environment(commit: &str, boot: &str, runs: u32) -> Environment {
        Environment { commit: commit.to_owned(), boot: boot.to_owned(), runs, ..Environment::default() }
    }

    fn report(environment: Environment) -> Report {
        Report { environment, ..Report::default() }
    }

    #[test]
    fn a_session_resumes_with_the_same_commit_and_boot() {
        let now = environment("a", "1", 5);
        let mut before = report(now.clone());
        before.steps.insert("core".to_owned(), 1.0);
        assert_eq!(continued(before.clone(), &now).unwrap(), before);
    }

    #[test]
    fn a_different_session_is_not_resumed() {
        let now = environment("a", "1", 5);
        let refusal = |report| continued(report, &now).unwrap_err().to_string();
        assert!(refusal(report(environment("b", "1", 5))).contains("commit b, and this is a"));
        assert!(refusal(report(environment("a", "2", 5))).contains("restarted"));
        assert!(refusal(report(environment("a", "1", 3))).contains("3 runs"));
        let kept = vec![Kept { environment: environment("a", "1", 5), rows: vec!["core".to_owned()] }];
        assert!(refusal(Report { kept, ..report(now.clone()) }).contains("rows of an earlier one"));
        let changed = environment("a-dirty", "1", 5);
        assert!(
            continued(report(changed.clone()), &changed).unwrap_err().to_string().contains("has changes")
        );
    }
}
