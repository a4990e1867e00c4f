//! Which source files the code of a program comes from.
//!
//! The compiler puts functions into each other, so the sizes of symbols say little. Here each instruction counts for the
//! file of the repository that it was written in: code of the standard library for the file that calls it.

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Context;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use anyhow::{Context as _, Result};
use object::{Object, ObjectSection, SectionKind};

type Bytes<'d> = EndianSlice<'d, LittleEndian>;

/// Bytes between two addresses that are looked up: those of the shortest instruction of all targets.
const STEP: u64 = 2;

/// The bytes of code by the file that they come from, the most first.
pub(super) fn by_file(program: &[u8], repository: &Path) -> Result<Vec<(String, u64)>> {
    let file = object::File::parse(program).context("this is no linked program")?;
    let section = |id: SectionId| -> Result<Bytes<'_>> {
        let bytes = file.section_by_name(id.name()).and_then(|section| section.data().ok());
        Ok(EndianSlice::new(bytes.unwrap_or_default(), LittleEndian))
    };
    let context = Context::from_dwarf(Dwarf::load(section)?)?;
    let mut bytes = BTreeMap::<String, u64>::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let end = section.address() + section.size();
        for address in (section.address()..end).step_by(STEP as usize) {
            *bytes.entry(source(&context, address, repository)?).or_default() += STEP.min(end - address);
        }
    }
    let mut bytes: Vec<_> = bytes.into_iter().collect();
    bytes.sort_by_key(|(file, bytes)| (std::cmp::Reverse(*bytes), file.clone()));
    Ok(bytes)
}

/// The file of the repository that an instruction comes from, or else the file that it stands in.
fn source(context: &Context<Bytes<'_>>, address: u64, repository: &Path) -> Result<String> {
    let mut frames = context.find_frames(address).skip_all_loads()?;
    let mut outermost = None;
    while let Some(frame) = frames.next()? {
        let Some(path) = frame.location.and_then(|location| location.file) else { continue };
        if let Some(own) = own_path(path, repository) {
            return Ok(own.to_owned());
        }
        outermost = Some(foreign_path(path));
    }
    Ok(outermost.unwrap_or_else(|| "without a source".to_owned()))
}

/// The path of a file of the repository, from its root on.
fn own_path<'p>(path: &'p str, repository: &Path) -> Option<&'p str> {
    Path::new(path).strip_prefix(repository).ok()?.to_str()
}

/// The path of a file of a library, from the library on.
fn foreign_path(path: &str) -> String {
    let folders: Vec<_> = path.split('/').collect();
    let library = folders.iter().rposition(|folder| matches!(*folder, "src" | "library")).unwrap_or(0);
    folders.get(library.saturating_sub(1)..).unwrap_or_default().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_repository_or_at_a_library() {
        let repository = Path::new("/any/where");
        assert_eq!(own_path("/any/where/core/src/raknet/mod.rs", repository), Some("core/src/raknet/mod.rs"));
        assert_eq!(own_path("/rust/library/core/src/option.rs", repository), None);
        assert_eq!(
            foreign_path("/home/registry/src/index/heapless-0.9.3/src/deque.rs"),
            "heapless-0.9.3/src/deque.rs"
        );
    }
}
