//! The session of one client without IO: DTLS, within it SCTP, and within that two data channels.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::{Config as DtlsConfig, Dtls, DtlsCertificate, Output};
use sctp_proto::{
    Association, AssociationError, AssociationHandle, DatagramEvent, Endpoint, EndpointConfig, Event,
    Payload, PayloadProtocolIdentifier as Contents, ReliabilityType, ServerConfig, StreamEvent, Transmit,
    TransportConfig,
};

use super::Certificate;
use super::stun::RECEIVE_MAX;

/// The data channel for control messages, which is reliable and in order. Both sides know its number; no message opens it.
pub(super) const CONTROL: u16 = 0;

/// The data channel for datagrams, which are neither sent again nor put in order.
pub(super) const DATAGRAMS: u16 = 1;

/// The longest message of a client. One that is longer than the relay's limit for datagrams ends the flow with a reason; one
/// that is longer than this is not delivered.
const MESSAGE_MAX: u32 = 16 * 1024;

/// What a client can make the relay keep of messages that are not complete.
const RECEIVE_BUFFER: u32 = 64 * 1024;

/// The most payload of an SCTP packet, so that it fits a path of 1,200 bytes with what DTLS adds.
const SCTP_PAYLOAD: u32 = 1_120;

/// How much may wait in SCTP to be sent. What waits in front of it can still be dropped for its age.
const SEND_BUFFER: usize = 16 * 1024;

/// How much more may be on its way, as far as congestion control lets it: SCTP keeps it until it is acknowledged.
const UNACKNOWLEDGED_MAX: usize = 256 * 1024;

/// How much of control messages may be on its way. They are few and short, and SCTP keeps each until it is acknowledged.
const CONTROL_MAX: usize = 4 * 1024;

/// The header of an SCTP packet, and those of its chunks: of all, and of one that has data.
const SCTP_HEADER: usize = 12;
const CHUNK_HEADER: usize = 4;
const DATA_HEADER: usize = 16;

/// The type of a chunk that has data.
const CHUNK_DATA: u8 = 0;

/// How many datagrams a client may send ahead of its handshake.
const EARLY_DATAGRAMS: usize = 16;

/// How long a handshake may take, from the first datagram of a client until its channels are open.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may acknowledge nothing while something waits for that. SCTP itself would send it again for ever, as long as
/// something else arrives from the client.
pub(crate) const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(20);

/// SCTP's own timeouts are those of a host that cannot be reached; players notice a second.
const RTO_INITIAL: u64 = 500;
const RTO_MIN: u64 = 200;
const RTO_MAX: u64 = 5_000;

/// SCTP inside DTLS knows no addresses, but the crate wants one.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 5000);

/// What all sessions of a relay have in common.
#[derive(Clone)]
pub(crate) struct SessionSettings {
    dtls: Arc<DtlsConfig>,
    certificate: DtlsCertificate,
    endpoint: Arc<EndpointConfig>,
    server: Arc<ServerConfig>,
}

impl fmt::Debug for SessionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSettings").finish_non_exhaustive()
    }
}

impl SessionSettings {
    /// # Errors
    /// If the library for DTLS lacks what it needs.
    pub(crate) fn new(certificate: &Certificate) -> Result<Self, dimpl::Error> {
        let dtls = DtlsConfig::builder()
            // A certificate that a browser made for this one session shows nothing.
            .require_client_certificate(false)
            // A session begins only for a validated source.
            .use_server_cookie(false)
            .max_queue_rx(EARLY_DATAGRAMS)
            .handshake_timeout(HANDSHAKE_TIMEOUT)
            .build()?;
        let mut endpoint = EndpointConfig::default();
        endpoint.max_payload_size(SCTP_PAYLOAD);
        let mut server = ServerConfig::default();
        server.transport = Arc::new(transport());
        Ok(Self {
            dtls: Arc::new(dtls),
            certificate: certificate.dtls.clone(),
            endpoint: Arc::new(endpoint),
            server: Arc::new(server),
        })
    }
}

fn transport() -> TransportConfig {
    TransportConfig::default()
        .with_max_receive_buffer_size(RECEIVE_BUFFER)
        .with_max_receive_message_size(MESSAGE_MAX)
        .with_max_num_inbound_streams(2)
        .with_max_num_outbound_streams(2)
        .with_rto_initial_ms(RTO_INITIAL)
        .with_rto_min_ms(RTO_MIN)
        .with_rto_max_ms(RTO_MAX)
}

/// What happened in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionEvent {
    /// The handshake of DTLS is over: nothing else can read what follows.
    Secured,
    /// Both channels can be used.
    Connected,
    /// A connectivity check outside of the session has shown that the client is there.
    Checked,
    /// A control message.
    Control(Bytes),
    /// A message of the channel for datagrams.
    Datagram(Bytes),
    /// A text where there should be a datagram.
    Text,
    /// The client did what the protocol does not allow. The session has ended.
    Violation,
    /// The client has closed. The session has ended.
    Closed,
    /// The client has acknowledged nothing for [`ACKNOWLEDGEMENT_TIMEOUT`]. The session goes on until somebody ends it.
    Unacknowledged,
    /// The session cannot go on: its handshake failed, or it timed out.
    Failed,
}

/// See the module.
pub(crate) struct Session {
    dtls: Dtls,
    /// When DTLS wants to be called.
    dtls_timeout: Option<Instant>,
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    is_secured: bool,
    is_connected: bool,
    is_shutting_down: bool,
    is_ended: bool,
    /// Whether something that the client has encrypted came since it was asked.
    has_heard: bool,
    /// Bytes of datagrams that SCTP has not sent.
    unsent: usize,
    /// Since when the client has acknowledged nothing of what waits for that.
    unacknowledged_since: Option<Instant>,
    events: VecDeque<SessionEvent>,
    transmits: VecDeque<Bytes>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_secured, is_connected, is_ended, .. } = self;
        write!(f, "Session {{ secured: {is_secured}, connected: {is_connected}, ended: {is_ended} }}")
    }
}

impl Session {
    /// The session of a client that has sent its first client hello, which is the first datagram to handle.
    pub(crate) fn new(settings: &SessionSettings, now: Instant) -> Self {
        let dtls = Dtls::new_auto(Arc::clone(&settings.dtls), settings.certificate.clone(), now);
        let endpoint = Endpoint::new(Arc::clone(&settings.endpoint), Some(Arc::clone(&settings.server)));
        Self::with(dtls, endpoint, now)
    }

    fn with(dtls: Dtls, endpoint: Endpoint, now: Instant) -> Self {
        Self {
            dtls,
            dtls_timeout: Some(now),
            endpoint,
            association: None,
            is_secured: false,
            is_connected: false,
            is_shutting_down: false,
            is_ended: false,
            has_heard: false,
            unsent: 0,
            unacknowledged_since: None,
            events: VecDeque::new(),
            transmits: VecDeque::new(),
        }
    }

    /// A datagram of the client. One that is too long, or that is not what it seems to be, changes nothing.
    pub(crate) fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) {
        if self.is_ended || datagram.len() > RECEIVE_MAX {
            return;
        }
        let kept = self.unacknowledged();
        let handled = self.dtls.handle_timeout(now).and_then(|()| self.dtls.handle_packet(datagram));
        if handled.is_err() {
            return self.fail(now);
        }
        self.take_all(now);
        if self.unacknowledged() < kept {
            self.unacknowledged_since = None;
        }
        self.check_acknowledgement(now);
    }

    /// Whether something that the client has encrypted has come since the last call: nothing that was forged or came before.
    pub(crate) const fn take_heard(&mut self) -> bool {
        mem::replace(&mut self.has_heard, false)
    }

    /// To be called at [`Session::poll_timeout`]; at any other time it does nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.is_ended {
            return;
        }
        if self.dtls.handle_timeout(now).is_err() {
            return self.fail(now);
        }
        if let Some((_, association)) = &mut self.association {
            association.handle_timeout(now);
        }
        self.flush(now);
    }

    /// How many bytes SCTP keeps until they are acknowledged.
    fn unacknowledged(&mut self) -> usize {
        [CONTROL, DATAGRAMS].into_iter().filter_map(|channel| self.buffered(channel)).sum()
    }

    /// Tells when the client has acknowledged nothing for too long.
    fn check_acknowledgement(&mut self, now: Instant) {
        if self.unacknowledged() == 0 {
            self.unacknowledged_since = None;
            return;
        }
        let since = *self.unacknowledged_since.get_or_insert(now);
        if now >= since + ACKNOWLEDGEMENT_TIMEOUT {
            self.unacknowledged_since = Some(now);
            self.events.push_back(SessionEvent::Unacknowledged);
        }
    }

    /// When [`Session::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let association = self.association.as_ref().and_then(|(_, association)| association.poll_timeout());
        let acknowledgement = self.unacknowledged_since.map(|since| since + ACKNOWLEDGEMENT_TIMEOUT);
        [self.dtls_timeout, association, acknowledgement]
            .into_iter()
            .flatten()
            .min()
            .filter(|_| !self.is_ended)
    }

    /// The next datagram for the client.
    pub(crate) fn poll_transmit(&mut self) -> Option<Bytes> {
        self.transmits.pop_front()
    }

    /// The next event.
    pub(crate) fn poll_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// Whether a message can be sent without waiting for long in SCTP. Of a client that acknowledges no control messages no
    /// more is kept than a few of them.
    pub(crate) fn has_room(&mut self) -> bool {
        let (Some(control), Some(kept)) = (self.buffered(CONTROL), self.buffered(DATAGRAMS)) else {
            return false;
        };
        // SCTP may have given up parts that were never sent.
        self.unsent = self.unsent.min(kept);
        control < CONTROL_MAX && self.unsent < SEND_BUFFER && kept < UNACKNOWLEDGED_MAX
    }

    /// How many bytes of a channel SCTP keeps until they are acknowledged. None if nothing can be sent on it.
    fn buffered(&mut self, channel: u16) -> Option<usize> {
        let (_, association) = self.association.as_mut().filter(|_| self.is_connected)?;
        association.stream(channel).and_then(|stream| stream.buffered_amount()).ok()
    }

    /// Adds a datagram for the client, which the next [`Session::flush`] sends; false if SCTP does not take it.
    #[must_use]
    pub(crate) fn send_datagram(&mut self, datagram: &[u8]) -> bool {
        // SCTP has no empty messages (RFC 8831 section 6.6).
        let (contents, kind) = if datagram.is_empty() {
            (&[0][..], Contents::BinaryEmpty)
        } else {
            (datagram, Contents::Binary)
        };
        let is_taken = self.send(DATAGRAMS, contents, kind);
        self.unsent += if is_taken { contents.len() } else { 0 };
        is_taken
    }

    /// Adds a control message for the client, which the next [`Session::flush`] sends.
    pub(crate) fn send_control(&mut self, text: &str) {
        // A channel that the client has closed takes nothing. The session ends with it.
        let _ = self.send(CONTROL, text.as_bytes(), Contents::String);
    }

    fn send(&mut self, channel: u16, contents: &[u8], kind: Contents) -> bool {
        let Some((_, association)) = self.association.as_mut().filter(|_| self.is_connected) else {
            return false;
        };
        association.stream(channel).and_then(|mut stream| stream.write_with_ppi(contents, kind)).is_ok()
    }

    /// Ends the session when the client has acknowledged the control messages. Until then it has to be driven.
    pub(crate) fn shut_down(&mut self, now: Instant) {
        self.is_shutting_down = true;
        self.flush(now);
    }

    /// Ends the session at once.
    pub(crate) fn abandon(&mut self, now: Instant) {
        self.end(now, None);
    }

    pub(crate) const fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Turns what was added into datagrams.
    pub(crate) fn flush(&mut self, now: Instant) {
        self.take_all(now);
        self.check_acknowledgement(now);
    }

    /// Takes what both protocols have for others.
    fn take_all(&mut self, now: Instant) {
        // Each round takes what the one before caused; what a datagram can cause is bounded by its length.
        while !self.is_ended && (self.flush_dtls(now) | self.flush_sctp(now)) {}
    }

    /// Takes what DTLS has for others; true if there was something.
    fn flush_dtls(&mut self, now: Instant) -> bool {
        let mut buffer = [0; RECEIVE_MAX];
        let mut is_changed = false;
        loop {
            match self.dtls.poll_output(&mut buffer) {
                Output::Packet(packet) => self.transmits.push_back(Bytes::copy_from_slice(packet)),
                Output::ApplicationData(data) => {
                    let data = Bytes::copy_from_slice(data);
                    self.has_heard = true;
                    self.handle_sctp(now, data);
                }
                Output::Connected => {
                    self.is_secured = true;
                    self.events.push_back(SessionEvent::Secured);
                }
                Output::CloseNotify => self.end(now, Some(SessionEvent::Closed)),
                Output::Timeout(at) => {
                    self.dtls_timeout = Some(at);
                    return is_changed;
                }
                // Nothing of a datagram that fits the buffer is longer than it.
                Output::BufferTooSmall { .. } => {
                    self.fail(now);
                    return true;
                }
                Output::PeerCert(_) | Output::KeyingMaterial(..) | _ => {}
            }
            is_changed = true;
        }
    }

    fn handle_sctp(&mut self, now: Instant, packet: Bytes) {
        match (self.endpoint.handle(now, PEER, None, None, packet), &mut self.association) {
            (Some((handle, DatagramEvent::NewAssociation(association))), place @ None) => {
                *place = Some((handle, association));
            }
            (Some((_, DatagramEvent::AssociationEvent(event))), Some((_, association))) => {
                association.handle_event(event);
            }
            // A session has one association.
            (Some((_, DatagramEvent::NewAssociation(_))), Some(_)) => {
                self.end(now, Some(SessionEvent::Violation));
            }
            (Some((_, DatagramEvent::AssociationEvent(_))), None) | (None, _) => {}
        }
    }

    /// Takes what SCTP has for others; true if there was something.
    fn flush_sctp(&mut self, now: Instant) -> bool {
        let mut is_changed = false;
        while let Some(transmit) = self.endpoint.poll_transmit() {
            self.seal(now, transmit);
            is_changed = true;
        }
        while let Some(event) = self.association.as_mut().and_then(|(_, association)| association.poll()) {
            self.handle_event(now, event);
            is_changed = true;
        }
        if self.is_ended {
            return false;
        }
        let Some((handle, association)) = &mut self.association else { return is_changed };
        while let Some(event) = association.poll_endpoint_event() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                association.handle_event(event);
            }
            is_changed = true;
        }
        while let Some(transmit) = self.association.as_mut().and_then(|(_, sctp)| sctp.poll_transmit(now)) {
            self.seal(now, transmit);
            is_changed = true;
        }
        if self.is_shutting_down && self.has_told_all() {
            self.end(now, None);
        }
        is_changed
    }

    /// Whether the client has acknowledged all control messages, or cannot be told any.
    fn has_told_all(&mut self) -> bool {
        if self.association.is_none() || !self.is_connected {
            return true;
        }
        self.buffered(CONTROL) == Some(0)
    }

    fn seal(&mut self, now: Instant, transmit: Transmit) {
        let Payload::RawEncode(packets) = transmit.payload else { return };
        for packet in packets {
            self.unsent = self.unsent.saturating_sub(datagram_bytes(&packet));
            if self.dtls.send_application_data(&packet).is_err() {
                return self.fail(now);
            }
            self.flush_dtls(now);
        }
    }

    fn handle_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Connected => self.open_channels(now),
            Event::Stream(StreamEvent::Opened { id } | StreamEvent::Readable { id }) => self.read(now, id),
            Event::Stream(StreamEvent::Finished { .. } | StreamEvent::Stopped { .. }) => {
                self.end(now, Some(SessionEvent::Closed));
            }
            Event::HandshakeFailed { .. } => self.fail(now),
            Event::AssociationLost { reason } => {
                let event = match reason {
                    AssociationError::TimedOut => SessionEvent::Failed,
                    AssociationError::ReceiveBufferExhausted => SessionEvent::Violation,
                    AssociationError::HandshakeFailed(_)
                    | AssociationError::TransportError
                    | AssociationError::AssociationClosed
                    | AssociationError::ApplicationClosed
                    | AssociationError::Reset
                    | AssociationError::LocallyClosed
                    | _ => SessionEvent::Closed,
                };
                self.end(now, Some(event));
            }
            Event::Stream(_) | Event::DataChannelStatsFinal(_) | Event::DatagramReceived | _ => {}
        }
    }

    fn open_channels(&mut self, now: Instant) {
        let Some((_, association)) = &mut self.association else { return };
        let mut open = |channel, unordered, reliability| {
            // The client may have used it before.
            let _ = association.open_stream(channel, Contents::Binary);
            association.stream(channel)?.set_reliability_params(unordered, reliability, 0)
        };
        let control = open(CONTROL, false, ReliabilityType::Reliable);
        if control.and_then(|()| open(DATAGRAMS, true, ReliabilityType::Rexmit)).is_err() {
            return self.fail(now);
        }
        self.is_connected = true;
        self.events.push_back(SessionEvent::Connected);
    }

    /// Takes all messages that a channel has.
    fn read(&mut self, now: Instant, channel: u16) {
        loop {
            let Some((_, association)) = &mut self.association else { return };
            let Ok(mut stream) = association.stream(channel) else { return };
            let Ok(Some(message)) = stream.read_sctp() else { break };
            let mut bytes = vec![0; message.len()];
            if message.read(&mut bytes).is_err() {
                break;
            }
            let event = match (channel, message.ppi) {
                (CONTROL, Contents::String) => SessionEvent::Control(bytes.into()),
                (DATAGRAMS, Contents::Binary) => SessionEvent::Datagram(bytes.into()),
                (DATAGRAMS, Contents::BinaryEmpty) => SessionEvent::Datagram(Bytes::new()),
                (DATAGRAMS, Contents::String | Contents::StringEmpty) => SessionEvent::Text,
                _ => return self.end(now, Some(SessionEvent::Violation)),
            };
            self.events.push_back(event);
        }
        if channel > DATAGRAMS {
            self.end(now, Some(SessionEvent::Violation));
        }
    }

    fn fail(&mut self, now: Instant) {
        self.end(now, Some(SessionEvent::Failed));
    }

    /// Ends the session, and tells the client so if it can be told.
    fn end(&mut self, now: Instant, event: Option<SessionEvent>) {
        if mem::replace(&mut self.is_ended, true) {
            return;
        }
        self.events.extend(event);
        self.association = None;
        if self.dtls.close().is_ok() {
            self.flush_dtls(now);
        }
    }
}

/// How many bytes of datagrams an SCTP packet has (RFC 9260 section 3).
fn datagram_bytes(packet: &[u8]) -> usize {
    let mut rest = packet.get(SCTP_HEADER..).unwrap_or_default();
    let mut bytes = 0;
    while let Some(&[kind, _, high, low]) = rest.first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).max(CHUNK_HEADER);
        let channel = rest.get(8..10);
        if kind == CHUNK_DATA && channel == Some(&DATAGRAMS.to_be_bytes()) {
            bytes += length.saturating_sub(DATA_HEADER);
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    bytes
}

#[cfg(test)]
#[path = "session_tests.rs"]
pub(crate) mod tests;
