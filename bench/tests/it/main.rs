//! Tests that run the benchmark program.

// Clippy's exemption for `unwrap` in tests needs this attribute; without it helpers would not count as tests.
#[cfg(test)]
mod idle_memory;
