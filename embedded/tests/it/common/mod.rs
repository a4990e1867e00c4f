//! Tests that run with both protocols.

pub(crate) mod cancellation;
pub(crate) mod exchange;
pub(crate) mod hooks;
pub(crate) mod pause;
