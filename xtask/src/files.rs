//! File operations with errors that contain the path.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::{Context, Result};

/// Returns the names in a folder, sorted.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = of(folder, "read", fs::read_dir(folder))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Writes a file, and creates its folder.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    path.parent().map_or(Ok(()), create_folder)?;
    of(path, "written", fs::write(path, content))
}

/// Copies a file, and creates the folder of the copy.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    to.parent().map_or(Ok(()), create_folder)?;
    of(from, "copied", fs::copy(from, to)).map(drop)
}

/// Copies a folder recursively.
pub fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    create_folder(to)?;
    for name in names(from)? {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() { copy_folder(&from, &to) } else { copy(&from, &to) }?;
    }
    Ok(())
}

/// Creates a folder, if it does not exist.
pub fn create_folder(path: &Path) -> Result<()> {
    of(path, "created", fs::create_dir_all(path))
}

/// Creates an empty folder, replacing one that an earlier run may have left.
pub fn empty_folder(path: &Path) -> Result<()> {
    remove_folder(path)?;
    create_folder(path)
}

/// Removes a folder that an earlier run may have left.
pub fn remove_folder(path: &Path) -> Result<()> {
    if_present(path, fs::remove_dir_all(path))
}

/// Removes a file that an earlier run may have left.
pub fn remove_file(path: &Path) -> Result<()> {
    if_present(path, fs::remove_file(path))
}

/// Returns a path as an argument of a command.
pub fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("the path {} is not valid UTF-8", path.display()))
}

fn if_present(path: &Path, removed: io::Result<()>) -> Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => of(path, "removed", removed),
    }
}

fn of<T>(path: &Path, what: &str, result: io::Result<T>) -> Result<T> {
    result.with_context(|| format!("{} cannot be {what}", path.display()))
}
