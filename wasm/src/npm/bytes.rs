//! Byte arrays of JavaScript.

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A JavaScript array of bytes.
    #[wasm_bindgen(js_name = Uint8Array, typescript_type = "Uint8Array<ArrayBuffer>")]
    #[derive(Debug)]
    pub type Bytes;

    #[wasm_bindgen(constructor, js_class = "Uint8Array")]
    fn new(length: u32) -> Bytes;
    #[wasm_bindgen(method)]
    fn set(this: &Bytes, part: &[u8], at: u32);
}

impl Bytes {
    /// Copies `length` bytes from several slices.
    #[allow(clippy::cast_possible_truncation, reason = "they come from 32-bit memory")]
    pub(super) fn gather<'a>(length: usize, parts: impl Iterator<Item = &'a [u8]>) -> Self {
        let bytes = Self::new(length as u32);
        let mut at = 0;
        for part in parts {
            bytes.set(part, at);
            at += part.len() as u32;
        }
        bytes
    }

    /// Copies a slice.
    pub(super) fn copy(bytes: &[u8]) -> Self {
        Self::gather(bytes.len(), core::iter::once(bytes))
    }
}
