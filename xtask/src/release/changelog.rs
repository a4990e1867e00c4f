//! The section of a version in the changelog.

use anyhow::{Context, Result, bail};

/// The date of a version's section, which must have content, below a section for what is not released.
pub(super) fn date<'t>(changelog: &'t str, version: &str) -> Result<&'t str> {
    let mut sections = changelog.split("\n## ").skip(1);
    let first = sections.next().context("the changelog has no section")?;
    let (title, unreleased) = first.split_once('\n').unwrap_or((first, ""));
    if title != "Unreleased" {
        bail!("the changelog begins with {title:?}, not with the section Unreleased");
    }
    if unreleased.lines().any(|line| line.starts_with("- ")) {
        bail!("the changelog has lines in the section Unreleased, which belong to {version}");
    }
    let section = sections.next().context("the changelog has no section of a version")?;
    let (title, lines) = section.split_once('\n').unwrap_or((section, ""));
    let date = title.strip_prefix(version).and_then(|rest| rest.strip_prefix(" - "));
    let date = date.with_context(|| {
        format!("the newest section of the changelog is {title:?}, not `{version} - DATE`")
    })?;
    if !is_date(date) {
        bail!("{date:?} in the changelog is not a date like 2030-01-31");
    }
    if !lines.lines().any(|line| line.starts_with("- ")) {
        bail!("the section {version} of the changelog says nothing");
    }
    Ok(date)
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut number = |digits: usize| {
        let part = parts.next().filter(|part| part.len() == digits)?;
        part.parse::<u32>().ok()
    };
    let (year, month, day) = (number(4), number(2), number(2));
    let in_range = |value: Option<u32>, last| value.is_some_and(|value| (1..=last).contains(&value));
    in_range(year, 9999) && in_range(month, 12) && in_range(day, 31) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2030-01-31\n\n### Added\n\n- More.\n\n## 0.1.0 - 2029-01-01\n";

    fn error(changelog: &str, version: &str) -> String {
        date(changelog, version).unwrap_err().to_string()
    }

    #[test]
    fn the_section_of_the_version_has_a_date() {
        assert_eq!(date(GOOD, "0.2.0").unwrap(), "2030-01-31");
        assert_eq!(
            error(GOOD, "0.3.0"),
            "the newest section of the changelog is \"0.2.0 - 2030-01-31\", not `0.3.0 - DATE`"
        );
        assert!(error(&GOOD.replace("2030-01-31", "soon"), "0.2.0").contains("not a date"));
        assert!(error(&GOOD.replace("2030-01-31", "2030-13-31"), "0.2.0").contains("not a date"));
    }

    #[test]
    fn a_release_leaves_nothing_unreleased_and_has_something_to_say() {
        let late = GOOD.replace("## Unreleased\n", "## Unreleased\n\n- Late.\n");
        assert!(error(&late, "0.2.0").contains("lines in the section Unreleased"));
        assert!(error(&GOOD.replace("- More.", ""), "0.2.0").contains("says nothing"));
        assert!(
            error(&GOOD.replace("Unreleased", "0.3.0"), "0.2.0").contains("not with the section Unreleased")
        );
        assert_eq!(error("", "0.2.0"), "the changelog has no section");
    }
}
