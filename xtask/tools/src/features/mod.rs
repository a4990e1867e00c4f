//! The table of docs/features.md names what offers each feature in each library: those items must be public there.

mod rust;
mod table;
mod typescript;

use anyhow::{Result, bail};

use self::rust::Crate;
use self::table::Row;
use self::typescript::Package;
use xtask::shell::Shell;

const TABLE: &str = "docs/features.md";
/// What a name begins with that a driver takes from the core.
const CORE: &str = "rakwire::";
/// What a name begins with that is of a plugin.
const PLUGINS: &str = "rakwire_plugins::";

/// What the columns of the table are about.
struct Libraries {
    core: Crate,
    native: Crate,
    npm: Package,
    wasm: Crate,
    embassy: Crate,
    plugins: Crate,
}

/// Checks every cell of the table. The tests of its rows are checked with those of the other documents.
pub(crate) fn check(shell: &Shell) -> Result<()> {
    let libraries = Libraries::read(shell)?;
    let rows = table::rows(&shell.read(TABLE)?)?;
    let mut wrong = Vec::new();
    let mut names = 0;
    for row in &rows {
        names += row.names().count();
        wrong
            .extend(libraries.problems(row).iter().map(|problem| format!("{TABLE}:{}: {problem}", row.line)));
    }
    if !wrong.is_empty() {
        bail!("the table of features is wrong:\n  {}", wrong.join("\n  "));
    }
    shell.print(format_args!("{} features, for which {names} public items are named that exist", rows.len()));
    Ok(())
}

impl Libraries {
    fn read(shell: &Shell) -> Result<Self> {
        let source = |path: &str| shell.read(path).ok();
        Ok(Self {
            core: Crate::read("core/src/lib.rs", &source)?,
            native: Crate::read("native/src/lib.rs", &source)?,
            npm: Package::read("wasm/package.json", &source)?,
            wasm: Crate::read("wasm/src/lib.rs", &source)?,
            embassy: Crate::read("embedded/src/lib.rs", &source)?,
            plugins: Crate::read("plugins/src/lib.rs", &source)?,
        })
    }

    /// All that is wrong with a row.
    fn problems(&self, row: &Row) -> Vec<String> {
        let mut problems = row.problems();
        for (column, name) in row.names() {
            if !self.has(column, name) {
                problems.push(format!("{column} has no public {name}"));
            }
        }
        problems
    }

    fn has(&self, column: &str, name: &str) -> bool {
        if let Some(name) = name.strip_prefix(PLUGINS) {
            return self.plugins.has(name, Some(&self.core));
        }
        let library = match column {
            "core" => return self.core.has(name, None),
            "npm" => return self.npm.has(name),
            "native" => &self.native,
            "Rust in browsers" => &self.wasm,
            _ => &self.embassy,
        };
        match name.strip_prefix(CORE) {
            // A driver whose functions take types of the core leaves it to the application to name that.
            Some(name) => self.core.has(name, None),
            None => library.has(name, Some(&self.core)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_is_gone_is_found() {
        let shell = Shell::new().unwrap();
        let libraries = Libraries::read(&shell).unwrap();
        let line = "| ping | RakNet | `raknet::Peer::ping` | `Endpoint::gone` | `ping`, `Pong.gone`, `codec/bitstream.Gone` | \
                    `web::ping`, `rakwire::raknet::Gone`, `rakwire_plugins::ready::Gone` | Not offered: a board has none of it. | `a_test` |";
        let expected = [
            "native has no public Endpoint::gone",
            "npm has no public Pong.gone",
            "npm has no public codec/bitstream.Gone",
            "Rust in browsers has no public rakwire::raknet::Gone",
            "Rust in browsers has no public rakwire_plugins::ready::Gone",
        ];
        assert_eq!(libraries.problems(&Row::new(7, line)), expected);
    }
}
