//! Consistency checks before a release is packed.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use toml::Table;

use xtask::shell::Shell;

/// The date of an unreleased version in the changelog.
const UNDATED: &str = "unreleased";

/// The settings of the workspace manifest that all crates inherit.
pub(super) struct Workspace {
    pub(super) version: String,
    pub(super) repository: String,
}

impl Workspace {
    pub(super) fn read(shell: &Shell) -> Result<Self> {
        let manifest: Table = shell.read("Cargo.toml")?.parse().context("Cargo.toml cannot be parsed")?;
        let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
        let text = |key: &str| {
            let value = package.and_then(|package| package.get(key)?.as_str().map(str::to_owned));
            value.with_context(|| format!("Cargo.toml has no {key} of the workspace"))
        };
        Ok(Self { version: text("version")?, repository: text("repository")? })
    }

    /// Returns true if the repository's address is under a reserved domain (RFC 2606, section 2).
    pub(super) fn is_placeholder(&self) -> bool {
        let host = self.repository.split('/').nth(2).unwrap_or_default();
        host.is_empty() || host.ends_with(".invalid")
    }

    /// Checks that the npm packages have the same values as the crates.
    pub(super) fn check_npm(&self, read: impl Fn(&str) -> Result<String>) -> Result<()> {
        let (version, url) = (&self.version, format!("git+{}.git", self.repository));
        let places = [
            ("wasm/package.json", "/version", version),
            ("wasm/package.json", "/repository/url", &url),
            ("wasm/package-lock.json", "/version", version),
            ("wasm/package-lock.json", "/packages//version", version),
            ("web/create/package.json", "/version", version),
            ("web/create/package.json", "/repository/url", &url),
            ("web/create/template/package.json", "/dependencies/rakwire", &format!("^{version}")),
        ];
        for (file, place, expected) in places {
            let manifest: Value =
                serde_json::from_str(&read(file)?).with_context(|| format!("{file} is not JSON"))?;
            let found = manifest.pointer(place).and_then(Value::as_str).unwrap_or("missing");
            if found != expected {
                bail!("{place} in {file} is {found}, not {expected}");
            }
        }
        Ok(())
    }
}

/// Returns the date of a version's section in the changelog, or `None` if it is unreleased. The section must be the
/// newest one and have content.
pub(super) fn date<'t>(changelog: &'t str, version: &str) -> Result<Option<&'t str>> {
    let section = changelog.split("\n## ").nth(1).context("the changelog has no section")?;
    let (title, lines) = section.split_once('\n').unwrap_or((section, ""));
    let date = title.strip_prefix(version).and_then(|rest| rest.strip_prefix(" - "));
    let date = date.with_context(|| {
        format!("the newest section of the changelog is {title:?}, not `{version} - DATE`")
    })?;
    if !lines.contains("\n- ") {
        bail!("the section {version} of the changelog is empty");
    }
    let is_date = date.len() == 10 && date.split('-').all(|part| part.parse::<u32>().is_ok());
    if date != UNDATED && !is_date {
        bail!("{date:?} in the changelog is neither `{UNDATED}` nor a date like 2030-01-31");
    }
    Ok(Some(date).filter(|date| *date != UNDATED))
}

/// Checks that everything is committed.
pub(super) fn clean_tree(shell: &Shell) -> Result<()> {
    let output = shell.cmd("git", ["status", "--porcelain"]).output()?;
    if !output.status.success() || !output.stdout.is_empty() {
        bail!("there are uncommitted changes:\n{}", output.stdout.trim_end());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_under_the_reserved_domain_is_a_placeholder() {
        let is_placeholder = |repository: &str| {
            Workspace { version: String::new(), repository: repository.to_owned() }.is_placeholder()
        };
        assert!(is_placeholder("https://repository.invalid/rakwire") && is_placeholder("rakwire"));
        assert!(!is_placeholder("https://git.example.org/rakwire.invalid"));
    }

    #[test]
    fn the_newest_section_of_the_changelog_must_describe_the_released_version() {
        let changelog =
            "# Changelog\n\n## 0.2.0 - 2030-01-31\n\n### Added\n\n- More.\n\n## 0.1.0 - 2029-01-01\n";
        assert_eq!(date(changelog, "0.2.0").unwrap(), Some("2030-01-31"));
        assert_eq!(date(&changelog.replace("2030-01-31", UNDATED), "0.2.0").unwrap(), None);
        let error = |changelog: &str, version| date(changelog, version).unwrap_err().to_string();
        assert!(error(changelog, "0.3.0").contains("is \"0.2.0 - 2030-01-31\", not `0.3.0 - DATE`"));
        assert!(error(&changelog.replace("2030-01-31", "soon"), "0.2.0").contains("nor a date"));
        assert!(error(&changelog.replace("- More.", ""), "0.2.0").contains("is empty"));
    }
}
