//! Panics, told to the console: the one time that Rust calls JavaScript on its own.

use std::panic;
use std::sync::Once;

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(words: &str);
}

/// Makes every later panic leave its message in the console; after it the module only traps.
pub(super) fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(|info| error(&info.to_string()))));
}
