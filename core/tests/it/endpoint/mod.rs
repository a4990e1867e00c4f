//! Features that both protocols inherit from the shared endpoint.

mod admission;
mod fairness;
mod plugins;
mod refused_data;
mod unreachable;
mod writable;
