//! Descriptions of options, and the macros that derive fields, defaults and documentation from them.

use std::time::Duration;

use crate::syntax::duration;

/// The description of one option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// The key in the file, such as `limits.queue`. A `*` represents the name of a target.
    pub key: &'static str,
    /// The name on the command line, without dashes. It is empty for a setting of a target, which follows the address
    /// in `--target`.
    pub flag: &'static str,
    /// The kind of the option's value.
    pub kind: OptionKind,
    /// When a change takes effect.
    pub change: Change,
    /// The documentation of the option, as one line.
    pub help: &'static str,
}

/// The kind of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionKind {
    /// `true` or `false`.
    Switch,
    /// A text; the field is its placeholder in the help.
    Text(&'static str),
    /// A list of texts; the field is the placeholder of one value.
    Texts(&'static str),
    /// One of the names in the field.
    Choice(&'static [&'static str]),
    /// A whole number within a range.
    Number {
        /// The unit, or empty.
        unit: &'static str,
        /// The minimum value.
        min: u64,
        /// The maximum value.
        max: u64,
    },
    /// A duration: a number of seconds, or a text with units.
    Time {
        /// The minimum duration.
        min: Duration,
        /// The maximum duration.
        max: Duration,
    },
    /// A table of targets, by name.
    Targets,
}

/// When a changed option takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The change applies to clients that connect after the reload.
    Reload,
    /// The change applies after a restart.
    Restart,
}

impl OptionInfo {
    /// Returns the name of the environment variable, or `None` for a setting of a target.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        let name = self.flag.to_ascii_uppercase().replace('-', "_");
        (!name.is_empty()).then(|| format!("RAKWIRE_RELAY_{name}"))
    }

    /// Returns the placeholder of the option's value in the command line help.
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

    /// Returns the accepted values with their unit.
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
    /// Creates the description of an option; `doc` is the doc comment of its field, as the compiler passes it.
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
/// A struct has the prefix of its keys in brackets. Below its doc comment, a row has the form `key: TYPE = DEFAULT,
/// KIND, "flag", CHANGE;`. A row under `needs` has no default, and a row under `tables` is a struct itself.
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
            /// Creates the default settings with the required values.
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
