//! Features of the endpoint, in both protocols.

mod admission;
mod fairness;
mod plugins;
mod refused_data;
mod unreachable;
mod writable;
