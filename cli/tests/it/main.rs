//! The program `rakwire`, from outside.

mod commands;
mod decode;
mod path;
mod support;
mod transfer;
mod versions;
