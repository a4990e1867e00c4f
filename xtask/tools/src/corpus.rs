//! The inputs that fuzzing starts from: one archive for each target, which is the same whenever its inputs are.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use tar::{Archive, Builder, Header};

const ENDING: &str = ".tar.gz";

/// Names and bytes, in the order of the names.
type Inputs = Vec<(String, Vec<u8>)>;

/// The archives of a folder.
pub(crate) struct Corpora {
    folder: PathBuf,
}

impl Corpora {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn archive(&self, target: &str) -> PathBuf {
        self.folder.join(format!("{target}{ENDING}"))
    }

    /// The targets that have an archive, in the order of their names.
    pub(crate) fn targets(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.folder).with_context(|| unreadable(&self.folder))?;
        let mut targets = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            targets.extend(name.to_string_lossy().strip_suffix(ENDING).map(str::to_owned));
        }
        targets.sort();
        Ok(targets)
    }

    /// Makes `folder` hold the inputs of a target and nothing else; returns how many they are.
    pub(crate) fn unpack(&self, target: &str, folder: &Path) -> Result<usize> {
        let path = self.archive(target);
        let file = File::open(&path).with_context(|| unreadable(&path))?;
        clear(folder)?;
        let mut count = 0;
        for entry in Archive::new(GzDecoder::new(file)).entries().with_context(|| unreadable(&path))? {
            let mut entry = entry.with_context(|| unreadable(&path))?;
            entry.unpack_in(folder).with_context(|| format!("{} cannot be unpacked", path.display()))?;
            count += 1;
        }
        Ok(count)
    }

    /// Writes the inputs in `folder` as the archive of a target; returns how many they are.
    pub(crate) fn pack(&self, target: &str, folder: &Path) -> Result<usize> {
        let inputs = inputs(folder)?;
        let path = self.archive(target);
        write(&path, &inputs).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(inputs.len())
    }
}

fn inputs(folder: &Path) -> Result<Inputs> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| unreadable(folder))? {
        let entry = entry?;
        let bytes = fs::read(entry.path()).with_context(|| unreadable(&entry.path()))?;
        inputs.push((entry.file_name().to_string_lossy().into_owned(), bytes));
    }
    inputs.sort();
    Ok(inputs)
}

/// Nothing of when, where and by whom it was written gets into an archive.
fn write(path: &Path, inputs: &Inputs) -> io::Result<()> {
    let gzip = GzBuilder::new().mtime(0).write(File::create(path)?, Compression::best());
    let mut builder = Builder::new(gzip);
    for (name, bytes) in inputs {
        let mut header = Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, bytes.as_slice())?;
    }
    builder.into_inner()?.finish()?;
    Ok(())
}

/// Makes an empty folder.
pub(crate) fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))
}

fn unreadable(path: &Path) -> String {
    format!("{} cannot be read", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test, empty.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("rakwire-corpus-{}", std::process::id())).join(name);
        clear(&folder).unwrap();
        folder
    }

    #[test]
    fn an_archive_is_the_same_whenever_its_inputs_are() {
        let (archives, one, other) = (folder("archives"), folder("one"), folder("other"));
        let corpora = Corpora::new(archives.clone());
        for (folder, names) in [(&one, ["a", "b"]), (&other, ["b", "a"])] {
            names.iter().for_each(|name| fs::write(folder.join(name), name.repeat(700)).unwrap());
        }
        assert_eq!(corpora.pack("first", &one).unwrap(), 2);
        assert_eq!(corpora.pack("second", &other).unwrap(), 2);
        let [first, second] =
            ["first", "second"].map(|name| fs::read(archives.join(format!("{name}.tar.gz"))).unwrap());
        assert_eq!(first, second);
        assert_eq!(corpora.targets().unwrap(), ["first", "second"]);

        fs::write(one.join("left over"), "").unwrap();
        assert_eq!(corpora.unpack("second", &one).unwrap(), 2);
        assert_eq!(inputs(&one).unwrap(), inputs(&other).unwrap());
        assert!(corpora.unpack("third", &one).is_err());
        fs::remove_dir_all(archives.parent().unwrap()).unwrap();
    }
}
