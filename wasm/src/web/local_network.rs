//! Local Network Access (<https://wicg.github.io/local-network-access/>): a page of the public network may access the
//! local network or this machine only with the permission of the user.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use js_sys::{Array, Function, Object, Promise, Reflect, global};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::Url;

use super::browser::set_timeout;

/// The time limit in milliseconds for querying the permission state of the browser.
const QUERY_MS: f64 = 1_000.0;

/// The address spaces with their own permission, the more private one last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    Local,
    Loopback,
}

/// Returns the address space that follows from a host name; `None` if none does.
fn space_of(host: &str) -> Option<Space> {
    let unbracketed = host.trim_start_matches('[').trim_end_matches(']');
    match unbracketed.parse::<IpAddr>() {
        Ok(address) if address.is_loopback() => Some(Space::Loopback),
        Ok(IpAddr::V4(address)) => is_local_v4(address).then_some(Space::Local),
        Ok(IpAddr::V6(address)) => is_local_v6(address).then_some(Space::Local),
        Err(_) if is_localhost(host) => Some(Space::Loopback),
        Err(_) => is_local_name(host).then_some(Space::Local),
    }
}

/// Returns true for a name of this machine (RFC 6761 section 6.3).
pub(super) fn is_localhost(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

/// Addresses of RFC 1918, 3927 and 6598.
fn is_local_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    address.is_private() || address.is_link_local() || (first == 100 && (64..128).contains(&second))
}

/// Addresses of RFC 4193 and 4291.
const fn is_local_v6(address: Ipv6Addr) -> bool {
    address.is_unique_local() || address.is_unicast_link_local()
}

/// Names of RFC 6762 and 8375, `internal`, `lan`, and names without a dot.
fn is_local_name(host: &str) -> bool {
    let suffixes = [".local", ".internal", ".lan", ".home.arpa"];
    suffixes.iter().any(|suffix| host.ends_with(suffix)) || !host.contains(['.', ':'])
}

/// Returns the address space of a relay, if it is more private than that of its page.
fn foreign_space(relay: &str, page: &str) -> Option<Space> {
    let (space, own) = (space_of(relay)?, space_of(page));
    own.is_none_or(|own| own < space).then_some(space)
}

/// The permission decision of a browser for the network of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Refused,
    /// The user has not answered, or the page is not in a secure context and can never get the permission.
    Undecided,
}

/// Returns the permission decision of the browser if a relay may not have been reached because of it. If the attempt
/// timed out, only a pending decision can be the cause.
pub(super) async fn explain(relay: &Url, is_overdue: bool) -> Option<Decision> {
    let state = permission(relay).await.ok().flatten()?;
    match state.as_str() {
        "denied" if is_overdue => None,
        "denied" if is_secure() => Some(Decision::Refused),
        "denied" | "prompt" => Some(Decision::Undecided),
        _ => None,
    }
}

/// Returns the address space to declare for a request. An `https` page may send `http` requests to the local network,
/// but must declare them if the host is not a local address literal. Loopback addresses and other requests need no
/// declaration.
pub(super) fn target_address_space(url: &Url) -> Option<&'static str> {
    let is_mixed = url.protocol() == "http:" && page().ok()?.protocol() == "https:";
    (is_mixed && space_of(&url.hostname()) != Some(Space::Loopback)).then_some("local")
}

fn get(object: &JsValue, name: &str) -> Result<JsValue, JsValue> {
    Reflect::get(object, &name.into())
}

/// Returns the origin of this page as a URL. A worker's location is a `blob:` URL with the origin of its page.
fn page() -> Result<Url, JsValue> {
    // The origin of a frame without a URL is `null`.
    Url::new(&get(&get(&global(), "location")?, "origin")?.as_string().unwrap_or_default())
}

fn is_secure() -> bool {
    get(&global(), "isSecureContext").is_ok_and(|is_secure| is_secure.is_truthy())
}

/// Returns the permission state for the network of a relay; `None` if it needs none.
async fn permission(relay: &Url) -> Result<Option<String>, JsValue> {
    let Some(space) = foreign_space(&relay.hostname(), &page()?.hostname()) else { return Ok(None) };
    let name = match space {
        Space::Local => "local-network",
        Space::Loopback => "loopback-network",
    };
    match query(name).await {
        Ok(state) => Ok(Some(state)),
        // Chrome 142 has a single permission, which covers requests but not WebSockets, so it is only a hint there.
        Err(_) => query("local-network-access").await.map(|_| Some("prompt".to_owned())),
    }
}

async fn query(name: &str) -> Result<String, JsValue> {
    let permissions = get(&get(&global(), "navigator")?, "permissions")?;
    let descriptor = Object::new();
    Reflect::set(&descriptor, &"name".into(), &name.into())?;
    let query = get(&permissions, "query")?.dyn_into::<Function>()?.call1(&permissions, &descriptor)?;
    let deadline = Promise::new(&mut |resolve, _| drop(set_timeout(&resolve, QUERY_MS)));
    let status = JsFuture::from(Promise::race(&Array::of2(&query, &deadline))).await?;
    get(&status, "state")?.as_string().ok_or(JsValue::UNDEFINED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_address_space_of_their_name() {
        for host in ["localhost", "game.localhost", "127.0.0.1", "127.8.9.1", "[::1]"] {
            assert_eq!(space_of(host), Some(Space::Loopback), "{host}");
        }
        let local =
            ["10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.1.1", "100.64.0.1", "[fd00::1]", "[fe80::1]"];
        let names = ["nas", "nas.local", "nas.lan", "nas.internal", "nas.home.arpa"];
        for host in local.into_iter().chain(names) {
            assert_eq!(space_of(host), Some(Space::Local), "{host}");
        }
        for host in ["play.example.org", "8.8.8.8", "172.32.0.1", "100.128.0.1", "[2001:db8::1]", "[::2]"] {
            assert_eq!(space_of(host), None, "{host}");
        }
    }

    #[test]
    fn permission_is_needed_only_for_a_more_private_space() {
        assert_eq!(foreign_space("192.168.1.1", "play.example.org"), Some(Space::Local));
        assert_eq!(foreign_space("localhost", "192.168.1.1"), Some(Space::Loopback));
        for (relay, page) in
            [("192.168.1.1", "localhost"), ("nas.lan", "10.0.0.1"), ("example.org", "localhost")]
        {
            assert_eq!(foreign_space(relay, page), None, "{relay} of {page}");
        }
    }
}
