//! The initial inputs of fuzzing: one reproducible archive per target.

use std::path::{Path, PathBuf};

use anyhow::Result;

use xtask::files;
use xtask::shell::Shell;

const ENDING: &str = ".tar.gz";

/// The archives of a folder.
pub(crate) struct Corpora<'s> {
    shell: &'s Shell,
    folder: PathBuf,
}

impl<'s> Corpora<'s> {
    pub(crate) const fn new(shell: &'s Shell, folder: PathBuf) -> Self {
        Self { shell, folder }
    }

    fn archive(&self, target: &str) -> String {
        self.folder.join(format!("{target}{ENDING}")).to_string_lossy().into_owned()
    }

    /// Returns the targets with an archive, sorted by name.
    pub(crate) fn targets(&self) -> Result<Vec<String>> {
        let names = files::names(&self.folder)?.into_iter();
        Ok(names.filter_map(|name| name.strip_suffix(ENDING).map(str::to_owned)).collect())
    }

    /// Replaces the contents of `folder` by the inputs of a target; returns their number.
    pub(crate) fn unpack(&self, target: &str, folder: &Path) -> Result<usize> {
        files::empty_folder(folder)?;
        let args = ["--extract", "--gzip", "--file", &self.archive(target), "--directory"];
        self.shell.cmd("tar", args.into_iter().chain([&*folder.to_string_lossy()])).run()?;
        Ok(files::names(folder)?.len())
    }

    /// Writes the inputs in `folder` to the archive of a target; returns their number. The archive contains neither
    /// times nor users.
    pub(crate) fn pack(&self, target: &str, folder: &Path) -> Result<usize> {
        let names = files::names(folder)?;
        let folder = folder.to_string_lossy();
        let archive = self.archive(target);
        let args = ["--create", "--format=ustar", "--mtime=@0", "--mode=0644", "--owner=0", "--group=0"];
        let place = ["--use-compress-program=gzip -n9", "--file", &archive, "--directory", &*folder];
        let names_of_files = names.iter().map(String::as_str);
        self.shell.cmd("tar", args.into_iter().chain(place).chain(["--"]).chain(names_of_files)).run()?;
        Ok(names.len())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns an empty folder for a test.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("rakwire-corpus-{}", std::process::id())).join(name);
        files::empty_folder(&folder).unwrap();
        folder
    }

    #[test]
    fn an_archive_depends_only_on_its_inputs() {
        let shell = Shell::new().unwrap();
        let (archives, one, other) = (folder("archives"), folder("one"), folder("other"));
        let corpora = Corpora::new(&shell, archives.clone());
        for (folder, names) in [(&one, ["a", "b"]), (&other, ["b", "a"])] {
            names.iter().for_each(|name| fs::write(folder.join(name), name.repeat(700)).unwrap());
        }
        assert_eq!(corpora.pack("first", &one).unwrap(), 2);
        assert_eq!(corpora.pack("second", &other).unwrap(), 2);
        let read = |name: &str| fs::read(archives.join(name)).unwrap();
        assert_eq!(read("first.tar.gz"), read("second.tar.gz"));
        assert_eq!(corpora.targets().unwrap(), ["first", "second"]);

        fs::write(one.join("left over"), "").unwrap();
        assert_eq!(corpora.unpack("second", &one).unwrap(), 2);
        assert_eq!(
            (files::names(&one).unwrap(), fs::read(one.join("a")).unwrap()),
            (files::names(&other).unwrap(), "a".repeat(700).into())
        );
        assert!(corpora.unpack("third", &one).is_err());
        fs::remove_dir_all(archives.parent().unwrap()).unwrap();
    }
}
