//! The Game Protocol between machines.

mod exchange;
