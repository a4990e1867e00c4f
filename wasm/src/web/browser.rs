//! What pages and workers both have: timers, microtasks, a clock, randomness.

use js_sys::Function;
use wasm_bindgen::prelude::*;

use crate::client::instant;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &Function, ms: f64) -> JsValue;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);
    #[wasm_bindgen(js_name = queueMicrotask)]
    fn queue_microtask(callback: &Function);
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    fn fill_random(bytes: &mut [u8]);
    #[wasm_bindgen(js_name = encodeURIComponent)]
    fn encode_uri_component(text: &str) -> String;
}

/// The page's clock.
pub(super) fn now() -> rakwire::Instant {
    instant(performance_now())
}

pub(super) fn entropy() -> [u8; 32] {
    let mut bytes = [0; 32];
    fill_random(&mut bytes);
    bytes
}

/// `url` with the relay's target in its query.
pub(super) fn with_target(url: &str, target: &str) -> String {
    let mark = if url.contains('?') { '&' } else { '?' };
    format!("{url}{mark}target={}", encode_uri_component(target))
}

/// Calls `task` after what runs now, before the browser does anything else.
pub(super) fn soon(task: impl FnOnce() + 'static) {
    queue_microtask(Closure::once_into_js(task).unchecked_ref());
}

/// A running timer, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct Timer(JsValue);

impl Timer {
    pub(super) fn start(callback: &Closure<dyn FnMut()>, ms: f64) -> Self {
        Self(set_timeout(callback.as_ref().unchecked_ref(), ms))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        clear_timeout(&self.0);
    }
}
