//! The APIs of pages and workers: timers, microtasks, a clock, random bytes.

use js_sys::{Function, Reflect, global};
use wasm_bindgen::prelude::*;
use web_sys::{MessageChannel, Url};

use crate::client::instant;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    pub(super) fn set_timeout(callback: &Function, ms: f64) -> JsValue;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);
    #[wasm_bindgen(js_name = queueMicrotask)]
    fn queue_microtask(callback: &Function);
    #[wasm_bindgen(catch, js_name = addEventListener)]
    fn add_event_listener(event: &str, listener: &Function) -> Result<(), JsValue>;
    #[wasm_bindgen(catch, js_name = removeEventListener)]
    fn remove_event_listener(event: &str, listener: &Function) -> Result<(), JsValue>;
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    fn fill_random(bytes: &mut [u8]);
}

/// Returns the time of `performance.now()`.
pub(super) fn now() -> rakwire::Instant {
    instant(performance_now())
}

pub(super) fn entropy() -> [u8; 32] {
    let mut bytes = [0; 32];
    fill_random(&mut bytes);
    bytes
}

/// Returns the URL of a relay's WebSocket for this target; `None` if `url` is not the URL of a relay. Pages may use
/// `http` or a relative path. The relay is requested to close the connection when ICMP reports that the server's port
/// is closed.
pub(super) fn relay_url(url: &str, target: &str) -> Option<Url> {
    if lacks_scheme(url) {
        return None;
    }
    let location = Reflect::get(&global(), &"location".into()).ok()?;
    let page = Reflect::get(&location, &"href".into()).ok().and_then(|page| page.as_string());
    let relay = page.and_then(|page| Url::new_with_base(url, &page).ok()).or_else(|| Url::new(url).ok())?;
    match relay.protocol().as_str() {
        "http:" => relay.set_protocol("ws:"),
        "https:" => relay.set_protocol("wss:"),
        "ws:" | "wss:" => {}
        _ => return None,
    }
    // Browsers do not send the user name and the password of a URL.
    if !relay.username().is_empty() || !relay.password().is_empty() {
        return None;
    }
    relay.set_hash("");
    relay.search_params().set("target", target);
    relay.search_params().set("unreachable", "close");
    // This module does not resume lost connections, so the relay should not keep their flows.
    relay.search_params().set("resume", "never");
    Some(relay)
}

/// Returns true for a host and a port without a scheme, which a page would resolve as a relative path.
fn lacks_scheme(url: &str) -> bool {
    let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Runs `task` in a microtask: after the current one, and before the browser handles other events.
pub(super) fn soon(task: impl FnOnce() + 'static) {
    queue_microtask(Closure::once_into_js(task).unchecked_ref());
}

/// Runs `task` in a new task of the browser, after queued tasks such as socket events. Timers of a hidden tab fire
/// only once a second or once a minute; a message to the same window arrives immediately.
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
    // `post_message` fails only for values that cannot be cloned.
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

/// Callbacks for when the page is closed, reloaded, navigated away from or put into the back/forward cache; never
/// called in a worker. Dropping it removes them.
#[derive(Debug)]
pub(super) struct AtPageEnd([Closure<dyn FnMut()>; 2]);

impl AtPageEnd {
    const EVENT: &str = "pagehide";

    /// Registers two callbacks, of which the browser may interrupt the first (see [`stay`]). The browser calls `then`
    /// even if it interrupted `first`.
    pub(super) fn call(first: impl FnMut() + 'static, then: impl FnMut() + 'static) -> Self {
        let callbacks = [Closure::new(first), Closure::new(then)];
        for callback in &callbacks {
            // Runtimes without pages have no `addEventListener`, and never call back.
            let _ = add_event_listener(Self::EVENT, callback.as_ref().unchecked_ref());
        }
        Self(callbacks)
    }
}

impl Drop for AtPageEnd {
    fn drop(&mut self) {
        for callback in &self.0 {
            let _ = remove_event_listener(Self::EVENT, callback.as_ref().unchecked_ref());
        }
    }
}

/// Delays the unloading of a page by 20 ms, for two reasons. Firefox interrupts the scripts of a closing page once
/// within this time: it aborts the running callback and calls the next one. Chromium drops data that a session has
/// accepted but not yet sent.
pub(super) fn stay() {
    let until = performance_now() + 20.0;
    while performance_now() < until {}
}

/// Describes an error of the browser.
pub(super) fn describe(error: &JsValue) -> String {
    let message = Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    message.or_else(|| error.as_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::lacks_scheme;

    #[test]
    fn host_with_port_is_not_a_url() {
        for text in ["127.0.0.1:8080", "localhost:8080/ws", "[::1]:8080", "nas:80?a"] {
            assert!(lacks_scheme(text), "{text}");
        }
        for text in ["ws://127.0.0.1:8080/ws", "/ws", "", "ws", "https://a/b:80", "udp:"] {
            assert!(!lacks_scheme(text), "{text}");
        }
    }
}
