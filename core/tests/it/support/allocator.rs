//! An allocator that counts. There is one for the whole process, and so is its count: beside other tests it would count
//! theirs. So whoever uses it is a program of its own, and has one test.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
pub(crate) static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
