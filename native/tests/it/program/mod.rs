//! The program `rakwire`, from outside.

mod cli;
mod decode;
mod path;
