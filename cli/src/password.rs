//! Passwords of connections. Other users of a machine can see the command line, but neither a file nor a variable.

use std::env::{self, VarError};
use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;
use crate::keys::warn_if_exposed;

/// The environment variable with a password.
const VARIABLE: &str = "RAKWIRE_PASSWORD";

/// The password options.
#[derive(Debug, Default, Args)]
pub(crate) struct PasswordArguments {
    /// The password, the same on both sides, at most 255 bytes; other users of this machine can see it here, but not in
    /// --password-file or the variable RAKWIRE_PASSWORD
    #[arg(long, value_name = "TEXT", conflicts_with = "password_file")]
    password: Option<String>,
    /// Read the password from the first line of this file
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl PasswordArguments {
    /// Returns true if one of the options is given.
    pub(crate) const fn is_given(&self) -> bool {
        self.password.is_some() || self.password_file.is_some()
    }

    /// Returns the password, which is empty if none is given.
    pub(crate) fn text(&self) -> Result<String, Failure> {
        if let Some(password) = &self.password {
            return Ok(password.clone());
        }
        let Some(path) = &self.password_file else { return of_variable(env::var(VARIABLE)) };
        let refuse = |reason: &dyn std::fmt::Display| {
            Failure::usage(format!("--password-file: {} {reason}", path.display()))
        };
        warn_if_exposed("--password-file", path);
        let text =
            std::fs::read_to_string(path).map_err(|error| refuse(&format!("cannot be read ({error})")))?;
        match text.lines().next() {
            Some(line) if !line.is_empty() => Ok(line.to_owned()),
            _ => Err(refuse(&"has no password in its first line")),
        }
    }
}

fn of_variable(found: Result<String, VarError>) -> Result<String, Failure> {
    match found {
        Ok(password) => Ok(password),
        Err(VarError::NotPresent) => Ok(String::new()),
        Err(VarError::NotUnicode(_)) => Err(Failure::usage(format!("{VARIABLE} is not UTF-8"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_comes_from_the_option_or_the_first_line_of_the_file() {
        let given = PasswordArguments { password: Some("friends".to_owned()), password_file: None };
        assert_eq!((given.text().unwrap().as_str(), given.is_given()), ("friends", true));
        let path = env::temp_dir().join(format!("rakwire-{}-password", std::process::id()));
        let of_file = PasswordArguments { password: None, password_file: Some(path.clone()) };
        assert!(of_file.text().is_err());
        for (text, expected) in
            [("snow\n", Some("snow")), ("ice\r\nmore", Some("ice")), ("", None), ("\nx", None)]
        {
            std::fs::write(&path, text).unwrap();
            assert_eq!(of_file.text().ok().as_deref(), expected, "{text:?}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_password_variable_is_used_without_options() {
        assert_eq!(of_variable(Ok("friends".to_owned())).unwrap(), "friends");
        assert_eq!(of_variable(Err(VarError::NotPresent)).unwrap(), "");
        assert!(of_variable(Err(VarError::NotUnicode("x".into()))).is_err());
        assert!(!PasswordArguments::default().is_given());
    }
}
