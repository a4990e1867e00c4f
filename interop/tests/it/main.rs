//! Our endpoint and RakNets that nobody here wrote.

mod dial;
mod matrix;
mod peers;
mod support;
