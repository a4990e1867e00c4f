//! What must agree before anything is packed.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::package::Published;
use xtask::shell::Shell;

/// The manifests of the npm packages.
pub(super) const NPM_MANIFESTS: [&str; 2] = ["wasm/package.json", "web/create/package.json"];

/// The manifest of the projects that `create-rakwire` makes.
pub(super) const TEMPLATE_MANIFEST: &str = "web/create/template/package.json";

/// The address of the repository that all packages name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repository(pub(super) String);

impl Repository {
    /// Whether it is one that cannot exist (RFC 2606, section 2).
    pub(super) fn is_placeholder(&self) -> bool {
        let host = self.0.split('/').nth(2).unwrap_or_default();
        host.is_empty() || host.ends_with(".invalid")
    }
}

/// The version that all crates have.
pub(super) fn version(packages: &[Published]) -> Result<&str> {
    let first = packages.first().context("no crate is published")?;
    let other = packages.iter().find(|package| package.version != first.version);
    match other {
        None => Ok(&first.version),
        Some(other) => {
            bail!("{} is {}, but {} is {}", first.name, first.version, other.name, other.version)
        }
    }
}

/// The repository that all crates name.
pub(super) fn repository(packages: &[Published]) -> Result<Repository> {
    let mut named = packages.iter().map(|package| package.repository.as_deref());
    let first = named.next().flatten().context("the first crate names no repository")?;
    if let Some(other) = named.find(|other| *other != Some(first)) {
        bail!("crates name {first} and {}", other.unwrap_or("none"));
    }
    Ok(Repository(first.to_owned()))
}

/// Checks what an npm package says of itself in its manifest, the file `name`.
pub(super) fn npm(name: &str, manifest: &str, version: &str, repository: &Repository) -> Result<()> {
    let manifest = json(manifest, name)?;
    same(name, "version", manifest.get("version"), version)?;
    let url = format!("git+{}.git", repository.0);
    same(name, "repository", manifest.pointer("/repository/url"), &url)
}

/// Checks the version in the lock file of the npm package.
pub(super) fn npm_lock(lock: &str, version: &str) -> Result<()> {
    const NAME: &str = "wasm/package-lock.json";
    let lock = json(lock, NAME)?;
    same(NAME, "version", lock.get("version"), version)?;
    same(
        NAME,
        "version of its package",
        lock.get("packages").and_then(|packages| packages.get("")?.get("version")),
        version,
    )
}

/// Checks that projects of `create-rakwire` begin with this version of the npm package, by the manifest of their template.
pub(super) fn template(manifest: &str, version: &str) -> Result<()> {
    let manifest = json(manifest, TEMPLATE_MANIFEST)?;
    same(
        TEMPLATE_MANIFEST,
        "version of rakwire",
        manifest.pointer("/dependencies/rakwire"),
        &format!("^{version}"),
    )
}

fn json(text: &str, name: &str) -> Result<Value> {
    serde_json::from_str(text).with_context(|| format!("{name} is not JSON"))
}

fn same(file: &str, what: &str, found: Option<&Value>, expected: &str) -> Result<()> {
    let found = found.and_then(Value::as_str).unwrap_or("missing");
    if found != expected {
        bail!("the {what} in {file} is {found}, not {expected}");
    }
    Ok(())
}

/// Checks that all is committed.
pub(super) fn clean_tree(shell: &Shell) -> Result<()> {
    let output = shell.cmd("git", ["status", "--porcelain"]).output()?;
    if !output.status.success() {
        bail!("`git status` failed");
    }
    if !output.stdout.is_empty() {
        bail!("not all is committed:\n{}", output.stdout.trim_end());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, repository: Option<&str>) -> Published {
        Published {
            name: name.to_owned(),
            version: version.to_owned(),
            repository: repository.map(str::to_owned),
            ..Published::default()
        }
    }

    #[test]
    fn all_crates_have_one_version_and_one_repository() {
        let packages =
            [package("a", "0.1.0", Some("https://x/y")), package("b", "0.1.0", Some("https://x/y"))];
        assert_eq!(version(&packages).unwrap(), "0.1.0");
        assert_eq!(repository(&packages).unwrap(), Repository("https://x/y".to_owned()));
        let packages = [package("a", "0.1.0", Some("https://x/y")), package("b", "0.2.0", None)];
        assert_eq!(version(&packages).unwrap_err().to_string(), "a is 0.1.0, but b is 0.2.0");
        assert_eq!(repository(&packages).unwrap_err().to_string(), "crates name https://x/y and none");
        assert!(version(&[]).is_err());
    }

    #[test]
    fn a_placeholder_is_told_by_its_host() {
        let is_placeholder = |address: &str| Repository(address.to_owned()).is_placeholder();
        assert!(is_placeholder("https://repository.invalid/rakwire"));
        assert!(is_placeholder("rakwire"));
        assert!(!is_placeholder("https://git.example.org/rakwire.invalid"));
    }

    #[test]
    fn an_npm_package_says_the_same_as_the_crates() {
        const NAME: &str = "wasm/package.json";
        let repository = Repository("https://x/y".to_owned());
        let manifest = r#"{"version":"0.1.0","repository":{"url":"git+https://x/y.git"}}"#;
        npm(NAME, manifest, "0.1.0", &repository).unwrap();
        let error = npm(NAME, manifest, "0.2.0", &repository).unwrap_err().to_string();
        assert_eq!(error, "the version in wasm/package.json is 0.1.0, not 0.2.0");
        assert!(npm(NAME, r#"{"version":"0.1.0"}"#, "0.1.0", &repository).is_err());
        template(r#"{"dependencies":{"rakwire":"^0.1.0"}}"#, "0.1.0").unwrap();
        let error = template(r#"{"dependencies":{"rakwire":"^0.1.0"}}"#, "0.2.0").unwrap_err().to_string();
        assert_eq!(error, "the version of rakwire in web/create/template/package.json is ^0.1.0, not ^0.2.0");
        npm_lock(r#"{"version":"0.1.0","packages":{"":{"version":"0.1.0"}}}"#, "0.1.0").unwrap();
        assert!(npm_lock(r#"{"version":"0.1.0","packages":{"":{"version":"0.0.9"}}}"#, "0.1.0").is_err());
    }
}
