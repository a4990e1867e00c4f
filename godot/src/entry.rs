//! The entry point of the extension.
#![expect(unsafe_code, reason = "the engine loads the library through an unsafe trait")]

use godot::init::{ExtensionLibrary, gdextension};

/// The type that the entry point exports to the engine.
struct RakwireExtension;

// SAFETY: the trait is unsafe because the engine calls into this library through it, and both must have been built for
// each other. The exported entry function compares their versions, and this `impl` overrides no method.
#[gdextension]
unsafe impl ExtensionLibrary for RakwireExtension {}
