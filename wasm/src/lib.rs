//! rakwire-wasm
