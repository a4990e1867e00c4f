//! Access to device registers at fixed addresses of the board.

/// Reads a register.
pub(crate) fn read(address: usize) -> u32 {
    // SAFETY: every address in this crate is that of an aligned register of the board.
    unsafe { (address as *const u32).read_volatile() }
}

/// Writes a register.
pub(crate) fn write(address: usize, value: u32) {
    // SAFETY: see `read`.
    unsafe { (address as *mut u32).write_volatile(value) }
}
