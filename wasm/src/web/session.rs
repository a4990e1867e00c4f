//! A WebTransport session to the relay, using datagrams only, as in the npm package. The browser's objects are declared
//! here, because `web-sys` has them only for programs compiled with `--cfg web_sys_unstable_apis`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Object, Promise, Reflect, Uint8Array, global};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{AbortController, Url};

use super::announced::{Offer, PREFIX, PROTOCOL, ask, session_options};
use super::browser::{describe, set_timeout};
use super::error::{LOST, RelayClose};
use super::local_network::is_localhost;
use super::socket::{FromRelay, MAX_BUFFERED};

/// Normal closure (RFC 6455 section 7.4.1): the code sent when the client closes a session, and the code reported when
/// the relay closed the session without a code.
const NORMAL: u16 = 1000;
/// The maximum time in milliseconds for which a datagram may be queued in the browser. Older datagrams are dropped; the
/// protocol resends the reliable messages in them.
const MAX_AGE_MS: f64 = 500.0;
/// The maximum number of datagrams queued in the browser in each direction.
const MAX_WAITING: f64 = 256.0;
/// The maximum delay of closing a session in milliseconds. Browsers drop datagrams that they have not accepted before
/// the close, such as a disconnect notification.
const LAST_MS: f64 = 1_000.0;
/// The maximum datagram length in bytes. Safari accepts datagrams of this length, and one fits into a QUIC packet of
/// every relay. RakNet's MTU includes 28 bytes of IP and UDP headers, so it is 1,052.
const LONGEST_DATAGRAM: usize = 1_024;
/// The id of RakNet's first request, which is padded to the MTU that it proposes.
const REQUEST_1: u8 = 0x05;
/// The minimum length of that request in bytes: id, magic and protocol version.
const MIN_REQUEST_1: usize = 18;

#[wasm_bindgen]
extern "C" {
    #[derive(Clone, Debug)]
    type WebTransport;
    #[wasm_bindgen(constructor, catch)]
    fn new(url: &str, options: &Object) -> Result<WebTransport, JsValue>;
    #[wasm_bindgen(method, getter)]
    fn ready(this: &WebTransport) -> Promise;
    #[wasm_bindgen(method, getter)]
    fn closed(this: &WebTransport) -> Promise;
    #[wasm_bindgen(method, getter)]
    fn datagrams(this: &WebTransport) -> Datagrams;
    #[wasm_bindgen(method, catch)]
    fn close(this: &WebTransport, info: &Object) -> Result<(), JsValue>;

    type Datagrams;
    #[wasm_bindgen(method, getter)]
    fn readable(this: &Datagrams) -> Readable;
    #[wasm_bindgen(method, getter)]
    fn writable(this: &Datagrams) -> Option<Writable>;
    #[wasm_bindgen(method, catch, js_name = createWritable)]
    fn create_writable(this: &Datagrams) -> Result<Writable, JsValue>;
    #[wasm_bindgen(method, getter, js_name = maxDatagramSize)]
    fn max_datagram_size(this: &Datagrams) -> f64;

    type Readable;
    #[wasm_bindgen(method, catch, js_name = getReader)]
    fn reader(this: &Readable) -> Result<Reader, JsValue>;
    type Reader;
    #[wasm_bindgen(method)]
    fn read(this: &Reader) -> Promise;

    type Writable;
    #[wasm_bindgen(method, catch, js_name = getWriter)]
    fn writer(this: &Writable) -> Result<Writer, JsValue>;
    #[derive(Debug)]
    type Writer;
    #[wasm_bindgen(method)]
    fn write(this: &Writer, datagram: &Uint8Array) -> Promise;
}

/// Returns true if the browser has WebTransport. `http` pages have none, except those from the local machine.
pub(super) fn is_supported() -> bool {
    Reflect::get(&global(), &"WebTransport".into()).is_ok_and(|class| class.is_function())
}

/// An open or opening session. Dropping it closes the session once the browser has accepted the sent datagrams, or
/// after [`LAST_MS`].
#[derive(Debug)]
pub(super) struct Session(Rc<Shared>);

/// The state that the tasks of a session share.
#[derive(Debug)]
struct Shared {
    giving_up: AbortController,
    session: RefCell<Option<WebTransport>>,
    writer: RefCell<Option<Writer>>,
    /// Bytes that the browser has not accepted.
    buffered: Cell<u32>,
    is_over: Cell<bool>,
}

impl Session {
    /// Starts to open a session next to the WebSocket at `relay`.
    pub(super) fn open(relay: Url, on_event: impl Fn(FromRelay) + Clone + 'static) -> Result<Self, JsValue> {
        let shared = Rc::new(Shared {
            giving_up: AbortController::new()?,
            session: RefCell::new(None),
            writer: RefCell::new(None),
            buffered: Cell::new(0),
            is_over: Cell::new(false),
        });
        let running = Rc::clone(&shared);
        spawn_local(async move {
            let ended = run(&running, &relay, &on_event).await;
            let close = ended.unwrap_or_else(|error| RelayClose { code: LOST, reason: describe(&error) });
            if !running.is_over.replace(true) {
                on_event(FromRelay::Closed(close));
            }
        });
        Ok(Self(shared))
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.writer.borrow().is_some() && !self.0.is_over.get()
    }

    pub(super) fn has_room(&self) -> bool {
        self.0.buffered.get() < MAX_BUFFERED
    }

    /// Sends a datagram, or drops it if it is too long for the path. RakNet's first request is shortened instead: it is
    /// padded to the MTU that it proposes, and the server proposes no more than it receives.
    pub(super) fn send(&self, datagram: &[u8]) {
        let (writer, Some(fitting)) = (self.0.writer.borrow(), fit(datagram, self.0.longest())) else {
            return;
        };
        let Some(writer) = &*writer else { return };
        let length = u32::try_from(fitting.len()).unwrap_or(u32::MAX);
        self.0.buffered.set(self.0.buffered.get().saturating_add(length));
        let (shared, written) = (Rc::clone(&self.0), writer.write(&Uint8Array::from(fitting)));
        spawn_local(async move {
            // A failure of the writer also closes the session.
            let _ = JsFuture::from(written).await;
            shared.buffered.set(shared.buffered.get().saturating_sub(length));
            if shared.is_over.get() && shared.buffered.get() == 0 {
                shared.close();
            }
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.0.is_over.set(true);
        self.0.giving_up.abort();
        if self.0.buffered.get() == 0 {
            self.0.close();
        } else {
            let shared = Rc::clone(&self.0);
            set_timeout(Closure::once_into_js(move || shared.close()).unchecked_ref(), LAST_MS);
        }
    }
}

impl Shared {
    fn close(&self) {
        if let Some(session) = &*self.session.borrow() {
            let info = Object::new();
            let _ = Reflect::set(&info, &"closeCode".into(), &NORMAL.into());
            // This fails if the session never opened or is already closed.
            let _ = session.close(&info);
        }
    }

    /// Returns the length of the longest datagram that can be sent in both directions.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the length is limited")]
    fn longest(&self) -> usize {
        let session = self.session.borrow();
        let size = session.as_ref().map_or(f64::INFINITY, |session| session.datagrams().max_datagram_size());
        if size < LONGEST_DATAGRAM as f64 { size as usize } else { LONGEST_DATAGRAM }
    }
}

/// Shortens a datagram to the limit of the path, if possible.
fn fit(datagram: &[u8], longest: usize) -> Option<&[u8]> {
    if datagram.len() <= longest {
        return Some(datagram);
    }
    let may_be_cut = datagram.first() == Some(&REQUEST_1) && longest >= MIN_REQUEST_1;
    datagram.get(..longest).filter(|_| may_be_cut)
}

/// Opens a session and receives until it is closed.
async fn run(
    shared: &Rc<Shared>,
    relay: &Url,
    on_event: &(impl Fn(FromRelay) + Clone + 'static),
) -> Result<RelayClose, JsValue> {
    let announced = ask(relay, &shared.giving_up).await;
    if shared.is_over.get() {
        return Err(JsValue::UNDEFINED);
    }
    if let Some(refused) = announced.refused {
        return Ok(refused);
    }
    let offer = announced.webtransport.ok_or("the relay has no WebTransport")?;
    let (session, closed) = connect(shared, relay, &offer).await?;
    let datagrams = session.datagrams();
    limit(&datagrams)?;
    let writable = datagrams.create_writable().ok().or_else(|| datagrams.writable());
    let writer = writable.ok_or("the browser has no stream of datagrams")?.writer()?;
    *shared.writer.borrow_mut() = Some(writer);
    if shared.is_over.get() {
        shared.close();
    } else {
        on_event(FromRelay::Open);
        let (reader, shared, on_event) =
            (datagrams.readable().reader()?, Rc::clone(shared), on_event.clone());
        spawn_local(async move {
            // The promise of the closed session has more details.
            let _ = receive(&shared, &reader, &on_event).await;
        });
    }
    let end = closed.await?;
    let member = |name: &str| Reflect::get(&end, &name.into()).unwrap_or(JsValue::UNDEFINED);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "close codes have 16 bits")]
    let code = member("closeCode").as_f64().filter(|code| *code > 0.0).map_or(NORMAL, |code| code as u16);
    Ok(RelayClose { code, reason: member("reason").as_string().unwrap_or_default() })
}

/// Opens a session at the first URL that accepts one. Returns the session and the promise that settles when it closes.
async fn connect(shared: &Shared, relay: &Url, offer: &Offer) -> Result<(WebTransport, JsFuture), JsValue> {
    let options = session_options(offer)?;
    let mut failure = JsValue::UNDEFINED;
    for url in session_urls(relay, offer)? {
        let session = WebTransport::new(&url, &options)?;
        *shared.session.borrow_mut() = Some(session.clone());
        // Converted before the promise can be rejected, so that the browser reports no unhandled rejection.
        let closed = JsFuture::from(session.closed());
        match JsFuture::from(session.ready()).await {
            Ok(_) => return Ok((session, closed)),
            Err(error) if shared.is_over.get() => return Err(error),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn receive(shared: &Shared, reader: &Reader, on_event: &impl Fn(FromRelay)) -> Result<(), JsValue> {
    loop {
        let read = JsFuture::from(reader.read()).await?;
        if shared.is_over.get() || Reflect::get(&read, &"done".into())?.is_truthy() {
            return Ok(());
        }
        let datagram = Reflect::get(&read, &"value".into())?.dyn_into::<Uint8Array>()?;
        let datagram = datagram.to_vec();
        on_event(match datagram.strip_prefix(PREFIX) {
            Some(text) => FromRelay::Control(String::from_utf8_lossy(text).into_owned()),
            None => FromRelay::Datagram(datagram),
        });
    }
}

/// Returns the URLs to try in order, with the parameters of the WebSocket. Chromium tries only one address of a name,
/// and a certificate that is known by its hash is valid for every host.
fn session_urls(relay: &Url, offer: &Offer) -> Result<Vec<String>, JsValue> {
    let url = Url::new_with_base(&offer.path, &relay.href())?;
    url.set_protocol("https:");
    url.set_port(&offer.port.to_string());
    url.set_search(&relay.search());
    url.search_params().set("protocol", PROTOCOL);
    let mut urls = vec![url.href()];
    if is_localhost(&url.hostname()) && !offer.certificate_hashes.is_empty() {
        for host in ["127.0.0.1", "[::1]"] {
            url.set_hostname(host);
            urls.push(url.href());
        }
    }
    Ok(urls)
}

/// Limits the datagrams queued in the browser. The standard has renamed two of the limits.
fn limit(datagrams: &Datagrams) -> Result<(), JsValue> {
    for way in ["outgoing", "incoming"] {
        let set =
            |name: &str, value: f64| Reflect::set(datagrams, &format!("{way}{name}").into(), &value.into());
        set("MaxAge", MAX_AGE_MS)?;
        let newer = "MaxBufferedDatagrams";
        let has_newer = Reflect::has(datagrams, &format!("{way}{newer}").into())?;
        set(if has_newer { newer } else { "HighWaterMark" }, MAX_WAITING)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_request_is_shortened_to_the_maximum_datagram() {
        let request = [REQUEST_1; 1_464];
        assert_eq!(fit(&request, 1_024), request.get(..1_024));
        assert_eq!(fit(&request, 17), None);
        assert_eq!(fit(&[0x84; 1_024], 1_024), Some([0x84; 1_024].as_slice()));
        assert_eq!(fit(&[0x84; 1_025], 1_024), None);
        assert_eq!(fit(&[], 1_024), Some([].as_slice()));
    }
}
