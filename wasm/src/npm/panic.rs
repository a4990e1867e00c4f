//! Panic messages on the console.

use std::panic;
use std::sync::Once;

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(message: &str);
}

/// Installs a hook that logs the message of a panic to the console, before the module traps.
pub(super) fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(|info| error(&info.to_string()))));
}
