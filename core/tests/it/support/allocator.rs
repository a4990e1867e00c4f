//! A counting allocator.
//!
//! It counts allocations of the whole process, so a test that uses it must be the only one in its program.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
pub(crate) static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
