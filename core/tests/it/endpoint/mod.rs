//! Features that RakNet and the Game Protocol share.

mod admission;
mod fairness;
mod plugins;
mod refused_data;
mod unreachable;
mod writable;
