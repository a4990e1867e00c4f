//! The section of a version in the changelog.

use anyhow::{Context, Result, bail};

/// What stands for the date of a version until it is released.
const UNDATED: &str = "unreleased";

/// The date of a version's section, which must be the newest one and have content; none until it is released. A section
/// for what comes after it may stand above, without content.
pub(super) fn date<'t>(changelog: &'t str, version: &str) -> Result<Option<&'t str>> {
    let mut sections =
        changelog.split("\n## ").skip(1).map(|text| text.split_once('\n').unwrap_or((text, "")));
    let (mut title, mut lines) = sections.next().context("the changelog has no section")?;
    if title == "Unreleased" {
        if has_content(lines) {
            bail!("the changelog has lines in the section Unreleased, which belong to {version}");
        }
        (title, lines) = sections.next().context("the changelog has no section of a version")?;
    }
    let date = title.strip_prefix(version).and_then(|rest| rest.strip_prefix(" - "));
    let date = date.with_context(|| {
        format!("the newest section of the changelog is {title:?}, not `{version} - DATE`")
    })?;
    if date != UNDATED && !is_date(date) {
        bail!("{date:?} in the changelog is neither `{UNDATED}` nor a date like 2030-01-31");
    }
    if !has_content(lines) {
        bail!("the section {version} of the changelog says nothing");
    }
    Ok(Some(date).filter(|date| *date != UNDATED))
}

fn has_content(section: &str) -> bool {
    section.lines().any(|line| line.starts_with("- "))
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
        assert_eq!(date(GOOD, "0.2.0").unwrap(), Some("2030-01-31"));
        assert_eq!(
            error(GOOD, "0.3.0"),
            "the newest section of the changelog is \"0.2.0 - 2030-01-31\", not `0.3.0 - DATE`"
        );
        assert!(error(&GOOD.replace("2030-01-31", "soon"), "0.2.0").contains("nor a date"));
        assert!(error(&GOOD.replace("2030-01-31", "2030-13-31"), "0.2.0").contains("nor a date"));
    }

    #[test]
    fn a_version_that_is_not_released_has_no_date() {
        let undated = GOOD.replace("## Unreleased\n\n", "").replace("2030-01-31", "unreleased");
        assert_eq!(date(&undated, "0.2.0").unwrap(), None);
        assert!(error(&undated, "0.3.0").contains("not `0.3.0 - DATE`"));
    }

    #[test]
    fn a_release_leaves_nothing_unreleased_and_has_something_to_say() {
        let late = GOOD.replace("## Unreleased\n", "## Unreleased\n\n- Late.\n");
        assert!(error(&late, "0.2.0").contains("lines in the section Unreleased"));
        assert!(error(&GOOD.replace("- More.", ""), "0.2.0").contains("says nothing"));
        assert!(error(&GOOD.replace("Unreleased", "0.3.0"), "0.2.0").contains("is \"0.3.0\", not"));
        assert_eq!(error("", "0.2.0"), "the changelog has no section");
    }
}
