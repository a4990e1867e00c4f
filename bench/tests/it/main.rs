//! The programs of the benchmarks as tests.

// What allows `unwrap` in tests looks for this attribute; without it helpers would not count as tests.
#[cfg(test)]
mod idle_memory;
