//! UF2, the format of files for a board's USB drive: blocks of 512 bytes, each with the address of its data.

use anyhow::{Context, Result, anyhow, ensure};
use object::elf::PT_LOAD;
use object::read::elf::{ElfFile32, ProgramHeader};

/// Size of a block in bytes.
const BLOCK: usize = 512;
/// The magic numbers at the start and at the end of a block.
const START: [u32; 2] = [0x0A32_4655, 0x9E5D_5157];
const END: u32 = 0x0AB1_6F30;
/// The flag of a block that contains a family id.
const NAMES_FAMILY: u32 = 0x2000;
/// The offset and the maximum length of a block's data.
const DATA: usize = 32;
const MOST_DATA: usize = 476;

/// Checks that a file is for this family of chips and contains every byte that a program loads into memory, at the
/// right address. Returns the number of its blocks.
pub(super) fn check(file: &[u8], family: u32, program: &[u8]) -> Result<usize> {
    let blocks = blocks(file, family)?;
    let elf: ElfFile32 = ElfFile32::parse(program).context("this is not a linked program")?;
    let order = elf.endian();
    let loaded = elf.elf_program_headers().iter().filter(|header| header.p_type(order) == PT_LOAD);
    for header in loaded {
        let bytes = header.data(order, program).map_err(|()| anyhow!("a segment is not in the program"))?;
        contains(&blocks, header.p_paddr(order), bytes)?;
    }
    Ok(blocks.len())
}

/// Bytes and their address.
#[derive(Debug, PartialEq, Eq)]
struct Block<'a> {
    address: u32,
    data: &'a [u8],
}

fn blocks(file: &[u8], family: u32) -> Result<Vec<Block<'_>>> {
    ensure!(
        !file.is_empty() && file.len().is_multiple_of(BLOCK),
        "{} bytes are not a whole number of blocks",
        file.len()
    );
    let count = u32::try_from(file.len() / BLOCK)?;
    let numbered = (0..count).zip(file.chunks_exact(BLOCK));
    numbered.map(|(number, bytes)| block(bytes, number, count, family)).collect()
}

fn block(bytes: &[u8], number: u32, count: u32, family: u32) -> Result<Block<'_>> {
    let words: Vec<_> =
        bytes.chunks_exact(4).filter_map(|word| word.try_into().ok()).map(u32::from_le_bytes).collect();
    ensure!(words[..2] == START && words[127] == END, "block {number} has wrong magic numbers");
    ensure!(words[2] & NAMES_FAMILY != 0 && words[7] == family, "block {number} is for other chips");
    ensure!(words[5..7] == [number, count], "block {number} has the number {} of {}", words[5], words[6]);
    let length = usize::try_from(words[4])?;
    ensure!(length <= MOST_DATA, "block {number} has no room for {length} bytes");
    Ok(Block { address: words[3], data: &bytes[DATA..DATA + length] })
}

/// Checks that `bytes` are in the blocks, from `address` on.
fn contains(blocks: &[Block<'_>], mut address: u32, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let found = blocks.iter().find_map(|block| {
            let rest = block.data.get(usize::try_from(address.checked_sub(block.address)?).ok()?..)?;
            (!rest.is_empty()).then_some(rest)
        });
        let found = found.with_context(|| format!("no block has the address {address:#x}"))?;
        let (these, others) = bytes.split_at(found.len().min(bytes.len()));
        ensure!(found.starts_with(these), "the bytes at {address:#x} are not those of the program");
        address += u32::try_from(these.len())?;
        bytes = others;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: u32 = 0xE48B_FF56;

    fn file() -> Vec<u8> {
        let mut file = vec![0; 2 * BLOCK];
        for (number, block) in (0_u32..).zip(file.chunks_exact_mut(BLOCK)) {
            let address = 0x1000_0000 + 256 * number;
            let head = [START[0], START[1], NAMES_FAMILY, address, 256, number, 2, FAMILY];
            block[..DATA].copy_from_slice(&head.map(u32::to_le_bytes).concat());
            block[DATA..DATA + 256].fill(7 + number as u8);
            block[508..].copy_from_slice(&END.to_le_bytes());
        }
        file
    }

    #[test]
    fn blocks_are_parsed() {
        let file = file();
        let blocks = blocks(&file, FAMILY).unwrap();
        assert_eq!(blocks[1], Block { address: 0x1000_0100, data: &[8; 256] });
        contains(&blocks, 0x1000_00FF, &[7, 8, 8]).unwrap();
        contains(&blocks, 0x1000_00FF, &[7, 7]).unwrap_err();
        contains(&blocks, 0x1000_01FF, &[8, 8]).unwrap_err();
        contains(&blocks, 0x0FFF_FFFF, &[7]).unwrap_err();
    }

    /// Each byte of the header, and the end.
    #[test]
    fn malformed_blocks_are_refused() {
        for at in [0, 4, 9, 17, 20, 24, 28, 508, BLOCK, BLOCK + 20] {
            let mut wrong = file();
            wrong[at] ^= 0x20;
            blocks(&wrong, FAMILY).unwrap_err();
        }
        blocks(&file()[..BLOCK], FAMILY).unwrap_err();
        blocks(&file()[..600], FAMILY).unwrap_err();
        blocks(&[], FAMILY).unwrap_err();
        blocks(&file(), 0xE48B_FF59).unwrap_err();
    }
}
