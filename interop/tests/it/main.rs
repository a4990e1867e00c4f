//! Our endpoint and RakNets that nobody here wrote.

mod matrix;
mod peers;
mod support;
