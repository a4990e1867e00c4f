//! What both protocols get from the endpoint, which is the same code for both.

mod admission;
mod fairness;
mod plugins;
mod refused_data;
mod unreachable;
mod writable;
