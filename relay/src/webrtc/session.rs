//! The session of one client, without IO: SCTP over DTLS, with two data channels.

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

/// The number of the data channel for control messages, which is reliable and ordered. Both sides know it, so no
/// message opens the channel.
pub(super) const CONTROL: u16 = 0;

/// The number of the data channel for datagrams, which is unreliable and unordered.
pub(super) const DATAGRAMS: u16 = 1;

/// The maximum length in bytes of a message from a client. A message above the relay's datagram limit ends the flow
/// with a reason; a message above this limit is not delivered.
const MESSAGE_MAX: u32 = 16 * 1024;

/// The maximum bytes of incomplete messages that are buffered for a client.
const RECEIVE_BUFFER: u32 = 64 * 1024;

/// The maximum length of an SCTP packet, so that with the overhead of DTLS it fits a path of 1,200 bytes.
const SCTP_PAYLOAD: u32 = 1_120;

/// The maximum bytes in SCTP's queue of unsent data. Data that waits before SCTP can still be dropped for its age.
const SEND_BUFFER: usize = 16 * 1024;

/// The maximum bytes of additional data in flight, if congestion control permits it. SCTP keeps the data until it is
/// acknowledged.
const UNACKNOWLEDGED_MAX: usize = 256 * 1024;

/// The maximum bytes of control messages in flight. They are few and short, and SCTP keeps each until it is
/// acknowledged.
const CONTROL_MAX: usize = 4 * 1024;

/// The length of the header of an SCTP packet in bytes.
const SCTP_HEADER: usize = 12;
/// The length of the header of an SCTP chunk in bytes.
const CHUNK_HEADER: usize = 4;
/// The length of the header of an SCTP data chunk in bytes.
const DATA_HEADER: usize = 16;

/// The type of a data chunk.
const CHUNK_DATA: u8 = 0;

/// The maximum number of datagrams that a client may send before its handshake is complete.
const EARLY_DATAGRAMS: usize = 16;

/// Time limit for a handshake, from the client's first datagram until its channels are open.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for a client to acknowledge data. SCTP itself would retransmit forever while anything else arrives from
/// the client.
pub(crate) const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(20);

/// SCTP retransmission timeouts in milliseconds. The defaults suit unreachable hosts, but players notice a delay of a
/// second.
const RTO_INITIAL: u64 = 500;
const RTO_MIN: u64 = 200;
const RTO_MAX: u64 = 5_000;

/// The address of the peer that the SCTP library requires. SCTP over DTLS does not use it.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 5000);

/// Settings shared by all sessions of a relay.
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
    /// Creates the settings for a relay with this certificate.
    ///
    /// # Errors
    /// If the DTLS library lacks a required feature.
    pub(crate) fn new(certificate: &Certificate) -> Result<Self, dimpl::Error> {
        let dtls = DtlsConfig::builder()
            // A certificate that a browser generated for this session would prove nothing.
            .require_client_certificate(false)
            // A session begins only for a source that is already validated.
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

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionEvent {
    /// The DTLS handshake is complete. Data received from now on is confidential.
    Secured,
    /// Both channels are open.
    Connected,
    /// A connectivity check outside of the session has shown that the client is alive.
    Checked,
    /// A control message.
    Control(Bytes),
    /// A message of the datagram channel.
    Datagram(Bytes),
    /// A text on the datagram channel.
    Text,
    /// The client has violated the protocol, which has ended the session.
    Violation,
    /// The client has closed the session.
    Closed,
    /// The client has acknowledged no data for [`ACKNOWLEDGEMENT_TIMEOUT`]. The session continues until its owner ends
    /// it.
    Unacknowledged,
    /// The session has failed in its handshake or by a timeout.
    Failed,
}

/// The session of one client; see the module.
pub(crate) struct Session {
    dtls: Dtls,
    /// The next DTLS timeout.
    dtls_timeout: Option<Instant>,
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    is_secured: bool,
    is_connected: bool,
    is_shutting_down: bool,
    is_ended: bool,
    /// True if encrypted data from the client has arrived since the last query.
    has_received: bool,
    /// Bytes of datagrams in SCTP's queue that have not been sent yet.
    unsent: usize,
    /// The time since which the client has acknowledged none of the outstanding data.
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
    /// Creates the session of a client. The first datagram to handle must be the client hello that began the session.
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
            has_received: false,
            unsent: 0,
            unacknowledged_since: None,
            events: VecDeque::new(),
            transmits: VecDeque::new(),
        }
    }

    /// Handles a datagram from the client. Datagrams that are too long or not authentic are ignored.
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

    /// Returns true if data encrypted by the client has arrived since the last call. Forged and replayed datagrams do
    /// not count.
    pub(crate) const fn take_received(&mut self) -> bool {
        mem::replace(&mut self.has_received, false)
    }

    /// Handles expired timers. Call this at [`Session::poll_timeout`]; at any other time it has no effect.
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

    /// Returns the number of bytes that SCTP keeps until they are acknowledged.
    fn unacknowledged(&mut self) -> usize {
        [CONTROL, DATAGRAMS].into_iter().filter_map(|channel| self.buffered(channel)).sum()
    }

    /// Emits an event if the client has acknowledged no data for too long.
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

    /// Returns the time at which [`Session::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let association = self.association.as_ref().and_then(|(_, association)| association.poll_timeout());
        let acknowledgement = self.unacknowledged_since.map(|since| since + ACKNOWLEDGEMENT_TIMEOUT);
        [self.dtls_timeout, association, acknowledgement]
            .into_iter()
            .flatten()
            .min()
            .filter(|_| !self.is_ended)
    }

    /// Returns the next datagram for the client.
    pub(crate) fn poll_transmit(&mut self) -> Option<Bytes> {
        self.transmits.pop_front()
    }

    /// Returns the next event.
    pub(crate) fn poll_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// Returns true if a message can be queued without waiting long in SCTP. For a client that acknowledges no control
    /// messages, only a few of them are kept.
    pub(crate) fn has_room(&mut self) -> bool {
        let (Some(control), Some(kept)) = (self.buffered(CONTROL), self.buffered(DATAGRAMS)) else {
            return false;
        };
        // SCTP may have abandoned fragments before sending them.
        self.unsent = self.unsent.min(kept);
        control < CONTROL_MAX && self.unsent < SEND_BUFFER && kept < UNACKNOWLEDGED_MAX
    }

    /// Returns the number of bytes of a channel that SCTP keeps until they are acknowledged. Returns `None` if the
    /// channel cannot send.
    fn buffered(&mut self, channel: u16) -> Option<usize> {
        let (_, association) = self.association.as_mut().filter(|_| self.is_connected)?;
        association.stream(channel).and_then(|stream| stream.buffered_amount()).ok()
    }

    /// Queues a datagram for the client; the next [`Session::flush`] sends it. Returns false if SCTP does not accept
    /// it.
    #[must_use]
    pub(crate) fn send_datagram(&mut self, datagram: &[u8]) -> bool {
        // SCTP supports no empty messages (RFC 8831 section 6.6).
        let (contents, kind) = if datagram.is_empty() {
            (&[0][..], Contents::BinaryEmpty)
        } else {
            (datagram, Contents::Binary)
        };
        let is_taken = self.send(DATAGRAMS, contents, kind);
        self.unsent += if is_taken { contents.len() } else { 0 };
        is_taken
    }

    /// Queues a control message for the client; the next [`Session::flush`] sends it.
    pub(crate) fn send_control(&mut self, text: &str) {
        // A channel that the client has closed accepts no messages. The session ends with it.
        let _ = self.send(CONTROL, text.as_bytes(), Contents::String);
    }

    fn send(&mut self, channel: u16, contents: &[u8], kind: Contents) -> bool {
        let Some((_, association)) = self.association.as_mut().filter(|_| self.is_connected) else {
            return false;
        };
        association.stream(channel).and_then(|mut stream| stream.write_with_ppi(contents, kind)).is_ok()
    }

    /// Ends the session once the client has acknowledged the control messages. The session must be driven until then.
    pub(crate) fn shut_down(&mut self, now: Instant) {
        self.is_shutting_down = true;
        self.flush(now);
    }

    /// Ends the session immediately.
    pub(crate) fn abandon(&mut self, now: Instant) {
        self.end(now, None);
    }

    pub(crate) const fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Encodes queued messages as datagrams.
    pub(crate) fn flush(&mut self, now: Instant) {
        self.take_all(now);
        self.check_acknowledgement(now);
    }

    /// Processes the output of both protocols.
    fn take_all(&mut self, now: Instant) {
        // Each round processes the output of the previous one. The number of rounds is bounded by the length of a
        // datagram.
        while !self.is_ended && (self.flush_dtls(now) | self.flush_sctp(now)) {}
    }

    /// Processes the output of DTLS; returns true if there was any.
    fn flush_dtls(&mut self, now: Instant) -> bool {
        let mut buffer = [0; RECEIVE_MAX];
        let mut is_changed = false;
        loop {
            match self.dtls.poll_output(&mut buffer) {
                Output::Packet(packet) => self.transmits.push_back(Bytes::copy_from_slice(packet)),
                Output::ApplicationData(data) => {
                    let data = Bytes::copy_from_slice(data);
                    self.has_received = true;
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
                // The output for a datagram that fits the buffer is no longer than the buffer.
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

    /// Processes the output of SCTP; returns true if there was any.
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
        if self.is_shutting_down && self.is_all_acknowledged() {
            self.end(now, None);
        }
        is_changed
    }

    /// Returns true if the client has acknowledged all control messages, or cannot receive any.
    fn is_all_acknowledged(&mut self) -> bool {
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
            // The client may already have opened the channel.
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

    /// Reads all available messages of a channel.
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

    /// Ends the session, and notifies the client if possible.
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

/// Returns the number of bytes of datagrams in an SCTP packet (RFC 9260 section 3).
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
