//! The server and its players over loopback.

mod games;
mod hostile;
#[cfg(unix)]
mod programs;
mod replication;
mod support;
