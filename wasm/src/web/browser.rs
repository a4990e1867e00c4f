//! The APIs of pages and workers: timers, microtasks, a clock, random bytes.

use js_sys::Function;
use wasm_bindgen::prelude::*;
use web_sys::MessageChannel;

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

/// The time of `performance.now()`.
pub(super) fn now() -> rakwire::Instant {
    instant(performance_now())
}

pub(super) fn entropy() -> [u8; 32] {
    let mut bytes = [0; 32];
    fill_random(&mut bytes);
    bytes
}

/// Adds the target of the relay to the query of `url`, and that the relay closes the connection where nothing listens there.
pub(super) fn with_target(url: &str, target: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}target={}&unreachable=close", encode_uri_component(target))
}

/// Runs `task` in a microtask: after the current one, and before the browser handles other events.
pub(super) fn soon(task: impl FnOnce() + 'static) {
    queue_microtask(Closure::once_into_js(task).unchecked_ref());
}

/// Runs `task` in a task of its own, behind those that wait, such as events of sockets. Timers of a hidden tab fire once a second,
/// or once a minute; a message to oneself arrives at once.
pub(super) fn after_task(task: impl FnOnce() + 'static) {
    let Ok(channel) = MessageChannel::new() else {
        soon(task);
        return;
    };
    let (here, there) = (channel.port1(), channel.port2());
    let port = here.clone();
    let on_message = Closure::once_into_js(move || {
        port.close();
        task();
    });
    here.set_onmessage(Some(on_message.unchecked_ref()));
    // It fails for values that cannot be copied, which this one can.
    let _ = there.post_message(&JsValue::NULL);
}

/// A running timer. Dropping it cancels it.
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
