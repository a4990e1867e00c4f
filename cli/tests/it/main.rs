//! The program `rakwire`, from outside.

mod commands;
mod decode;
mod facilitator;
mod key_log;
mod log;
mod path;
#[cfg(target_os = "linux")]
mod routers;
mod support;
mod tcp;
mod transfer;
mod versions;
