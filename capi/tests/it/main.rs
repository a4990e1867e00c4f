//! Tests that compile, run, install and inspect C and C++ programs.

mod common;
mod compat;
mod header;
mod install;
mod programs;
