//! The server and its players over loopback.

mod games;
mod hostile;
#[cfg(target_os = "linux")]
mod outputs;
#[cfg(unix)]
mod programs;
mod replication;
mod support;
