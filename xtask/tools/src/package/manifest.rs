//! What the manifest of a published crate must say.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use xtask::shell::Shell;

/// The slugs of the registry that are in use here; it refuses others than its own at the upload.
const CATEGORIES: [&str; 10] = [
    "asynchronous",
    "command-line-utilities",
    "embedded",
    "encoding",
    "game-development",
    "network-programming",
    "no-std",
    "no-std::no-alloc",
    "wasm",
    "web-programming::websocket",
];
/// How many keywords and categories the registry takes.
const MOST: usize = 5;
/// The longest keyword that the registry takes.
const LONGEST_KEYWORD: usize = 20;

/// A crate that is published.
#[derive(Default)]
pub(crate) struct Published {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its folder in the repository.
    pub(crate) folder: String,
    pub(crate) repository: Option<String>,
    /// What it needs of the others, at run time or to be built.
    pub(crate) needs: Vec<String>,
    /// Whether it has an interface.
    pub(crate) has_library: bool,
    /// Whether it has a program to install.
    pub(crate) has_program: bool,
    /// What its manifest lacks.
    pub(crate) faults: Vec<String>,
}

impl Published {
    /// The name of its folder where it is unpacked.
    pub(crate) fn folder_name(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

/// The published crates, each after those that it needs.
pub(crate) fn published(shell: &Shell) -> Result<Vec<Published>> {
    let output = shell.cmd("cargo", ["metadata", "--no-deps", "--format-version", "1"]).output()?;
    let metadata: Value = serde_json::from_str(&output.stdout).context("`cargo metadata` printed no JSON")?;
    let root = metadata.get("workspace_root").and_then(Value::as_str).context("there is no workspace")?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("there are no packages")?;
    let published = packages.iter().filter(|package| package.get("publish").is_none_or(Value::is_null));
    let read = |package| read(package, root).context("`cargo metadata` describes a package without a name");
    in_order(published.map(read).collect::<Result<_>>()?)
}

/// Each after those that it needs.
fn in_order(mut rest: Vec<Published>) -> Result<Vec<Published>> {
    let mut order: Vec<Published> = Vec::new();
    while !rest.is_empty() {
        let is_free = |package: &Published| {
            package.needs.iter().all(|need| order.iter().any(|other| other.name == *need))
        };
        let Some(next) = rest.iter().position(is_free) else {
            let names: Vec<_> = rest.iter().map(|package| package.name.as_str()).collect();
            bail!("these need each other, or what is not published: {}", names.join(", "));
        };
        order.push(rest.remove(next));
    }
    Ok(order)
}

/// Checks the manifests of all.
pub(super) fn check(packages: &[Published]) -> Result<()> {
    let all = packages.iter().flat_map(|package| {
        package.faults.iter().map(move |fault| format!("{}/Cargo.toml: {fault}", package.folder))
    });
    let all: Vec<String> = all.collect();
    if all.is_empty() {
        Ok(())
    } else {
        bail!("manifests are not fit for the registry:\n  {}", all.join("\n  "))
    }
}

fn read(package: &Value, root: &str) -> Option<Published> {
    let text = |key: &str| package.get(key).and_then(Value::as_str).map(str::to_owned);
    let folder =
        text("manifest_path")?.strip_prefix(root)?.strip_suffix("/Cargo.toml")?.trim_matches('/').to_owned();
    let dependencies = package.get("dependencies")?.as_array()?;
    let ours = dependencies.iter().filter(|dependency| {
        dependency.get("path").is_some_and(Value::is_string)
            && dependency.get("kind").and_then(Value::as_str) != Some("dev")
    });
    let needs = ours.clone().filter_map(|dependency| Some(dependency.get("name")?.as_str()?.to_owned()));
    let without_version = ours.filter(|dependency| {
        dependency.get("req").and_then(Value::as_str).is_none_or(|version| version == "*")
    });
    let mut faults = faults(package);
    faults.extend(without_version.filter_map(|dependency| {
        Some(format!("the dependency {} has no version", dependency.get("name")?.as_str()?))
    }));
    Some(Published {
        name: text("name")?,
        version: text("version")?,
        folder,
        repository: text("repository"),
        needs: needs.collect(),
        has_library: is_library(package),
        has_program: has_target(package, "bin"),
        faults,
    })
}

fn is_library(package: &Value) -> bool {
    ["lib", "rlib", "proc-macro"].iter().any(|kind| has_target(package, kind))
}

fn has_target(package: &Value, kind: &str) -> bool {
    let targets = package.get("targets").and_then(Value::as_array).into_iter().flatten();
    let mut kinds = targets.filter_map(|target| target.get("kind")?.as_array()).flatten();
    kinds.any(|found| found.as_str() == Some(kind))
}

/// What a manifest lacks.
fn faults(package: &Value) -> Vec<String> {
    let required = ["description", "license", "repository", "readme", "rust_version"];
    let absent = required.iter().filter(|key| !package.get(key).is_some_and(Value::is_string));
    let mut faults: Vec<String> = absent.map(|key| format!("{} is missing", key.replace('_', "-"))).collect();
    let keywords = strings(package, "keywords");
    faults.extend(count(&keywords, "keywords"));
    let bad = keywords.iter().filter(|word| !is_keyword(word));
    faults.extend(bad.map(|word| format!("the registry refuses the keyword {word:?}")));
    let categories = strings(package, "categories");
    faults.extend(count(&categories, "categories"));
    let unknown = categories.iter().filter(|slug| !CATEGORIES.contains(slug));
    faults.extend(unknown.map(|slug| format!("{slug:?} is not in the list of categories")));
    // The stage `doc` builds with all features, so what it checks is what readers see only if the hosting site does, too.
    let hosted = package.pointer("/metadata/docs/rs/all-features").and_then(Value::as_bool);
    if is_library(package) && hosted != Some(true) {
        faults.push("[package.metadata.docs.rs] has no `all-features = true`".to_owned());
    }
    faults
}

fn strings<'v>(package: &'v Value, key: &str) -> Vec<&'v str> {
    let values = package.get(key).and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).collect()
}

fn count(values: &[&str], name: &str) -> Option<String> {
    (values.is_empty() || values.len() > MOST)
        .then(|| format!("there are {} {name}, not 1 to {MOST}", values.len()))
}

fn is_keyword(word: &str) -> bool {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "_-+".contains(character);
    word.len() <= LONGEST_KEYWORD
        && word.starts_with(|first: char| first.is_ascii_alphanumeric())
        && word.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good() -> Value {
        json!({
            "name": "a", "version": "0.1.0", "manifest_path": "/r/b/a/Cargo.toml",
            "description": "d", "license": "MIT", "repository": "https://a.example/b", "readme": "README.md",
            "rust_version": "1.88", "keywords": ["udp", "no_std"], "categories": ["no-std::no-alloc"],
            "targets": [{"kind": ["lib"]}], "metadata": {"docs": {"rs": {"all-features": true}}},
            "dependencies": [
                {"name": "b", "path": "/r/c", "kind": null, "req": "^0.1.0"},
                {"name": "test-of-b", "path": "/r/c", "kind": "dev", "req": "*"},
                {"name": "foreign", "kind": null, "req": "*"},
            ],
        })
    }

    fn faults_after(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut package = good();
        change(&mut package);
        read(&package, "/r").unwrap().faults
    }

    #[test]
    fn a_good_manifest_has_no_fault() {
        let package = read(&good(), "/r").unwrap();
        assert_eq!(package.faults, [""; 0]);
        assert_eq!((package.folder.as_str(), package.needs.as_slice()), ("b/a", ["b".to_owned()].as_slice()));
        assert_eq!(package.folder_name(), "a-0.1.0");
        assert!(!package.has_program);
    }

    #[test]
    fn each_fault_of_a_manifest_is_named() {
        let faults = |key: &str, value: Value| faults_after(|package| package[key] = value);
        assert_eq!(faults("repository", Value::Null), ["repository is missing"]);
        assert_eq!(faults("rust_version", Value::Null), ["rust-version is missing"]);
        assert_eq!(faults("keywords", json!([])), ["there are 0 keywords, not 1 to 5"]);
        assert_eq!(
            faults("keywords", json!(["a", "b", "c", "d", "e", "f"])),
            ["there are 6 keywords, not 1 to 5"]
        );
        assert_eq!(faults("keywords", json!(["a b"])), ["the registry refuses the keyword \"a b\""]);
        assert_eq!(faults("categories", json!(["games"])), ["\"games\" is not in the list of categories"]);
        assert_eq!(
            faults("metadata", Value::Null),
            ["[package.metadata.docs.rs] has no `all-features = true`"]
        );
        assert_eq!(
            faults_after(|package| package["dependencies"][0]["req"] = json!("*")),
            ["the dependency b has no version"]
        );
    }

    #[test]
    fn a_program_alone_has_no_documentation_to_host() {
        let package = faults_after(|package| {
            package["targets"] = json!([{"kind": ["bin"]}]);
            package["metadata"] = Value::Null;
        });
        assert_eq!(package, [""; 0]);
    }

    #[test]
    fn crates_come_after_those_that_they_need() {
        let package = |name: &str, needs: &[&str]| Published {
            name: name.to_owned(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            ..read(&good(), "/r").unwrap()
        };
        let order =
            in_order(vec![package("c", &["b", "a"]), package("b", &["a"]), package("a", &[])]).unwrap();
        let names: Vec<_> = order.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let error = in_order(vec![package("a", &["b"]), package("b", &["a"])]).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "these need each other, or what is not published: a, b");
    }
}
