//! Huge pages for memory that large messages fill: one page fault for 2 MiB in place of 512.
//!
//! Linux gives them to a program that asks, where `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise`, as most
//! distributions have it. Elsewhere nothing happens.

/// The bytes of a huge page, and what its address is a multiple of: 2 MiB on x86-64, and on AArch64 with pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;

/// What the beginning of the blocks keeps in pages of the usual size, so that an endpoint with few messages under way takes no
/// huge page.
const USUAL_BYTES: usize = HUGE_PAGE;

/// Asks for huge pages for the blocks of a peer, but those that are used first.
pub(crate) fn advise_for_blocks(memory: &[u8]) {
    advise(memory.get(USUAL_BYTES..).unwrap_or(&[]).as_ptr_range());
}

/// A vector with room for a message of so many bytes, which all will be written.
pub(crate) fn vec_for(length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    if length >= 2 * HUGE_PAGE {
        let room = bytes.spare_capacity_mut().as_ptr_range();
        advise(room.start.cast()..room.end.cast());
    }
    bytes
}

/// Asks for huge pages where whole ones fit into `memory`.
fn advise(memory: core::ops::Range<*const u8>) {
    let before = memory.start.align_offset(HUGE_PAGE);
    let length = (memory.end.addr() - memory.start.addr()).saturating_sub(before) / HUGE_PAGE * HUGE_PAGE;
    if length > 0 {
        advise_kernel(memory.start.wrapping_add(before), length);
    }
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
    fn a_vector_for_a_large_message_has_huge_pages() {
        let large = vec_for(5 * HUGE_PAGE);
        assert!(large.capacity() >= 5 * HUGE_PAGE && large.is_empty());
        assert_eq!(is_advised(large.as_ptr().wrapping_add(2 * HUGE_PAGE)), is_offered());
        let small = vec_for(100);
        assert!(!is_advised(small.as_ptr()));
    }

    #[test]
    fn the_blocks_that_are_used_first_keep_usual_pages() {
        let memory = vec![0; 8 * HUGE_PAGE];
        advise_for_blocks(&memory);
        let at = |bytes: usize| memory.as_ptr().wrapping_add(bytes);
        assert!(!is_advised(at(0)) && !is_advised(at(USUAL_BYTES - 1)));
        assert_eq!(is_advised(at(4 * HUGE_PAGE)), is_offered());
        // Memory that has no whole huge page stays as it is.
        advise_for_blocks(&memory[..HUGE_PAGE]);
        advise_for_blocks(&[]);
    }
}
