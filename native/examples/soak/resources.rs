//! Memory, files and tasks of this process.

use std::alloc::System;
use std::fmt;
use std::io;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::runtime::Handle;

/// Counts the heap. Resident memory also depends on free memory that the allocator does not return to the system.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The increase of the heap that does not count as growth, in kibibytes.
const TOLERATED: usize = 4096;

/// The resources of the process at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Allocated memory that is not freed, in kibibytes.
    pub(crate) heap: usize,
    /// Resident memory in kibibytes.
    pub(crate) memory: u64,
    /// Open file descriptors.
    pub(crate) files: usize,
    /// Unfinished tasks of the runtime.
    pub(crate) tasks: usize,
}

impl Sample {
    /// Reads `/proc` and the counters of the runtime.
    pub(crate) fn take() -> io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let memory = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
            .ok_or_else(|| io::Error::other("/proc/self/status has no VmRSS"))?;
        let files = std::fs::read_dir("/proc/self/fd")?.count();
        let allocations = ALLOCATOR.stats();
        let heap = allocations.bytes_allocated.saturating_sub(allocations.bytes_deallocated) / 1_024;
        Ok(Self { heap, memory, files, tasks: Handle::current().metrics().num_alive_tasks() })
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { heap, memory, files, tasks } = self;
        write!(f, "heap {heap} KiB, resident {memory} KiB, {files} files, {tasks} tasks")
    }
}

/// The samples of a run, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Sample>);

impl Samples {
    pub(crate) fn add(&mut self, sample: Sample) {
        self.0.push(sample);
    }

    /// Compares the median heap of the last quarter of the run with that of the second quarter: pools and queues fill
    /// in the first quarter.
    pub(crate) fn check(&self) -> Result<(), String> {
        let quarter = self.0.len() / 4;
        let early = median(self.0.iter().skip(quarter).take(quarter));
        let late = median(self.0.iter().rev().take(quarter));
        println!("heap, median of the second quarter: {early} KiB, of the last: {late} KiB");
        match late <= early + early / 20 + TOLERATED {
            true => Ok(()),
            false => Err(format!("the heap grew from {early} to {late} KiB")),
        }
    }
}

fn median<'a>(samples: impl Iterator<Item = &'a Sample>) -> usize {
    let mut heaps: Vec<_> = samples.map(|sample| sample.heap).collect();
    heaps.sort_unstable();
    heaps.get(heaps.len() / 2).copied().unwrap_or_default()
}
