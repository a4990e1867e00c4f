//! Checks that the tests of a package read only files inside it, so that it can be tested wherever it is unpacked. A
//! file used by several packages is in one of them and a symbolic link in the others; cargo packs the file in place of
//! the link.

use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};

use crate::shell::Shell;
use crate::tracked;

/// Checks every path with `..` in the test files of packages.
pub fn check(shell: &Shell) -> Result<()> {
    let root = &shell.path(".");
    let mut looked_at = 0;
    let mut wrong = Vec::new();
    for name in tracked::files(shell)?.iter().filter(|name| name.ends_with(".rs") || name.ends_with(".mjs")) {
        let file = root.join(name);
        let Some(package) = package(&file, root) else { continue };
        if !file.strip_prefix(package).is_ok_and(|below| below.starts_with("tests")) {
            continue;
        }
        looked_at += 1;
        let text = shell.read(name)?;
        wrong.extend(outside(&text, &file, package).iter().map(|path| format!("{name}: {path}")));
    }
    if !wrong.is_empty() {
        bail!("tests read outside of their packages:\n  {}", wrong.join("\n  "));
    }
    if looked_at == 0 {
        bail!("there are no tests");
    }
    shell.print(format_args!("{looked_at} test files, none of which reads outside of its package"));
    Ok(())
}

/// Returns the package folder of a file.
fn package<'a>(file: &'a Path, root: &Path) -> Option<&'a Path> {
    let mut within = file.ancestors().skip(1).take_while(|folder| *folder != root);
    within.find(|folder| {
        ["Cargo.toml", "package.json"].iter().any(|manifest| folder.join(manifest).is_file())
            && !folder.components().any(|part| part.as_os_str() == "tests")
    })
}

/// Returns the paths in a text, relative to its file or to its package, that lead out of the package.
fn outside<'t>(text: &'t str, file: &Path, package: &Path) -> Vec<&'t str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let from_package = line.contains("CARGO_MANIFEST_DIR");
        let base = if from_package { package } else { file.parent().unwrap_or(package) };
        let quoted = line.split('"').skip(1).step_by(2);
        let up = quoted.filter(|path| path.split('/').next() == Some(".."));
        found.extend(up.filter(|path| !plain(&base.join(path)).starts_with(package)));
    }
    found
}

/// Resolves `..` in a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::Normal(_) => {
                plain.push(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_out_of_a_package_are_found() {
        let (package, file) = (Path::new("/r/native"), Path::new("/r/native/tests/it/library.rs"));
        let found = |text| outside(text, file, package);
        assert_eq!(found(r#"include_str!("../vectors/a.json")"#), [""; 0]);
        assert_eq!(found(r#"#[path = "../../src/a.rs"] mod a; "/../secret""#), [""; 0]);
        assert_eq!(found(r#"include_str!("../../../core/a.json")"#), ["../../../core/a.json"]);
        assert_eq!(found(r#"Path::new(env!("CARGO_MANIFEST_DIR")).join("..")"#), [".."]);
        assert_eq!(found(r#"Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")"#), ["../docs"]);
    }
}
