//! Descriptions of invalid values in a layer, in the terms of the file.

use serde::Deserialize;
use toml::{Table, Value};

use super::error::{KeyPath, dotted};
use super::model::{Config, OPTIONS};
use super::options::{OptionInfo, OptionKind};
use crate::addresses::TargetName;
use crate::syntax::duration;

/// A mistake in the value of a key.
pub(super) struct Mistake {
    pub(super) path: KeyPath,
    pub(super) reason: String,
}

/// Returns all mistakes in a table: unknown keys, and values that their options do not accept.
pub(super) fn mistakes(table: &Table) -> Vec<Mistake> {
    let mut found = Vec::new();
    visit(table, &mut Vec::new(), &mut found);
    found
}

fn visit(table: &Table, path: &mut KeyPath, found: &mut Vec<Mistake>) {
    for (key, value) in table {
        path.push(key.clone());
        let wrong = match (option_at(path), value) {
            (Some(option), Value::Table(inner)) if option.kind == OptionKind::Targets => {
                visit(inner, path, found);
                None
            }
            (Some(option), value) => wrong_value(option, path, value),
            (None, Value::Table(inner)) if is_table(path) => {
                let wrong = wrong_target(path, inner);
                if wrong.is_none() {
                    visit(inner, path, found);
                }
                wrong
            }
            (None, value) if is_table(path) => Some(no_table(path, value)),
            (None, _) => Some(unknown(path)),
        };
        found.extend(wrong.map(|reason| Mistake { path: path.clone(), reason }));
        path.pop();
    }
}

/// Returns true if the key of an option begins with this path.
fn begins(option: &OptionInfo, path: &[String]) -> bool {
    let mut parts = option.key.split('.');
    path.iter().all(|name| parts.next().is_some_and(|part| part == "*" || part == name))
}

fn option_at(path: &[String]) -> Option<&'static OptionInfo> {
    OPTIONS.iter().find(|option| option.key.split('.').count() == path.len() && begins(option, path))
}

/// Returns true if options exist below this key.
fn is_table(path: &[String]) -> bool {
    OPTIONS.iter().any(|option| option.key.split('.').count() > path.len() && begins(option, path))
}

/// Describes the mistake in a target's table, if there is one.
fn wrong_target(path: &[String], table: &Table) -> Option<String> {
    let [targets, name] = path else { return None };
    if targets != "targets" {
        return None;
    }
    match name.parse::<TargetName>() {
        Err(error) => Some(error.to_string()),
        Ok(_) if table.contains_key("address") => None,
        Ok(_) => Some("a target needs its address: add address = \"HOST:PORT\"".to_owned()),
    }
}

/// Returns the hint for a plain value in the place of a table.
fn no_table(path: &[String], value: &Value) -> String {
    format!("{} is not a valid value: write a table [{}] with settings", shown(value), dotted(path))
}

/// Returns the hint for an unknown key.
fn unknown(path: &[String]) -> String {
    match nearest(path) {
        Some(key) => format!("there is no such key: did you mean {key}?"),
        None => "there is no such key: 'rakwire-relay config --reference' lists all".to_owned(),
    }
}

/// Returns the key that was probably intended: from the same table, or else from another table or a flag.
fn nearest(path: &[String]) -> Option<String> {
    let (leaf, table) = path.split_last()?;
    let siblings = OPTIONS.iter().filter(|option| begins(option, table));
    let siblings = siblings.filter_map(|option| option.key.split('.').nth(table.len()));
    let near = closest(leaf, siblings.map(|name| (name, name)));
    let elsewhere = || {
        let keys = OPTIONS.iter().filter_map(|option| Some((option.key.rsplit('.').next()?, option.key)));
        closest(leaf, keys).map(str::to_owned)
    };
    let flags = || {
        let written = leaf.replace('_', "-");
        let flags = OPTIONS.iter().filter(|option| !option.flag.is_empty());
        closest(&written, flags.map(|option| (option.flag, option.key))).map(str::to_owned)
    };
    near.map(str::to_owned).or_else(elsewhere).or_else(flags)
}

/// Returns the value of the name that is closest to a word. At most a third of the word's letters, and at most three,
/// may differ.
pub(super) fn closest<'a>(word: &str, names: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    let distances = names.map(|(name, what)| (strsim::damerau_levenshtein(word, name), what));
    let near = distances.filter(|&(distance, _)| distance <= word.chars().count().div_ceil(3).min(3));
    near.min_by_key(|&(distance, _)| distance).map(|(_, what)| what)
}

/// Describes the mistake in the value of an option.
fn wrong_value(option: &OptionInfo, path: &[String], value: &Value) -> Option<String> {
    match (option.kind, value) {
        (OptionKind::Switch, Value::Boolean(_)) => None,
        (OptionKind::Switch, _) => Some(format!("{} is neither true nor false", shown(value))),
        (OptionKind::Number { unit, min, max }, Value::Integer(number)) => {
            let fits = u64::try_from(*number).is_ok_and(|number| (min..=max).contains(&number));
            (!fits)
                .then(|| format!("{number} is out of range: write a number from {}", range(unit, min, max)))
        }
        (OptionKind::Number { unit, min, max }, _) => {
            Some(format!("{} is not a number: write one from {}", shown(value), range(unit, min, max)))
        }
        (OptionKind::Time { min, max }, _) => wrong_time(value, min, max),
        (OptionKind::Choice(values), Value::String(text)) if values.contains(&text.as_str()) => None,
        (OptionKind::Choice(values), _) => {
            let near = closest(value.as_str().unwrap_or_default(), values.iter().map(|&name| (name, name)));
            let near = near.map(|name| format!(": did you mean {name}?")).unwrap_or_default();
            Some(format!("{} is not one of {}{near}", shown(value), values.join(", ")))
        }
        (OptionKind::Text(_), Value::String(_)) => wrong_text(path, value),
        (OptionKind::Text(name), _) => {
            Some(format!("{} is not a string: write {name} in quotation marks", shown(value)))
        }
        (OptionKind::Texts(_), Value::Array(values)) if values.iter().all(Value::is_str) => {
            wrong_text(path, value)
        }
        (OptionKind::Texts(name), _) => {
            Some(format!("{} is not a list of strings: write it as [\"{name}\"]", shown(value)))
        }
        (OptionKind::Targets, _) => {
            Some(format!("{} is not a target: write tables as [targets.NAME]", shown(value)))
        }
    }
}

fn wrong_time(value: &Value, min: std::time::Duration, max: std::time::Duration) -> Option<String> {
    if !(value.is_str() || value.is_integer()) {
        return Some(format!("{} is not a duration: {}", shown(value), duration::SYNTAX));
    }
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let time = match duration::parse(&text) {
        Ok(time) => time,
        Err(reason) => return Some(format!("'{text}': {reason}")),
    };
    let (least, most) = (duration::text(min), duration::text(max));
    (!(min..=max).contains(&time))
        .then(|| format!("{text} is out of range: write a time from {least} to {most}"))
}

/// Returns the error with which the option's type rejects a text.
fn wrong_text(path: &[String], value: &Value) -> Option<String> {
    let (leaf, tables) = path.split_last()?;
    let mut layer = Table::from_iter([(leaf.clone(), value.clone())]);
    if let [targets, _] = tables
        && targets == "targets"
    {
        // Adds the other required settings of a target.
        layer.entry("address").or_insert_with(|| "localhost:1".into());
    }
    for table in tables.iter().rev() {
        layer = Table::from_iter([(table.clone(), Value::Table(layer))]);
    }
    let error = Config::deserialize(layer).err()?;
    Some(error.message().to_owned())
}

/// Formats a value for a message. Lists and tables are omitted, because they may contain passwords.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{text}'"),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => value.to_string(),
    }
}

pub(super) fn range(unit: &str, min: u64, max: u64) -> String {
    if unit.is_empty() { format!("{min} to {max}") } else { format!("{min} to {max} ({unit})") }
}
