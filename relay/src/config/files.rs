//! Files that a configuration names.

use std::fs;
use std::path::Path;

use super::error::ConfigError;

pub(super) fn read(key: &'static str, path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|error| file_error(key, path, None, format!("cannot be read ({error})")))
}

pub(super) fn file_error(key: &'static str, path: &Path, line: Option<usize>, reason: String) -> ConfigError {
    ConfigError::File { key, path: path.to_owned(), line, reason }
}
