//! Checks that the tests of a package read only files inside it, so that an unpacked package can be tested anywhere. A
//! file used by several packages is in one of them, and the others have a symbolic link, for which cargo packs the
//! file.

use anyhow::{Result, bail};

use crate::shell::Shell;
use crate::site::resolved;
use crate::tracked;

/// Checks every path with `..` in the test files of packages.
pub fn check(shell: &Shell) -> Result<()> {
    let files = tracked::files(shell)?;
    let manifests = files
        .iter()
        .filter_map(|file| file.strip_suffix("Cargo.toml").or_else(|| file.strip_suffix("package.json")));
    let packages: Vec<_> = manifests.filter(|folder| !folder.contains("tests/")).collect();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in files.iter().filter(|file| file.ends_with(".rs") || file.ends_with(".mjs")) {
        let package =
            packages.iter().filter(|folder| file.starts_with(**folder)).max_by_key(|folder| folder.len());
        let Some(package) = package.filter(|package| file[package.len()..].starts_with("tests")) else {
            continue;
        };
        count += 1;
        wrong.extend(outside(&shell.read(file)?, file, package).iter().map(|path| format!("{file}: {path}")));
    }
    if !wrong.is_empty() {
        bail!("tests read outside of their packages:\n  {}", wrong.join("\n  "));
    }
    if count == 0 {
        bail!("no test file of a package was found");
    }
    shell.print(format_args!("{count} test files, none of which reads outside of its package"));
    Ok(())
}

/// Returns the paths in a text, relative to its file or to its package, that lead out of the package.
fn outside<'t>(text: &'t str, file: &str, package: &str) -> Vec<&'t str> {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let of_line = |line: &'t str| {
        let base = if line.contains("CARGO_MANIFEST_DIR") { package } else { folder };
        let up = line.split('"').skip(1).step_by(2).filter(|path| path.split('/').next() == Some(".."));
        up.filter(move |path| !format!("{}/", resolved(base, path)).starts_with(package))
    };
    text.lines().flat_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_a_package_are_found() {
        let found = |text| outside(text, "native/tests/it/library.rs", "native/");
        assert_eq!(found(r#"include_str!("../vectors/a.json")"#), [""; 0]);
        assert_eq!(found(r#"#[path = "../../src/a.rs"] mod a; "/../secret""#), [""; 0]);
        assert_eq!(found(r#"include_str!("../../../core/a.json")"#), ["../../../core/a.json"]);
        assert_eq!(found(r#"Path::new(env!("CARGO_MANIFEST_DIR")).join("..")"#), [".."]);
        assert_eq!(found(r#"Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")"#), ["../docs"]);
    }
}
