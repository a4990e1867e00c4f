//! Tests of the runner: captures with one broken rule each, the proxy, and programs.

mod faults;
mod programs;
mod proxy;
mod tape;
