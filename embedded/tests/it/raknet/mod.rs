//! RakNet between machines.

mod cancellation;
mod exchange;
mod silence;
