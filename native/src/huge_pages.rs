//! Huge pages for the blocks that copies of large messages fill: one page fault for 2 MiB in place of 512.
//!
//! Linux gives them to a program that asks, where `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or
//! `always`. Where it is `never`, and on other systems, nothing happens.

use core::ops::Range;

/// The bytes of a huge page, and what its address is a multiple of: 2 MiB on x86-64, and on AArch64 with pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;

/// What the beginning of the blocks keeps in pages of the usual size, so that an endpoint with few messages under way takes no
/// huge page.
const USUAL_BYTES: usize = HUGE_PAGE;

/// Asks for huge pages for the blocks of a peer, but those that are used first.
pub(crate) fn advise_for_blocks(memory: &[u8]) {
    advise(memory.get(USUAL_BYTES..).unwrap_or(&[]).as_ptr_range());
}

/// Asks for huge pages where whole ones fit into `memory`.
fn advise(memory: Range<*const u8>) {
    if let Some((start, length)) = whole_pages(&memory) {
        advise_kernel(start, length);
    }
}

/// The huge pages that fit into `memory`: where they begin, and how many bytes they have.
fn whole_pages(memory: &Range<*const u8>) -> Option<(*const u8, usize)> {
    let before = memory.start.align_offset(HUGE_PAGE);
    let length = (memory.end.addr() - memory.start.addr()).checked_sub(before)? / HUGE_PAGE * HUGE_PAGE;
    (length > 0).then_some((memory.start.wrapping_add(before), length))
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "there is no safe way to call madvise for memory of the allocator")]
fn advise_kernel(start: *const u8, length: usize) {
    // The kernel may refuse; then the pages stay as they are.
    // SAFETY: this advice changes neither what the memory holds nor whether it may be read or written, whatever it is used
    // for, before or after.
    let _ = unsafe { libc::madvise(start.cast_mut().cast(), length, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_kernel(_start: *const u8, _length: usize) {}

#[cfg(all(test, target_os = "linux"))]
pub(crate) mod tests {
    use super::*;

    /// Whether the kernel was asked for huge pages at this address.
    pub(crate) fn is_advised(address: *const u8) -> bool {
        let maps =
            std::fs::read_to_string("/proc/self/smaps").expect("what the kernel tells of this process");
        let mut is_here = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let bounds =
                range.map(|(start, end)| (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16)));
            if let Some((Ok(start), Ok(end))) = bounds {
                is_here = (start..end).contains(&address.addr());
            } else if let (true, Some(flags)) = (is_here, line.strip_prefix("VmFlags:")) {
                return flags.split(' ').any(|flag| flag == "hg");
            }
        }
        panic!("{address:?} is not mapped")
    }

    /// A kernel may be built without.
    pub(crate) fn is_offered() -> bool {
        std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists()
    }

    #[test]
    fn whole_pages_are_within_the_memory() {
        let at = |address: usize| core::ptr::without_provenance::<u8>(address);
        let of = |start: usize, end: usize| {
            whole_pages(&(at(start)..at(end))).map(|(start, length)| (start.addr(), length))
        };
        let page = HUGE_PAGE;
        assert_eq!(of(3 * page, 5 * page), Some((3 * page, 2 * page)));
        assert_eq!(of(3 * page + 1, 5 * page), Some((4 * page, page)));
        assert_eq!(of(3 * page + 1, 6 * page - 1), Some((4 * page, page)));
        assert_eq!(of(3 * page + 1, 5 * page - 1), None);
        assert_eq!(of(3 * page + 1, 3 * page + 2), None);
        assert_eq!(of(3 * page, 3 * page), None);
    }

    #[test]
    fn blocks_have_huge_pages_behind_those_that_are_used_first() {
        let memory = vec![0; 8 * HUGE_PAGE];
        advise_for_blocks(&memory);
        assert_eq!(is_advised(memory.as_ptr().wrapping_add(4 * HUGE_PAGE)), is_offered());
        advise_for_blocks(&memory[..HUGE_PAGE]);
        advise_for_blocks(&[]);
    }
}
