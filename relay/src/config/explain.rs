//! A configuration as text: every value, where it comes from, and what it may be.

use std::fmt::Write;

use toml::{Table, Value};

use super::layers::{Loaded, find};
use super::model::{Config, Target, without_password};
use super::options::{Change, OPTIONS, OptionInfo, OptionKind};
use crate::target::HostPort;

/// The prefix of the keys of a target.
const OF_TARGET: &str = "targets.*.";

impl Loaded {
    /// The whole configuration in the syntax of the file. Comments have the documentation, the default and the unit of
    /// each option, and where its value comes from. A password is `***`.
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

    /// The configuration in the syntax of the file, without passwords.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.shown().to_string()
    }

    /// The configuration as others may see it.
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

/// The rows of the table of options in the documentation.
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
    /// The default as it is written in a file, or `none`.
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

/// Writing to a `String` cannot fail.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(arguments);
}
