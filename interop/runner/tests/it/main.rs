//! Tests of the runner: captures that break one rule each, the proxy, and programs.

mod faults;
mod programs;
mod proxy;
mod tape;
