//! Memory, files and tasks of this process.

use std::fmt;
use std::io;

use tokio::runtime::Handle;

/// The increase of resident memory that does not count as growth, in kibibytes.
const TOLERATED: u64 = 4096;

/// The resources of the process at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
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
        Ok(Self { memory, files, tasks: Handle::current().metrics().num_alive_tasks() })
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} KiB, {} files, {} tasks", self.memory, self.files, self.tasks)
    }
}

/// The samples of a run, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Sample>);

impl Samples {
    pub(crate) fn add(&mut self, sample: Sample) {
        self.0.push(sample);
    }

    /// Compares the median memory of the last quarter of the run with that of the second quarter: pools and queues fill
    /// in the first quarter.
    pub(crate) fn check(&self) -> Result<(), String> {
        let quarter = self.0.len() / 4;
        let early = median(self.0.iter().skip(quarter).take(quarter));
        let late = median(self.0.iter().rev().take(quarter));
        println!("memory, median of the second quarter: {early} KiB, of the last: {late} KiB");
        match late <= early + early / 20 + TOLERATED {
            true => Ok(()),
            false => Err(format!("the memory grew from {early} to {late} KiB")),
        }
    }
}

fn median<'a>(samples: impl Iterator<Item = &'a Sample>) -> u64 {
    let mut memory: Vec<_> = samples.map(|sample| sample.memory).collect();
    memory.sort_unstable();
    memory.get(memory.len() / 2).copied().unwrap_or_default()
}
