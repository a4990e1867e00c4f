//! What the npm package exports.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// What stands before the name of a declaration that is exported where it stands.
const DECLARATIONS: [&str; 6] = ["async function ", "function ", "class ", "const ", "interface ", "type "];

/// What each entry of the package exports, by the entries' names; that of the first one is empty.
pub(super) struct Package {
    entries: BTreeMap<String, Entry>,
}

/// The exported names, those of a namespace as `NAMESPACE.NAME`, and the members of interfaces and classes.
#[derive(Default)]
struct Entry {
    exports: BTreeSet<String>,
    types: BTreeMap<String, Members>,
}

#[derive(Default)]
struct Members {
    bases: Vec<String>,
    names: BTreeSet<String>,
}

impl Package {
    /// Reads the entries that a manifest names, and the files that each of them exports.
    pub(super) fn read(manifest: &str, source: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let folder = manifest.rsplit_once('/').map_or("", |(folder, _)| folder);
        let text = source(manifest).with_context(|| format!("{manifest} cannot be read"))?;
        let parsed: Value = serde_json::from_str(&text).with_context(|| format!("{manifest} is not JSON"))?;
        let exports = parsed.get("exports").and_then(Value::as_object);
        let mut entries = BTreeMap::new();
        for (name, conditions) in exports.with_context(|| format!("{manifest} exports nothing"))? {
            // Entries without types are files, such as the WebAssembly.
            let Some(types) = conditions.get("types").and_then(Value::as_str) else { continue };
            let module = types.strip_prefix("./dist/").and_then(|path| path.strip_suffix(".d.ts"));
            let module = module.with_context(|| format!("the types of {name} are no file of dist"))?;
            let mut entry = Entry::default();
            let file = format!("{folder}/ts/{module}.ts");
            entry.add_exports(&file, source)?;
            if entry.exports.is_empty() {
                bail!("{file} exports nothing");
            }
            let name = name.trim_start_matches('.').trim_start_matches('/');
            entries.insert(name.to_owned(), entry);
        }
        Ok(Self { entries })
    }

    /// Whether the first entry exports `NAME` or `NAME.MEMBER`, or another one what is written as `ENTRY/NAME`.
    pub(super) fn has(&self, name: &str) -> bool {
        let (entry, name) = name.split_once('/').unwrap_or(("", name));
        self.entries.get(entry).is_some_and(|entry| entry.has(name))
    }
}

impl Entry {
    fn has(&self, name: &str) -> bool {
        let as_member = || {
            let (of, member) = name.rsplit_once('.')?;
            Some(self.exports.contains(of) && self.has_member(of, member))
        };
        self.exports.contains(name) || as_member().unwrap_or_default()
    }

    fn has_member(&self, of: &str, member: &str) -> bool {
        self.types.get(of).is_some_and(|found| {
            found.names.contains(member) || found.bases.iter().any(|base| self.has_member(base, member))
        })
    }

    /// Each export is `export { … } from "./FILE.js"`, `export type { … }` of the same kind, `export * from "./FILE.js"`,
    /// `export * as NAME from "./FILE.js"`, or a declaration.
    fn add_exports(&mut self, path: &str, source: &dyn Fn(&str) -> Option<String>) -> Result<()> {
        let text = source(path).with_context(|| format!("{path} cannot be read"))?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = |rest: &str| {
            let file = rest.split('"').nth(1).and_then(|file| file.strip_prefix("./")?.strip_suffix(".js"));
            let file = file.with_context(|| format!("{path} exports from no file of its folder"))?;
            anyhow::Ok(format!("{folder}/{file}.ts"))
        };
        self.add_types(&text, "");
        for statement in text.split("\nexport ").skip(1) {
            if let Some(name) = declared(statement) {
                self.exports.insert(name.to_owned());
            } else if let Some(rest) = statement.strip_prefix("* from ") {
                self.add_exports(&beside(rest)?, source)?;
            } else if let Some((name, rest)) =
                statement.strip_prefix("* as ").and_then(|rest| rest.split_once(" from "))
            {
                self.add_namespace(name, &beside(rest)?, source)?;
            } else {
                let names = statement.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
                let (names, rest) = names.with_context(|| format!("{path} exports more than names"))?;
                let names = names.split(',').map(|name| name.trim().to_owned());
                self.exports.extend(names.filter(|name| !name.is_empty()));
                let file = beside(rest)?;
                self.add_types(&source(&file).with_context(|| format!("{file} cannot be read"))?, "");
            }
        }
        Ok(())
    }

    /// All that a file declares and exports, under a name of its own.
    fn add_namespace(
        &mut self,
        namespace: &str,
        path: &str,
        source: &dyn Fn(&str) -> Option<String>,
    ) -> Result<()> {
        let text = source(path).with_context(|| format!("{path} cannot be read"))?;
        self.exports.insert(namespace.to_owned());
        let names = text.split("\nexport ").skip(1).filter_map(declared);
        self.exports.extend(names.map(|name| format!("{namespace}.{name}")));
        self.add_types(&text, &format!("{namespace}."));
        Ok(())
    }

    fn add_types(&mut self, text: &str, namespace: &str) {
        let mut current: Option<(String, Members)> = None;
        for line in text.lines() {
            let head = line.strip_prefix("export ").unwrap_or(line);
            let head = head.strip_prefix("interface ").or_else(|| head.strip_prefix("class "));
            if let Some(head) = head.and_then(|head| head.strip_suffix('{')) {
                let (name, bases) = head.split_once(" extends ").unwrap_or((head, ""));
                let bases = bases.split(',').map(|base| base.trim().to_owned()).collect();
                let name = format!("{namespace}{}", name.trim());
                current = Some((name, Members { bases, names: BTreeSet::new() }));
            } else if line == "}" {
                self.types.extend(current.take());
            } else if let (Some((_, members)), Some(member)) = (&mut current, member(line)) {
                members.names.insert(member.to_owned());
            }
        }
    }
}

/// The name that a statement declares, behind its `export`.
fn declared(statement: &str) -> Option<&str> {
    let rest = DECLARATIONS.iter().find_map(|kind| statement.strip_prefix(kind))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    // `type { … }` exports names of another file.
    (end > 0).then_some(&rest[..end])
}

/// The name that a line of an interface or class declares: a line with one level of indentation that is no comment.
fn member(line: &str) -> Option<&str> {
    let declared = line.strip_prefix("  ").filter(|rest| rest.starts_with(char::is_alphabetic))?;
    let declared =
        ["readonly ", "get "].iter().find_map(|word| declared.strip_prefix(word)).unwrap_or(declared);
    let end = declared.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    declared[end..].starts_with(['(', ':', '?', '<']).then_some(&declared[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{ "exports": {
        ".": { "types": "./dist/index.d.ts", "default": "./dist/index.js" },
        "./codec": { "types": "./dist/codec/index.d.ts" },
        "./a.wasm": "./pkg/a.wasm"
    } }"#;
    const FILES: [(&str, &str); 7] = [
        ("p/package.json", MANIFEST),
        (
            "p/ts/index.ts",
            "/** Text. */\nexport { connect } from \"./a.js\";\nexport * from \"./c.js\";\nexport async function init(\n): void {}\n",
        ),
        ("p/ts/c.ts", "/** Text. */\nexport type {\n  Options,\n  Pong,\n} from \"./b.js\";"),
        ("p/ts/a.ts", "export function connect() {}"),
        (
            "p/ts/b.ts",
            "interface Base {\n  signal?: AbortSignal;\n}\nexport interface Options extends Base {\n  /** The name: text. */\n  target: string;\n}\nexport interface Pong {\n  readonly data: Uint8Array;\n  read<T>(): T;\n}\nexport interface Hidden {\n  a: string;\n}\n",
        ),
        (
            "p/ts/codec/index.ts",
            "/** Text. */\n\nexport * as bits from \"./bits.js\";\nexport { Reader } from \"./bits.js\";\n",
        ),
        (
            "p/ts/codec/bits.ts",
            "/** Text. */\n\nexport class Reader {\n  #own = 0;\n  get position(): number {\n    return 0;\n  }\n  u8(): number {\n  }\n}\nexport const bool: Item = {};\nconst secret = 1;\n",
        ),
    ];

    #[test]
    fn exports_and_members_of_every_entry_are_found() {
        let source = |wanted: &str| {
            let found = FILES.iter().find(|(path, _)| *path == wanted);
            found.map(|(_, text)| (*text).to_owned())
        };
        let package = Package::read("p/package.json", &source).unwrap();
        for name in [
            "connect",
            "init",
            "Options",
            "Options.target",
            "Options.signal",
            "Pong.data",
            "Pong.read",
            "codec/bits",
            "codec/bits.bool",
            "codec/bits.Reader.u8",
            "codec/Reader.position",
        ] {
            assert!(package.has(name), "{name}");
        }
        for name in [
            "Hidden",
            "Hidden.a",
            "Base.signal",
            "Options.data",
            "connect.data",
            "Options.The",
            "bits",
            "codec/connect",
            "codec/bits.secret",
            "codec/bits.Reader.own",
            "gone/bits",
        ] {
            assert!(!package.has(name), "{name}");
        }
    }
}
