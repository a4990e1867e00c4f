//! The derive macro, from outside.

mod refused;
mod shapes;
