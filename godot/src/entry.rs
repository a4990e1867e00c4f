//! The entry point of the extension.
#![expect(
    unsafe_code,
    reason = "the trait of the entry point is unsafe, and a library without one cannot be loaded"
)]

use godot::init::{ExtensionLibrary, gdextension};

/// The extension, as the engine loads it.
struct RakwireExtension;

// SAFETY: the trait is unsafe because the engine calls into this library through it, and both must have been built for
// each other. The exported function compares their versions, and no method of the trait is overridden here.
#[gdextension]
unsafe impl ExtensionLibrary for RakwireExtension {}
