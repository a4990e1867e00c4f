//! The client: one connection to a server.

#[cfg(target_arch = "wasm32")]
mod browser;
mod interface;
#[cfg(not(target_arch = "wasm32"))]
mod native;

#[cfg(not(target_arch = "wasm32"))]
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};

use bevy::prelude::*;
use bevy_replicon::bytes::Bytes;
use bevy_replicon::prelude::*;
use rakwire::raknet::ConnectionStats;
#[cfg(not(target_arch = "wasm32"))]
use rakwire_native::{RakNet, polled};
#[cfg(target_arch = "wasm32")]
use rakwire_wasm::web::Transport;

#[cfg(target_arch = "wasm32")]
use self::browser as driver;
pub use self::driver::ClientSettings;
use self::interface::{Driver, Happened};
#[cfg(not(target_arch = "wasm32"))]
use self::native as driver;
#[cfg(not(target_arch = "wasm32"))]
pub use self::native::ConnectError;
use crate::channels::{ChannelId, open};
#[cfg(not(target_arch = "wasm32"))]
use crate::closing::{Closing, ClosingPlugin};
use crate::counters::{Dropped, statistics};
use crate::outbox::{Outbox, Overflow};

/// The reason why a client is disconnected. `Display` describes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DisconnectCause {
    /// The connection could not be opened, for example because the server is full.
    ///
    /// In a browser this is the `ConnectError` of `rakwire_wasm::web`, which includes the reasons of the relay.
    #[error("{0}")]
    Failed(driver::Failure),
    /// The connection closed.
    ///
    /// In a browser this is the `CloseReason` of `rakwire_wasm::web`, which includes the reasons of the
    /// relay.
    #[error("{0}")]
    Ended(driver::End),
    /// More reliable bytes were queued than [`ClientSettings::backlog`] allows.
    #[error("more reliable bytes are queued than `backlog` allows; send less, or raise `backlog`")]
    Backlog,
    /// A reliable message exceeded [`RakwireClient::max_message_len`].
    #[error("a reliable message is longer than `max_message_len` allows; split it")]
    TooLarge,
}

impl From<Overflow> for DisconnectCause {
    fn from(overflow: Overflow) -> Self {
        match overflow {
            Overflow::Backlog => Self::Backlog,
            Overflow::TooLarge => Self::TooLarge,
        }
    }
}

/// The status of a [`RakwireClient`]. Replicon's [`ClientState`] follows it one frame later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The connection is opening.
    Connecting,
    /// The connection is open.
    Connected,
    /// The connection is closed or could not be opened. To reconnect, insert a new [`RakwireClient`].
    Disconnected(DisconnectCause),
}

/// The session number of the next [`RakwireClient`]. Systems compare session numbers to detect a replaced resource.
static NEXT_SESSION: AtomicU64 = AtomicU64::new(1);

/// A client with a connection to one server, as a resource.
///
/// Insert it to connect, and insert a new one to reconnect. Removing it disconnects: reliable messages already in the
/// connection's send window are delivered first, if the app continues to run. Messages still queued in the backlog are
/// discarded. [`disconnect`](Self::disconnect) sends the backlog too, for at most 5 s.
///
/// Programs with a UDP socket create it with `connect`, pages with `connect_by_relay`.
#[derive(Debug, Resource)]
pub struct RakwireClient {
    driver: driver::Connection,
    outbox: Outbox,
    backlog: usize,
    status: Status,
    dropped: Dropped,
    session: u64,
}

impl RakwireClient {
    fn new(driver: driver::Connection, backlog: usize) -> Self {
        Self {
            outbox: Outbox::new(driver.id(), backlog),
            backlog,
            status: Status::Connecting,
            dropped: Dropped::default(),
            session: NEXT_SESSION.fetch_add(1, Ordering::Relaxed),
            driver,
        }
    }

    /// Returns the status of the connection.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.clone()
    }

    /// Returns the numbers of dropped messages.
    #[must_use]
    pub const fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Returns the counters and measurements of the connection, or `None` if it is closed.
    pub fn stats(&mut self) -> Option<ConnectionStats> {
        self.driver.stats()
    }

    /// Returns the maximum message length in bytes, or `None` if the connection is closed.
    pub fn max_message_len(&mut self) -> Option<usize> {
        // The longest channel prefix has 3 bytes.
        self.driver.max_message_len().map(|length| length.saturating_sub(3))
    }

    /// Starts disconnecting. Reliable messages sent before this call are delivered first, for at most 5 s. Those still
    /// queued after that time are discarded, logged and counted in [`Dropped::not_connected`].
    pub fn disconnect(&mut self) {
        if !matches!(self.status, Status::Disconnected(_)) {
            self.status = Status::Disconnected(DisconnectCause::Ended(driver::Connection::ENDED_HERE));
            let timeout = self.driver.close_timeout();
            // If a queued message is refused, the connection is aborted. `status` already reports the disconnect.
            let _ = self.outbox.queue.close(self.driver.target(), timeout);
        }
    }

    /// Handles received datagrams, and forwards the messages of the first `count` channels.
    fn receive(&mut self, count: usize, mut insert: impl FnMut(usize, Bytes)) {
        self.driver.update();
        while let Some(happened) = self.driver.poll() {
            match happened {
                Happened::Connected if self.status == Status::Connecting => {
                    self.status = Status::Connected;
                    self.outbox.measure(self.driver.stats());
                    // Replicon enters `Connected` in the next frame and accepts messages only from then on.
                    break;
                }
                Happened::Failed(failure) if self.status == Status::Connecting => {
                    if self.driver.dial_next(&failure) {
                        // The outbox is empty before the connection is open.
                        self.outbox = Outbox::new(self.driver.id(), self.backlog);
                        continue;
                    }
                    self.status = Status::Disconnected(DisconnectCause::Failed(failure));
                }
                Happened::Ended(end) if self.status == Status::Connected => {
                    self.status = Status::Disconnected(DisconnectCause::Ended(end));
                }
                Happened::MtuChanged => {
                    self.outbox.measure(self.driver.stats());
                }
                Happened::Settled(receipt) => self.outbox.settle(receipt),
                Happened::Message(message) if self.status == Status::Connected => {
                    match open(message, count) {
                        Some((channel, payload)) => insert(channel, payload),
                        None => self.dropped.unknown_channel += 1,
                    }
                }
                Happened::Connected | Happened::Failed(_) | Happened::Ended(_) | Happened::Message(_) => {}
            }
        }
        let sent = self.outbox.retry(self.driver.target(), &mut self.dropped);
        self.end_if_failed(sent);
    }

    fn send(&mut self, channel: (Channel, ChannelId), payload: &[u8]) {
        if self.status != Status::Connected {
            self.dropped.not_connected += 1;
            return;
        }
        let sent = self.outbox.send(self.driver.target(), channel, payload, &mut self.dropped);
        self.end_if_failed(sent);
    }

    fn end_if_failed(&mut self, sent: Result<(), Overflow>) {
        if let Err(overflow) = sent {
            log::error!("disconnecting from the server: {overflow}");
            if !matches!(self.status, Status::Disconnected(_)) {
                self.status = Status::Disconnected(overflow.into());
            }
            self.outbox.abort(self.driver.target(), &mut self.dropped);
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl RakwireClient {
    /// Opens a socket and starts connecting to the first usable address of `server`. The plugin completes the attempt in
    /// later frames. If a host name has several addresses, they are tried one after another until a server answers.
    ///
    /// Resolving a host name blocks; resolve it in a task if that takes too long.
    ///
    /// # Errors
    /// Returns a [`ConnectError`] if there is no usable address or socket, or the settings are invalid.
    /// Failures of the attempt itself are reported by [`status`](Self::status).
    pub fn connect(server: impl ToSocketAddrs, settings: ClientSettings) -> Result<Self, ConnectError> {
        let backlog = settings.backlog;
        Ok(Self::new(driver::Connection::connect(server, settings)?, backlog))
    }

    /// Returns the local address of the socket. Its IP address is unspecified.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.driver.local_addr()
    }

    /// Returns the endpoint, for functions without a method here, such as pings.
    ///
    /// Do not poll its events, which the plugin handles.
    pub fn endpoint_mut(&mut self) -> &mut polled::Endpoint<RakNet> {
        self.driver.endpoint().get()
    }
}

#[cfg(target_arch = "wasm32")]
impl RakwireClient {
    /// Starts connecting to the server named `target` through the relay at `url`. The plugin completes the attempt in
    /// later frames.
    ///
    /// The URL begins with `wss://`, `https://`, `ws://` or `http://`, or is relative to the page, such as
    /// `/ws`. Failures, including an invalid URL, are reported by [`status`](Self::status).
    #[must_use]
    pub fn connect_by_relay(
        url: impl Into<String>,
        target: impl Into<String>,
        settings: ClientSettings,
    ) -> Self {
        let backlog = settings.backlog;
        Self::new(driver::Connection::connect(url.into(), target.into(), settings), backlog)
    }

    /// Returns the transport that carries the connection, or `None` while it is not open.
    #[must_use]
    pub fn transport(&self) -> Option<Transport> {
        self.driver.transport()
    }
}

/// The plugin of clients. It does nothing while there is no [`RakwireClient`].
#[derive(Clone, Copy, Debug, Default)]
pub struct RakwireRepliconClientPlugin;

impl Plugin for RakwireRepliconClientPlugin {
    fn build(&self, app: &mut App) {
        #[cfg(not(target_arch = "wasm32"))]
        {
            ClosingPlugin::add_once(app);
            let leave = leave_to_app.run_if(resource_exists::<RakwireClient>);
            app.add_systems(PreUpdate, leave.before(ClientSystems::ReceivePackets));
        }
        app.add_systems(PreUpdate, receive.in_set(ClientSystems::ReceivePackets)).add_systems(
            PostUpdate,
            send.in_set(ClientSystems::SendPackets).run_if(resource_exists::<RakwireClient>),
        );
    }
}

/// Registers the list of closing endpoints, which takes over the endpoint when the resource is removed.
#[cfg(not(target_arch = "wasm32"))]
fn leave_to_app(mut client: ResMut<RakwireClient>, closing: Res<Closing>) {
    client.driver.endpoint().leave_to(&closing);
}

fn receive(
    client: Option<ResMut<RakwireClient>>,
    state: Res<State<ClientState>>,
    mut next: ResMut<NextState<ClientState>>,
    channels: Res<RepliconChannels>,
    mut messages: ResMut<ClientMessages>,
    mut stats: ResMut<ClientStats>,
    mut session: Local<u64>,
) {
    let mut follow = |target: ClientState| {
        if *state.get() != target {
            next.set(target);
        }
    };
    let Some(mut client) = client else { return follow(ClientState::Disconnected) };
    if client.session != *session {
        // Before the new connection is reported, replicon must handle the disconnect of the previous one.
        if *state.get() != ClientState::Disconnected {
            return follow(ClientState::Disconnected);
        }
        *session = client.session;
    }
    let count = channels.server_channels().len();
    client.receive(count, |channel, payload| messages.insert_received(channel, payload));
    if let Some(now) = client.stats().filter(|_| client.status == Status::Connected) {
        *stats = statistics(&now);
    }
    follow(match client.status {
        Status::Connecting => ClientState::Connecting,
        Status::Connected => ClientState::Connected,
        Status::Disconnected(_) => ClientState::Disconnected,
    });
}

fn send(
    mut client: ResMut<RakwireClient>,
    channels: Res<RepliconChannels>,
    mut messages: ResMut<ClientMessages>,
) {
    for (number, payload) in messages.drain_sent() {
        match (channels.client_channels().get(number), ChannelId::new(number)) {
            (Some(&channel), Ok(id)) => client.send((channel, id), &payload),
            _ => client.dropped.unknown_channel += 1,
        }
    }
    client.driver.flush();
}
