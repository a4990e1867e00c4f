//! The memory use of a program on a microcontroller.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use object::elf::SHT_NOBITS;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags, SymbolKind, elf};

/// Sections that linker scripts of real boards discard, because programs do not unwind.
const THROWN_AWAY: [&str; 3] = [".ARM.exidx", ".ARM.extab", ".eh_frame"];

/// Parts of the mangled names of panicking functions: those of the standard library, and the handler.
const PANICS: [&str; 5] = [
    "4core9panicking",
    "4core6option13expect_failed",
    "4core6option13unwrap_failed",
    "4core6result13unwrap_failed",
    "rust_begin_unwind",
];

/// The memory use of a program in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footprint {
    /// Code, constants, and initial values of variables.
    pub(super) flash: u64,
    /// Variables, without the stack.
    pub(super) ram: u64,
    /// Variables with non-zero initial values, which take flash and RAM.
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
        let file = object::File::parse(&*self.bytes).context("this is not a linked program")?;
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

    /// Returns the mangled names of the functions that call a panicking function, and the number of such calls. The
    /// program must be linked with its relocations.
    pub(super) fn panicking(&self) -> Result<BTreeMap<String, usize>> {
        let file = object::File::parse(&*self.bytes).context("this is not a linked program")?;
        let is_function = |kind| kind == SymbolKind::Text;
        let functions: Vec<_> = file.symbols().filter(|symbol| is_function(symbol.kind())).collect();
        // Ignores the lowest bit of an address, which marks Thumb code.
        let caller = |at: u64| {
            let is_within = |start: u64, size: u64| (start..start + size).contains(&at);
            functions.iter().find(|function| is_within(function.address() & !1, function.size()))
        };
        let mut found = BTreeMap::new();
        let mut relocations = 0_usize;
        for (at, relocation) in file.sections().flat_map(|section| section.relocations()) {
            relocations += 1;
            let RelocationTarget::Symbol(callee) = relocation.target() else { continue };
            if !is_panic(file.symbol_by_index(callee)?.name()?) {
                continue;
            }
            let name = caller(at).map_or(Ok("a table of functions"), ObjectSymbol::name)?;
            if !is_panic(name) {
                *found.entry(name.to_owned()).or_default() += 1;
            }
        }
        if relocations == 0 {
            bail!("the program was linked without its relocations");
        }
        Ok(found)
    }

    /// Returns the sizes of the symbols with one of these prefixes.
    pub(super) fn symbols(&self, beginnings: &[&str]) -> Result<Vec<(String, u64)>> {
        let file = object::File::parse(&*self.bytes).context("this is not a linked program")?;
        let wanted = |name: &str| beginnings.iter().any(|beginning| name.starts_with(beginning));
        let named = file.symbols().filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), symbol.size())));
        let mut found: Vec<_> = named.filter(|(name, _)| wanted(name)).collect();
        found.sort();
        Ok(found)
    }
}

fn is_panic(name: &str) -> bool {
    PANICS.iter().any(|part| name.contains(part))
}
