//! The layers of a configuration: defaults, file, environment and command line, in this order. This module also formats
//! a configuration with the source and documentation of every value, and lists the differences between two
//! configurations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::error::{ConfigError, ExposedFile, KeyPath, dotted, exposed, named};
use super::mistakes::{Mistake, closest, mistakes, range};
use super::model::{Config, OPTIONS, Target, without_password};
use super::options::{Change, OptionInfo, OptionKind};
use crate::addresses::{HostPort, TargetSpec};

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The default value.
    Default,
    /// A line of the file, counted from 1.
    File(PathBuf, usize),
    /// An environment variable.
    Variable(String),
    /// A command line option, with its dashes.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value from the environment or the command line.
#[derive(Debug, Clone)]
pub struct Override {
    /// The option that is set.
    pub option: &'static OptionInfo,
    /// The source of the value.
    pub source: Source,
    /// The values as text; more than one only for an option that can be repeated.
    pub values: Vec<String>,
}

/// An error in one of the layers, as one line with its position and the necessary change.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LoadError(String);

impl LoadError {
    /// Formats an error and its position as one line, even if the parser's text has several.
    fn at(place: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Self(one_line(&format!("{place}: {reason}")))
    }

    fn plain(reason: &str) -> Self {
        Self(one_line(reason))
    }
}

/// The way in which messages name options.
#[derive(Debug, Clone, Copy)]
enum Names {
    Keys,
    Variables,
    Flags,
}

impl Names {
    fn of(self, key: &str) -> String {
        let named = |targets: &str, setting: fn(&OptionInfo) -> Option<String>| {
            if key == "targets" {
                return targets.to_owned();
            }
            let option = OPTIONS.iter().find(|option| option.key == key);
            option.and_then(setting).unwrap_or_else(|| key.to_owned())
        };
        match self {
            Self::Keys => named("a table [targets.NAME] with an address", |_| None),
            Self::Variables => named("RAKWIRE_RELAY_TARGET, as NAME=HOST:PORT", OptionInfo::variable),
            Self::Flags => named("--target NAME=HOST:PORT", |option| Some(format!("--{}", option.flag))),
        }
    }
}

/// A configuration with the sources of its values.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The merged configuration.
    pub config: Config,
    file: Option<PathBuf>,
    sources: BTreeMap<KeyPath, Source>,
}

impl Loaded {
    /// Reads the file, if there is one, and applies the overrides in order.
    ///
    /// # Errors
    ///
    /// If a layer has an unusable value, or the configuration as a whole is invalid by [`Config::check`].
    pub fn load(file: Option<&Path>, overrides: &[Override]) -> Result<Self, LoadError> {
        let loaded = Self::read(file, overrides)?;
        match loaded.config.check() {
            Ok(()) => Ok(loaded),
            Err(error) => Err(loaded.locate(&error)),
        }
    }

    /// Like [`Loaded::load`], without checking the configuration as a whole.
    ///
    /// # Errors
    ///
    /// If a layer has an unusable value.
    pub fn read(file: Option<&Path>, overrides: &[Override]) -> Result<Self, LoadError> {
        let mut layers = Layers::default();
        if let Some(path) = file {
            layers.add_file(path)?;
        }
        for given in overrides {
            layers.add_override(given)?;
        }
        let config = Config::deserialize(layers.table).map_err(|error| LoadError::plain(error.message()))?;
        Ok(Self { config, file: file.map(Path::to_owned), sources: layers.sources })
    }

    /// Adds the position of the offending value to an error. Options are named as in the source of their value.
    #[must_use]
    pub fn locate(&self, error: &ConfigError) -> LoadError {
        let keys = error.keys();
        let sources = keys.iter().map(|key| self.source(key)).enumerate();
        let given = sources.into_iter().find(|(_, source)| *source != Source::Default);
        let (at, source) = given.unwrap_or((0, Source::Default));
        let reason = error.reason(at, &|key| self.name(key, &source));
        let key = keys.get(at).map(|key| dotted(key));
        match (&source, &self.file, key) {
            (Source::Default, None, _) => LoadError::plain(&reason),
            (Source::Default, Some(file), None) => LoadError::at(file.display(), reason),
            (Source::Default, Some(file), Some(key)) => {
                LoadError::at(file.display(), format_args!("{key}: {reason}"))
            }
            (Source::File(..), _, Some(key)) => LoadError::at(&source, format_args!("{key}: {reason}")),
            (Source::File(..) | Source::Variable(_) | Source::Flag(_), _, _) => {
                LoadError::at(&source, reason)
            }
        }
    }

    /// Returns a hint about settings that are valid but may be unintended.
    ///
    /// # Errors
    ///
    /// The same errors as [`Config::check`].
    pub fn note(&self) -> Result<Option<String>, LoadError> {
        let note = self.config.note_template().map_err(|error| self.locate(&error))?;
        Ok(note.map(|(key, note)| {
            let source = self.source(&path_of(key));
            named(note, &|key| self.name(key, &source))
        }))
    }

    /// Returns the files with secrets that every user of this machine can read: those named by options, and the
    /// configuration file if it contains a password.
    #[must_use]
    pub fn exposed_files(&self) -> Vec<ExposedFile> {
        const STORE: &str = "discovery.store";
        let has_password =
            self.config.discovery.store.as_ref().is_some_and(|store| without_password(store) != *store);
        let itself = match self.source(&path_of(STORE)) {
            Source::File(path, _) if has_password => exposed(STORE, &path),
            Source::File(..) | Source::Default | Source::Variable(_) | Source::Flag(_) => None,
        };
        itself.into_iter().chain(self.config.exposed_files()).collect()
    }

    /// Returns the name of an option in a message: its key, variable or flag. The source of the option's value
    /// determines the form. An option with its default has the form of the option whose value the message reports.
    fn name(&self, key: &str, source: &Source) -> String {
        let own = self.source(&path_of(key));
        let names = match if own == Source::Default { source } else { &own } {
            Source::File(..) => Names::Keys,
            Source::Variable(_) => Names::Variables,
            Source::Flag(_) => Names::Flags,
            Source::Default => self.names(),
        };
        names.of(key)
    }

    /// Returns the naming for options without a configured value: keys if there is a file, variables if all values come
    /// from variables, and otherwise flags.
    fn names(&self) -> Names {
        let mut sources = self.sources.values();
        match () {
            () if self.file.is_some() => Names::Keys,
            () if !self.sources.is_empty() && sources.all(|source| matches!(source, Source::Variable(_))) => {
                Names::Variables
            }
            () => Names::Flags,
        }
    }

    /// Returns the source of a key's value, or of the first value in its table.
    pub(super) fn source(&self, key: &[String]) -> Source {
        let mut below = self.sources.range(key.to_vec()..);
        let found = below.next().filter(|(path, _)| !key.is_empty() && path.starts_with(key));
        found.map_or(Source::Default, |(_, source)| source.clone())
    }
}

fn path_of(key: &str) -> KeyPath {
    key.split('.').map(str::to_owned).collect()
}

#[derive(Debug, Default)]
struct Layers {
    table: Table,
    sources: BTreeMap<KeyPath, Source>,
}

impl Layers {
    fn add_file(&mut self, path: &Path) -> Result<(), LoadError> {
        let read = fs::read_to_string(path);
        let text = read.map_err(|error| {
            LoadError::plain(&format!(
                "cannot read '{}' ({error}): check the path and the permissions",
                path.display()
            ))
        })?;
        let source = |line| Source::File(path.to_owned(), line);
        let at = |error: toml::de::Error| {
            let line = line_of(&text, error.span().map_or(0, |span| span.start));
            LoadError::at(source(line), error.message())
        };
        let spanned = DeTable::parse(&text).map_err(at)?;
        let mut lines = BTreeMap::new();
        collect_lines(spanned.get_ref(), &text, &mut Vec::new(), &mut lines);
        let table: Table = text.parse().map_err(at)?;
        let line = |path: &KeyPath| lines.get(path).copied().unwrap_or(1);
        if let Some(Mistake { path, reason }) =
            mistakes(&table).into_iter().min_by_key(|mistake| line(&mistake.path))
        {
            return Err(LoadError::at(source(line(&path)), format_args!("{}: {reason}", dotted(&path))));
        }
        merge(&mut self.table, table, &mut Vec::new(), &mut |key| {
            self.sources.insert(key.clone(), source(line(key)));
        });
        Ok(())
    }

    fn add_override(&mut self, given: &Override) -> Result<(), LoadError> {
        let layer = given.layer().map_err(|reason| LoadError::at(&given.source, reason))?;
        if let Some(Mistake { path, reason }) = mistakes(&layer).into_iter().next() {
            // Settings of a target have no flags.
            let setting = path.get(2).map(|setting| format!("{setting}: ")).unwrap_or_default();
            return Err(LoadError::at(&given.source, format_args!("{setting}{reason}")));
        }
        merge(&mut self.table, layer, &mut Vec::new(), &mut |key| {
            self.sources.insert(key.clone(), given.source.clone());
        });
        Ok(())
    }
}

impl Override {
    /// Returns a table that contains only this value.
    fn layer(&self) -> Result<Table, String> {
        let texts = || self.values.iter().map(|text| Value::String(text.clone())).collect();
        let value = if self.option.kind == OptionKind::Targets {
            Value::Table(targets(&self.values)?)
        } else if matches!(self.option.kind, OptionKind::Texts(_)) {
            Value::Array(texts())
        } else {
            single(self.option.kind, self.values.last().map_or("", String::as_str))?
        };
        let mut keys = self.option.key.rsplit('.');
        let leaf = keys.next().unwrap_or_default();
        let mut table = Table::from_iter([(leaf.to_owned(), value)]);
        for key in keys {
            table = Table::from_iter([(key.to_owned(), Value::Table(table))]);
        }
        Ok(table)
    }
}

/// Parses the value of an option that takes only one.
fn single(kind: OptionKind, text: &str) -> Result<Value, String> {
    match kind {
        OptionKind::Switch => {
            text.parse().map(Value::Boolean).map_err(|_| format!("'{text}' is neither true nor false"))
        }
        OptionKind::Number { unit, min, max } => text
            .parse()
            .map(Value::Integer)
            .map_err(|_| format!("'{text}' is not a number: write one from {}", range(unit, min, max))),
        OptionKind::Time { .. } | OptionKind::Text(_) | OptionKind::Texts(_) | OptionKind::Choice(_) => {
            Ok(Value::String(text.to_owned()))
        }
        OptionKind::Targets => Err("targets are tables".to_owned()),
    }
}

/// Parses targets written as `NAME=HOST:PORT[,SETTING=VALUE]...` into a table.
fn targets(texts: &[String]) -> Result<Table, String> {
    let mut targets = Table::new();
    for text in texts {
        let mut parts = text.split(',');
        let spec: TargetSpec =
            parts.next().unwrap_or_default().parse().map_err(|error| format!("'{text}': {error}"))?;
        let mut target =
            Table::from_iter([("address".to_owned(), Value::String(spec.address.as_str().to_owned()))]);
        for setting in parts {
            let (name, value) = target_setting(setting)?;
            target.insert(name, value);
        }
        let name = spec.name.as_str().to_owned();
        if targets.insert(name.clone(), Value::Table(target)).is_some() {
            return Err(format!("target '{name}' is given twice: give each --target a different name"));
        }
    }
    Ok(targets)
}

fn target_setting(setting: &str) -> Result<(String, Value), String> {
    let (name, value) =
        setting.split_once('=').ok_or_else(|| format!("'{setting}': write a setting as NAME=VALUE"))?;
    let key = |option: &&OptionInfo| option.key.strip_prefix("targets.*.") == Some(name);
    let option = OPTIONS.iter().find(key).ok_or_else(|| {
        let settings = OPTIONS.iter().filter_map(|option| option.key.strip_prefix("targets.*."));
        let near = closest(name, settings.map(|setting| (setting, setting)));
        let near = near.map(|setting| format!(": did you mean {setting}?")).unwrap_or_default();
        format!("'{name}' is not a setting of a target{near}")
    })?;
    Ok((name.to_owned(), single(option.kind, value)?))
}

/// Merges `from` into `into`, and calls `set` for every value that it sets.
fn merge(into: &mut Table, from: Table, path: &mut KeyPath, set: &mut impl FnMut(&KeyPath)) {
    for (key, value) in from {
        path.push(key.clone());
        match (into.get_mut(&key), value) {
            (Some(Value::Table(existing)), Value::Table(table)) => merge(existing, table, path, set),
            (_, Value::Table(table)) => {
                let mut copy = Table::new();
                merge(&mut copy, table, path, set);
                into.insert(key, Value::Table(copy));
            }
            (_, value) => {
                set(path);
                into.insert(key, value);
            }
        }
        path.pop();
    }
}

/// Returns the values that a key path matches, each with its full path. `*` matches every key of a table.
pub(super) fn find<'a>(table: &'a Table, keys: &[&str]) -> Vec<(KeyPath, &'a Value)> {
    let Some((first, rest)) = keys.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for (key, value) in table.iter().filter(|(key, _)| *first == "*" || key.as_str() == *first) {
        if rest.is_empty() {
            found.push((vec![key.clone()], value));
        } else if let Value::Table(inner) = value {
            let below = find(inner, rest).into_iter();
            found.extend(below.map(|(path, value)| ([vec![key.clone()], path].concat(), value)));
        }
    }
    found
}

fn collect_lines(table: &DeTable<'_>, text: &str, path: &mut KeyPath, lines: &mut BTreeMap<KeyPath, usize>) {
    for (key, value) in table.iter() {
        path.push(key.get_ref().to_string());
        lines.insert(path.clone(), line_of(text, key.span().start));
        if let DeValue::Table(inner) = value.get_ref() {
            collect_lines(inner, text, path, lines);
        }
        path.pop();
    }
}

/// Returns the line of a byte offset in the text, counted from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The key prefix of a target's settings.
const OF_TARGET: &str = "targets.*.";

impl Loaded {
    /// Formats the whole configuration in the syntax of the file. Comments contain the documentation, the default, the
    /// unit and the source of each option. Passwords are shown as `***`.
    #[must_use]
    pub fn explain(&self) -> String {
        let table = self.shown();
        let mut text = String::new();
        let mut section = "";
        for option in OPTIONS.iter().filter(|option| !option.key.starts_with(OF_TARGET)) {
            if option.kind == OptionKind::Targets {
                self.explain_targets(option, &table, &mut text);
                continue;
            }
            let (table_name, key) = option.key.split_once('.').unwrap_or(("", option.key));
            if table_name != section {
                section = table_name;
                push(&mut text, format_args!("[{section}]\n"));
            }
            let path: Vec<&str> = option.key.split('.').collect();
            let value = find(&table, &path).pop().map(|(_, value)| value);
            self.explain_value(option, key, &path, value, &mut text);
        }
        text
    }

    /// Formats the configuration in the syntax of the file, without passwords.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.shown().to_string()
    }

    /// Returns the configuration with secrets replaced.
    fn shown(&self) -> Table {
        let mut config = self.config.clone();
        config.discovery.store = config.discovery.store.as_deref().map(without_password);
        config.to_table()
    }

    fn explain_targets(&self, option: &OptionInfo, table: &Table, text: &mut String) {
        push(text, format_args!("# {}.\n# {}\n\n", option.help, names(option)));
        for (path, _) in find(table, &["targets", "*"]) {
            let name = Value::String(path.last().cloned().unwrap_or_default());
            push(text, format_args!("[targets.{name}]\n"));
            for setting in OPTIONS.iter().filter(|option| option.key.starts_with(OF_TARGET)) {
                let key = setting.key.trim_start_matches(OF_TARGET);
                let path: Vec<&str> = path.iter().map(String::as_str).chain([key]).collect();
                let value = find(table, &path).pop().map(|(_, value)| value);
                self.explain_value(setting, key, &path, value, text);
            }
        }
    }

    fn explain_value(
        &self,
        option: &OptionInfo,
        key: &str,
        path: &[&str],
        value: Option<&Value>,
        text: &mut String,
    ) {
        let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
        push(text, format_args!("# {}.\n# {}{}", option.help, names(option), option.values()));
        push(text, format_args!("; default {}; {}\n", option.default_value(), change(option)));
        match value {
            Some(value) => push(text, format_args!("{key} = {value} # {}\n\n", self.source(&path))),
            None => push(text, format_args!("# {key} is not set\n\n")),
        }
    }
}

/// Returns the rows of the option table in the documentation.
#[must_use]
pub fn reference() -> String {
    let mut text = String::from("| key | flag | values | default | meaning |\n|---|---|---|---|---|\n");
    for option in OPTIONS {
        let flag = if option.flag.is_empty() { String::new() } else { format!("`--{}`", option.flag) };
        let restart = if option.change == Change::Restart { " (restart)" } else { "" };
        let (values, help) = (option.values(), option.help);
        let default = option.default_value();
        push(
            &mut text,
            format_args!("| `{}` | {flag} | {values} | {default} | {help}{restart} |\n", option.key),
        );
    }
    text
}

fn names(option: &OptionInfo) -> String {
    let variable = option.variable();
    variable.map_or_else(String::new, |variable| format!("--{}, {variable}; ", option.flag))
}

const fn change(option: &OptionInfo) -> &'static str {
    match option.change {
        Change::Reload => "changes with a reload",
        Change::Restart => "changes with a restart",
    }
}

impl OptionInfo {
    /// Returns the default in the syntax of the file, or `none`.
    #[must_use]
    pub fn default_value(&self) -> String {
        let mut config = Config::default();
        if let (Ok(name), Ok(address)) = ("*".parse(), "host:1".parse::<HostPort>()) {
            config.targets.insert(name, Target::new(address));
        }
        let table = config.to_table();
        let path: Vec<&str> = self.key.split('.').collect();
        match find(&table, &path).pop() {
            _ if matches!(self.key, "targets" | "targets.*.address") => "none".to_owned(),
            Some((_, value)) => value.to_string(),
            None => "none".to_owned(),
        }
    }
}

/// Appends formatted text. Writing to a `String` cannot fail.
fn push(text: &mut String, arguments: fmt::Arguments<'_>) {
    let _ = text.write_fmt(arguments);
}

/// The keys that differ between two configurations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Keys that apply to clients that connect from now on.
    pub applied: Vec<String>,
    /// Keys that require a restart.
    pub after_restart: Vec<String>,
}

impl Changes {
    /// Returns the keys that differ between two configurations.
    #[must_use]
    pub fn between(old: &Config, new: &Config) -> Self {
        let (old, new) = (old.to_table(), new.to_table());
        let mut changes = Self::default();
        for option in OPTIONS.iter().filter(|option| option.kind != OptionKind::Targets) {
            let list = match option.change {
                Change::Reload => &mut changes.applied,
                Change::Restart => &mut changes.after_restart,
            };
            list.extend(differing(&old, &new, option.key));
        }
        changes
    }

    /// Moves keys that this relay cannot apply while it runs.
    pub(crate) fn defer(&mut self, needs_restart: impl Fn(&str) -> bool) {
        let deferred = self.applied.extract_if(.., |key| needs_restart(key));
        self.after_restart.extend(deferred);
    }
}

fn differing(old: &Table, new: &Table, key: &str) -> BTreeSet<String> {
    let keys: Vec<&str> = key.split('.').collect();
    let (old, new) = (find(old, &keys), find(new, &keys));
    let in_one = |(path, _): &(Vec<String>, _)| path.join(".");
    let gone = old.iter().filter(|entry| !new.contains(entry)).map(in_one);
    let come = new.iter().filter(|entry| !old.contains(entry)).map(in_one);
    gone.chain(come).collect()
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.applied.as_slice() {
            [] => f.write_str("nothing changed")?,
            applied => write!(f, "changed: {}", applied.join(", "))?,
        }
        match self.after_restart.as_slice() {
            [] => Ok(()),
            waiting => write!(f, "; after a restart: {}", waiting.join(", ")),
        }
    }
}
