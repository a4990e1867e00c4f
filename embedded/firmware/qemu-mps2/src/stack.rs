//! Measures stack usage: cortex-m-rt paints the stack before the program starts.

unsafe extern "C" {
    static _stack_start: u32;
    static _stack_end: u32;
}

/// Returns the maximum number of stack bytes used, and the stack size.
#[must_use]
pub fn high_water() -> (usize, usize) {
    let (top, end) = (&raw const _stack_start as usize, &raw const _stack_end as usize);
    let painted = (end..top).step_by(4).take_while(|address| {
        // SAFETY: the stack is between the two addresses, mapped and aligned.
        unsafe { (*address as *const u32).read_volatile() == cortex_m_rt::STACK_PAINT_VALUE }
    });
    let unused = painted.count() * 4;
    (top - end - unused, top - end)
}
