//! Tests of the derive macros through their public interface.

mod refused;
mod shapes;
