//! What an option is, and the macros that make a field, a default and a row of the table of each description.

use std::time::Duration;

use crate::syntax::duration;

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// Its key in the file, such as `limits.queue`. A `*` stands for the name of a target.
    pub key: &'static str,
    /// Its name on the command line, without the dashes; empty for a setting of a target, which is given after the
    /// address in `--target`.
    pub flag: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// When a change takes effect.
    pub change: Change,
    /// Its documentation, in one line.
    pub help: &'static str,
}

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionKind {
    /// `true` or `false`.
    Switch,
    /// A text, with the name of the value.
    Text(&'static str),
    /// Texts, with the name of one value.
    Texts(&'static str),
    /// One of these.
    Choice(&'static [&'static str]),
    /// A whole number.
    Number {
        /// The unit; empty if it has none.
        unit: &'static str,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A duration: a number of seconds, or a text with units.
    Time {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// The targets.
    Targets,
}

/// When a change of an option takes effect after a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// For clients that connect after the reload.
    Reload,
    /// After a restart.
    Restart,
}

impl OptionInfo {
    /// The variable of the environment; `None` for a setting of a target.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        let name = self.flag.to_ascii_uppercase().replace('-', "_");
        (!name.is_empty()).then(|| format!("RAKWIRE_RELAY_{name}"))
    }

    /// The name of its value in the help of the command line.
    #[must_use]
    pub const fn value_name(&self) -> &'static str {
        match self.kind {
            OptionKind::Switch => "BOOL",
            OptionKind::Text(name) | OptionKind::Texts(name) => name,
            OptionKind::Choice(_) => "VALUE",
            OptionKind::Number { unit, .. } => match unit.as_bytes() {
                b"bytes" => "BYTES",
                _ => "N",
            },
            OptionKind::Time { .. } => "SECONDS",
            OptionKind::Targets => "NAME=HOST:PORT",
        }
    }

    /// The values that it takes, with their unit.
    #[must_use]
    pub fn values(&self) -> String {
        match self.kind {
            OptionKind::Switch => "true or false".to_owned(),
            OptionKind::Text(name) => name.to_owned(),
            OptionKind::Texts(name) => format!("list of {name}"),
            OptionKind::Choice(values) => values.join(", "),
            OptionKind::Number { unit, min, max } => {
                if unit.is_empty() {
                    format!("{min} to {max}")
                } else {
                    format!("{min} to {max} {unit}")
                }
            }
            OptionKind::Time { min, max } => {
                format!("time, {} to {}", duration::text(min), duration::text(max))
            }
            OptionKind::Targets => "tables".to_owned(),
        }
    }
}

pub(super) const DAY: Duration = secs(24 * 60 * 60);

pub(super) const fn number(unit: &'static str, min: u64, max: u64) -> OptionKind {
    OptionKind::Number { unit, min, max }
}

pub(super) const fn time(min: Duration, max: Duration) -> OptionKind {
    OptionKind::Time { min, max }
}

pub(super) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl OptionInfo {
    /// A row of the table; `doc` is the documentation of its field, as the compiler passes it on.
    pub(super) const fn new(
        key: &'static str,
        kind: OptionKind,
        flag: &'static str,
        change: Change,
        doc: &'static str,
    ) -> Self {
        let text = doc.trim_ascii();
        let help = match text.as_bytes() {
            [.., b'.'] => text.split_at(text.len() - 1).0,
            _ => text,
        };
        Self { key, flag, kind, change, help }
    }
}

/// Declares the structs of the configuration, their defaults and [`OPTIONS`](super::OPTIONS).
///
/// A struct has the beginning of its keys in brackets. A row is `key: TYPE = DEFAULT, KIND, "flag", CHANGE;` below its
/// documentation. A row that `needs` a value has no default, and `tables` are structs themselves.
macro_rules! options {
    (@default $name:ident [] [$($field:ident: $type:ty = $default:expr,)*] [$($table:ident,)*]) => {
        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* $($table: Default::default(),)* }
            }
        }
    };
    (@default $name:ident [$($needed:ident: $needed_type:ty,)+] [$($field:ident: $type:ty = $default:expr,)*] []) => {
        impl $name {
            /// The default settings with what has no default.
            #[must_use]
            pub const fn new($($needed: $needed_type),+) -> Self {
                Self { $($needed,)+ $($field: Self::$field(),)* }
            }

            $(const fn $field() -> $type {
                $default
            })*
        }
    };
    ($(
        $(#[$attribute:meta])*
        pub struct $name:ident[$prefix:literal] $(needs {$(
            $(#[doc = $needed_help:literal])+
            $needed:ident: $needed_type:ty, $needed_kind:expr, $needed_flag:literal, $needed_change:ident;
        )+} and)? {$(
            $(#[doc = $help:literal])+
            $(#[serde $serde:tt])?
            $field:ident: $type:ty = $default:expr, $kind:expr, $flag:literal, $change:ident;
        )+} $(tables {$(
            $(#[doc = $table_help:literal])+
            $table:ident: $table_type:ty;
        )+})?
    )+) => {
        $(
            #[derive(Serialize, Deserialize)]
            #[serde(deny_unknown_fields)]
            #[non_exhaustive]
            $(#[$attribute])*
            pub struct $name {
                $($($(#[doc = $needed_help])+ pub $needed: $needed_type,)+)?
                $($(#[doc = $help])+ $(#[serde $serde])? pub $field: $type,)+
                $($($(#[doc = $table_help])+ pub $table: $table_type,)+)?
            }

            options!(
                @default $name
                [$($($needed: $needed_type,)+)?] [$($field: $type = $default,)+] [$($($table,)+)?]
            );
        )+

        /// All options, in the order of the documentation.
        pub const OPTIONS: &[OptionInfo] = &[$(
            $($(OptionInfo::new(
                concat!($prefix, stringify!($needed)),
                $needed_kind,
                $needed_flag,
                super::options::Change::$needed_change,
                concat!($($needed_help),+),
            ),)+)?
            $(OptionInfo::new(
                concat!($prefix, stringify!($field)),
                $kind,
                $flag,
                super::options::Change::$change,
                concat!($($help),+),
            ),)+
        )+];
    };
}

/// Declares enums of the configuration with the names of their values.
macro_rules! choices {
    ($(
        $(#[doc = $about:literal])+
        $choice:ident {$(
            $(#[doc = $help:literal])+
            $(#[$default:ident])?
            $value:ident = $name:literal,
        )+}
    )+) => {$(
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum $choice {$(
            $(#[doc = $help])+
            $(#[$default])?
            #[serde(rename = $name)]
            $value,
        )+}

        impl $choice {
            const NAMES: &[&str] = &[$($name),+];
        }
    )+};
}

pub(super) use {choices, options};
