//! A counting allocator.
//!
//! It counts for the whole process, including any other tests, so a test that uses it must be a separate program
//! with a single test.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
pub(crate) static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
