//! How much of a microcontroller a program takes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use object::elf::SHT_NOBITS;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, elf};

/// Sections that a linker script for a real machine throws away: nobody unwinds there.
const THROWN_AWAY: [&str; 3] = [".ARM.exidx", ".ARM.extab", ".eh_frame"];

/// Bytes of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footprint {
    /// Code, constants, and the first values of variables.
    pub(super) flash: u64,
    /// Variables, without the stack.
    pub(super) ram: u64,
    /// Variables whose first value is not zero: they take both.
    pub(super) data: u64,
}

/// A linked program.
pub(super) struct Program {
    bytes: Vec<u8>,
}

impl Program {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(Self { bytes })
    }

    pub(super) fn footprint(&self) -> Result<Footprint> {
        let file = object::File::parse(&*self.bytes).context("this is no linked program")?;
        let mut footprint = Footprint::default();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
            let name = section.name().unwrap_or_default();
            if sh_flags & u64::from(elf::SHF_ALLOC) == 0 || THROWN_AWAY.contains(&name) {
                continue;
            }
            let is_empty_memory = section.kind() == object::SectionKind::UninitializedData
                || section.file_range().is_none()
                || matches!(section.kind(), object::SectionKind::Elf(SHT_NOBITS));
            let is_variable = sh_flags & u64::from(elf::SHF_WRITE) != 0;
            match (is_variable, is_empty_memory) {
                (true, true) => footprint.ram += section.size(),
                (true, false) => {
                    footprint.ram += section.size();
                    footprint.flash += section.size();
                    footprint.data += section.size();
                }
                (false, _) => footprint.flash += section.size(),
            }
        }
        Ok(footprint)
    }

    /// The sizes of the symbols whose names begin in one of these ways.
    pub(super) fn symbols(&self, beginnings: &[&str]) -> Result<Vec<(String, u64)>> {
        let file = object::File::parse(&*self.bytes).context("this is no linked program")?;
        let wanted = |name: &str| beginnings.iter().any(|beginning| name.starts_with(beginning));
        let named = file.symbols().filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), symbol.size())));
        let mut found: Vec<_> = named.filter(|(name, _)| wanted(name)).collect();
        found.sort();
        Ok(found)
    }
}
