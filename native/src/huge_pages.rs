//! Requests huge pages for the blocks that hold copies of large messages: one page fault per 2 MiB instead of 512.
//!
//! Linux grants them on request if `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or `always`. If it is
//! `never`, and on other systems, this module has no effect.

use core::ops::Range;

/// The size and alignment of a huge page in bytes: 2 MiB on x86-64, and on AArch64 with 4 KiB pages.
const HUGE_PAGE: usize = 2 << 20;

/// The first bytes of the blocks use regular pages, so that an endpoint with few messages in flight uses no huge page.
const USUAL_BYTES: usize = HUGE_PAGE;

/// Requests huge pages for the blocks of a peer, except those that are used first.
pub(crate) fn advise_for_blocks(memory: &[u8]) {
    advise(memory.get(USUAL_BYTES..).unwrap_or(&[]).as_ptr_range());
}

/// Requests huge pages wherever whole ones fit into `memory`.
fn advise(memory: Range<*const u8>) {
    if let Some((start, length)) = whole_pages(&memory) {
        advise_kernel(start, length);
    }
}

/// Returns the start and the length in bytes of the huge pages that fit into `memory`.
fn whole_pages(memory: &Range<*const u8>) -> Option<(*const u8, usize)> {
    let before = memory.start.align_offset(HUGE_PAGE);
    let length = (memory.end.addr() - memory.start.addr()).checked_sub(before)? / HUGE_PAGE * HUGE_PAGE;
    (length > 0).then_some((memory.start.wrapping_add(before), length))
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "madvise has no safe wrapper for memory owned by the allocator")]
fn advise_kernel(start: *const u8, length: usize) {
    // If the kernel refuses, the pages stay as they are. SAFETY: this advice changes neither the contents of the
    // memory nor its access rights, however the memory is used before or after.
    let _ = unsafe { libc::madvise(start.cast_mut().cast(), length, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_kernel(_start: *const u8, _length: usize) {}

#[cfg(all(test, target_os = "linux"))]
pub(crate) mod tests {
    use super::*;

    /// Returns true if huge pages were requested at this address.
    pub(crate) fn is_advised(address: *const u8) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps")
            .expect("the kernel describes this process's mappings");
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

    /// Returns false if the kernel was built without huge pages.
    pub(crate) fn is_offered() -> bool {
        std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists()
    }

    #[test]
    fn only_huge_pages_inside_the_range_are_returned() {
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
    fn blocks_use_huge_pages_beyond_the_first_bytes() {
        let memory = vec![0; 8 * HUGE_PAGE];
        advise_for_blocks(&memory);
        assert_eq!(is_advised(memory.as_ptr().wrapping_add(4 * HUGE_PAGE)), is_offered());
        advise_for_blocks(&memory[..HUGE_PAGE]);
        advise_for_blocks(&[]);
    }
}
