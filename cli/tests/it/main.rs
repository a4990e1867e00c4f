//! The program `rakwire`, from outside.

mod commands;
mod decode;
mod facilitator;
mod key_log;
mod log;
mod path;
mod support;
mod tcp;
mod transfer;
mod versions;
