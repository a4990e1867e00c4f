//! The source files that the code of a program comes from.
//!
//! Because of inlining, symbol sizes mean little. Here each instruction is attributed to the repository file in which
//! it was written: code of the standard library to the file that calls it.

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Context;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use anyhow::{Context as _, Result};
use object::{Object, ObjectSection, SectionKind};

type Bytes<'d> = EndianSlice<'d, LittleEndian>;

/// Distance in bytes between looked-up addresses: the shortest instruction of all targets.
const STEP: u64 = 2;

/// Returns the bytes of code by source file, largest first.
pub(super) fn by_file(program: &[u8], repository: &Path) -> Result<Vec<(String, u64)>> {
    let file = object::File::parse(program).context("this is not a linked program")?;
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

/// Returns the repository file that an instruction comes from, or else the file that contains it.
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

/// Returns the path of a repository file relative to the root.
fn own_path<'p>(path: &'p str, repository: &Path) -> Option<&'p str> {
    Path::new(path).strip_prefix(repository).ok()?.to_str()
}

/// Returns the path of a library file, beginning with the library.
fn foreign_path(path: &str) -> String {
    let folders: Vec<_> = path.split('/').collect();
    let library = folders.iter().rposition(|folder| matches!(*folder, "src" | "library")).unwrap_or(0);
    folders.get(library.saturating_sub(1)..).unwrap_or_default().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_repository_or_a_library() {
        let repository = Path::new("/any/where");
        assert_eq!(own_path("/any/where/core/src/raknet/mod.rs", repository), Some("core/src/raknet/mod.rs"));
        assert_eq!(own_path("/rust/library/core/src/option.rs", repository), None);
        assert_eq!(
            foreign_path("/home/registry/src/index/heapless-0.9.3/src/deque.rs"),
            "heapless-0.9.3/src/deque.rs"
        );
    }
}
