//! The layers of a configuration: defaults, the file, the environment and the command line, in this order.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::duration;
use super::error::ConfigError;
use super::model::Config;
use super::options::{OPTIONS, OptionInfo, OptionKind};
use crate::target::TargetSpec;

/// The path of a key in the file: the names of its tables, and its own.
pub(super) type KeyPath = Vec<String>;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// It was given nowhere.
    Default,
    /// A line of the file, counted from 1.
    File(PathBuf, usize),
    /// A variable of the environment.
    Variable(String),
    /// An option of the command line, with its dashes.
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

/// A value of the environment or the command line.
#[derive(Debug, Clone)]
pub struct Override {
    /// The option.
    pub option: &'static OptionInfo,
    /// Where the value comes from.
    pub source: Source,
    /// The values as text; more than one only for an option that can be repeated.
    pub values: Vec<String>,
}

/// An error in one of the layers: one line that says where it is and what to change.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LoadError(String);

impl LoadError {
    fn at(source: &Source, reason: impl fmt::Display) -> Self {
        // A line of its own for every error, whatever the parser wrote.
        let reason = reason.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        match source {
            Source::Default => Self(reason),
            Source::File(..) | Source::Variable(_) | Source::Flag(_) => Self(format!("{source}: {reason}")),
        }
    }
}

/// A configuration, and where its values come from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    sources: BTreeMap<KeyPath, Source>,
}

impl Loaded {
    /// Reads the file, if there is one, and lays the overrides over it, the later ones over the earlier.
    ///
    /// # Errors
    ///
    /// If a layer has a value that cannot be used, or the whole is inconsistent, as by [`Config::check`].
    pub fn load(file: Option<&Path>, overrides: &[Override]) -> Result<Self, LoadError> {
        let loaded = Self::read(file, overrides)?;
        match loaded.config.check() {
            Ok(()) => Ok(loaded),
            Err(error) => Err(loaded.locate(&error)),
        }
    }

    /// As [`Loaded::load`], but without a check of the whole.
    ///
    /// # Errors
    ///
    /// If a layer has a value that cannot be used.
    pub fn read(file: Option<&Path>, overrides: &[Override]) -> Result<Self, LoadError> {
        let mut layers = Layers::default();
        if let Some(path) = file {
            layers.add_file(path)?;
        }
        for given in overrides {
            layers.add_override(given)?;
        }
        let config = Config::deserialize(layers.table).map_err(|error| LoadError(one_line(&error)))?;
        Ok(Self { config, sources: layers.sources })
    }

    /// The error with the place of the value that it is about.
    #[must_use]
    pub fn locate(&self, error: &ConfigError) -> LoadError {
        LoadError::at(&self.source(&error.key()), error)
    }

    /// Where the value of a key comes from, or the first one of its table.
    pub(super) fn source(&self, key: &[String]) -> Source {
        let mut below = self.sources.range(key.to_vec()..);
        let found = below.next().filter(|(path, _)| !key.is_empty() && path.starts_with(key));
        found.map_or(Source::Default, |(_, source)| source.clone())
    }
}

#[derive(Debug, Default)]
struct Layers {
    table: Table,
    sources: BTreeMap<KeyPath, Source>,
}

impl Layers {
    fn add_file(&mut self, path: &Path) -> Result<(), LoadError> {
        let read = fs::read_to_string(path);
        let text = read.map_err(|error| LoadError(format!("cannot read '{}' ({error})", path.display())))?;
        let at = |error: toml::de::Error| {
            let line = line_of(&text, error.span().map_or(0, |span| span.start));
            LoadError::at(&Source::File(path.to_owned(), line), one_line(&error))
        };
        let spanned = DeTable::parse(&text).map_err(at)?;
        let mut lines = BTreeMap::new();
        collect_lines(spanned.get_ref(), &text, &mut Vec::new(), &mut lines);
        let source = |key: &KeyPath| {
            lines.get(key).map_or(Source::Default, |&line| Source::File(path.to_owned(), line))
        };
        let table: Table = text.parse().map_err(at)?;
        check_ranges(&table, source)?;
        toml::from_str::<Config>(&text).map_err(at)?;
        merge(&mut self.table, table, &mut Vec::new(), &mut |key| {
            self.sources.insert(key.clone(), source(key));
        });
        Ok(())
    }

    fn add_override(&mut self, given: &Override) -> Result<(), LoadError> {
        let at = |reason: String| LoadError::at(&given.source, reason);
        let layer = given.layer().map_err(at)?;
        check_ranges(&layer, |_| given.source.clone())?;
        Config::deserialize(layer.clone()).map_err(|error| at(one_line(&error)))?;
        merge(&mut self.table, layer, &mut Vec::new(), &mut |key| {
            self.sources.insert(key.clone(), given.source.clone());
        });
        Ok(())
    }
}

impl Override {
    /// A table with nothing but this value.
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

/// The value of an option that has only one.
fn single(kind: OptionKind, text: &str) -> Result<Value, String> {
    match kind {
        OptionKind::Switch => {
            text.parse().map(Value::Boolean).map_err(|_| format!("'{text}' is neither true nor false"))
        }
        OptionKind::Number { unit, min, max } => text
            .parse()
            .map(Value::Integer)
            .map_err(|_| format!("'{text}' is no number: write one from {}", range(unit, min, max))),
        OptionKind::Time { .. } | OptionKind::Text(_) | OptionKind::Texts(_) | OptionKind::Choice(_) => {
            Ok(Value::String(text.to_owned()))
        }
        OptionKind::Targets => Err("targets are tables".to_owned()),
    }
}

/// The table of targets that are written as `NAME=HOST:PORT[,SETTING=VALUE]...`.
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
    let option = OPTIONS.iter().find(key).ok_or_else(|| format!("'{name}' is not a setting of a target"))?;
    Ok((name.to_owned(), single(option.kind, value)?))
}

/// Lays `from` over `into`, and reports every value that it sets.
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

/// Checks numbers and times against the ranges of their options.
fn check_ranges(table: &Table, source: impl Fn(&KeyPath) -> Source) -> Result<(), LoadError> {
    for option in OPTIONS {
        let keys: Vec<&str> = option.key.split('.').collect();
        for (path, value) in find(table, &keys) {
            if let Some(reason) = out_of_range(option.kind, value) {
                let key = path.last().map_or("", String::as_str);
                return Err(LoadError::at(&source(&path), format!("{key}: {reason}")));
            }
        }
    }
    Ok(())
}

fn out_of_range(kind: OptionKind, value: &Value) -> Option<String> {
    match (kind, value) {
        (OptionKind::Number { unit, min, max }, Value::Integer(number)) => {
            let fits = u64::try_from(*number).is_ok_and(|number| (min..=max).contains(&number));
            (!fits)
                .then(|| format!("{number} is out of range: write a number from {}", range(unit, min, max)))
        }
        (OptionKind::Time { min, max }, Value::Integer(_) | Value::String(_)) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let fits = match duration::parse(&text) {
                Ok(time) => (min..=max).contains(&time),
                Err(reason) => return Some(format!("'{text}': {reason}")),
            };
            let (min, max) = (duration::text(min), duration::text(max));
            (!fits).then(|| format!("{text} is out of range: write a time from {min} to {max}"))
        }
        _ => None,
    }
}

fn range(unit: &str, min: u64, max: u64) -> String {
    if unit.is_empty() { format!("{min} to {max}") } else { format!("{min} to {max} ({unit})") }
}

/// The values of a key, in which `*` stands for every key of a table.
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

/// The line of a byte of the text, counted from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

fn one_line(error: &toml::de::Error) -> String {
    error.message().split_whitespace().collect::<Vec<_>>().join(" ")
}
