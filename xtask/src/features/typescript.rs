//! What the npm package exports.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

/// The exported names of the package, and the members of its interfaces.
pub(super) struct Package {
    exports: BTreeSet<String>,
    interfaces: BTreeMap<String, Interface>,
}

#[derive(Default)]
struct Interface {
    bases: Vec<String>,
    members: BTreeSet<String>,
}

impl Package {
    /// Reads the file that exports everything, and the files that it names.
    pub(super) fn read(index: &str, source: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let mut package = Self { exports: BTreeSet::new(), interfaces: BTreeMap::new() };
        package.add_exports(index, source)?;
        if package.exports.is_empty() {
            bail!("{index} exports nothing");
        }
        Ok(package)
    }

    /// Each export is `export { … } from "./FILE.js"`, `export type { … }` of the same kind, `export * from "./FILE.js"`, or a
    /// function.
    fn add_exports(&mut self, index: &str, source: &dyn Fn(&str) -> Option<String>) -> Result<()> {
        let text = source(index).with_context(|| format!("{index} cannot be read"))?;
        let folder = index.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = |rest: &str| {
            let file = rest.split('"').nth(1).and_then(|file| file.strip_prefix("./")?.strip_suffix(".js"));
            let file = file.with_context(|| format!("{index} exports from no file of its folder"))?;
            anyhow::Ok(format!("{folder}/{file}.ts"))
        };
        for statement in text.split("\nexport ").skip(1) {
            if let Some(rest) = statement.strip_prefix("* from ") {
                self.add_exports(&beside(rest)?, source)?;
                continue;
            }
            let function = statement.strip_prefix("async ").unwrap_or(statement).strip_prefix("function ");
            if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')) {
                self.exports.insert(name.to_owned());
                continue;
            }
            let names = statement.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
            let (names, rest) = names.with_context(|| format!("{index} exports more than names"))?;
            let names = names.split(',').map(|name| name.trim().to_owned());
            self.exports.extend(names.filter(|name| !name.is_empty()));
            let file = beside(rest)?;
            self.add_interfaces(&source(&file).with_context(|| format!("{file} cannot be read"))?);
        }
        Ok(())
    }

    /// Whether the package exports `NAME`, or `NAME.MEMBER`.
    pub(super) fn has(&self, name: &str) -> bool {
        match name.split_once('.') {
            None => self.exports.contains(name),
            Some((name, member)) => self.exports.contains(name) && self.has_member(name, member),
        }
    }

    fn has_member(&self, interface: &str, member: &str) -> bool {
        self.interfaces.get(interface).is_some_and(|found| {
            found.members.contains(member) || found.bases.iter().any(|base| self.has_member(base, member))
        })
    }

    fn add_interfaces(&mut self, text: &str) {
        let mut current: Option<(String, Interface)> = None;
        for line in text.lines() {
            let head = line.strip_prefix("export ").unwrap_or(line).strip_prefix("interface ");
            if let Some(head) = head.and_then(|head| head.strip_suffix('{')) {
                let (name, bases) = head.split_once(" extends ").unwrap_or((head, ""));
                let bases = bases.split(',').map(|base| base.trim().to_owned()).collect();
                current = Some((name.trim().to_owned(), Interface { bases, members: BTreeSet::new() }));
            } else if line == "}" {
                self.interfaces.extend(current.take());
            } else if let (Some((_, interface)), Some(member)) = (&mut current, member(line)) {
                interface.members.insert(member.to_owned());
            }
        }
    }
}

/// The name that a line of an interface declares: a line with one level of indentation that is no comment.
fn member(line: &str) -> Option<&str> {
    let declared = line.strip_prefix("  ").filter(|rest| rest.starts_with(char::is_alphabetic))?;
    let declared = declared.strip_prefix("readonly ").unwrap_or(declared);
    let end = declared.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    declared[end..].starts_with(['(', ':', '?', '<']).then_some(&declared[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_and_members_are_found() {
        let source = |path: &str| {
            match path {
            "ts/index.ts" => Some("/** Text. */\nexport { connect } from \"./a.js\";\nexport * from \"./c.js\";\nexport async function init(\n): void {}\n".to_owned()),
            "ts/c.ts" => Some("/** Text. */\nexport type {\n  Options,\n  Pong,\n} from \"./b.js\";".to_owned()),
            "ts/a.ts" => Some("export function connect() {}".to_owned()),
            "ts/b.ts" => Some(
                "interface Base {\n  signal?: AbortSignal;\n}\nexport interface Options extends Base {\n  /** The name: text. */\n  target: string;\n}\nexport interface Pong {\n  readonly data: Uint8Array;\n  read<T>(): T;\n}\nexport interface Hidden {\n  a: string;\n}\n".to_owned(),
            ),
            _ => None,
        }
        };
        let package = Package::read("ts/index.ts", &source).unwrap();
        for name in
            ["connect", "init", "Options", "Options.target", "Options.signal", "Pong.data", "Pong.read"]
        {
            assert!(package.has(name), "{name}");
        }
        for name in ["Hidden", "Hidden.a", "Base.signal", "Options.data", "connect.data", "Options.The"] {
            assert!(!package.has(name), "{name}");
        }
    }
}
