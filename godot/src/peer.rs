//! The class that the engine sees.

use godot::builtin::{GString, PackedByteArray, VarDictionary, vslice};
use godot::classes::multiplayer_peer::{ConnectionStatus, TransferMode};
use godot::classes::{IMultiplayerPeerExtension, MultiplayerPeerExtension};
use godot::global;
use godot::obj::{Base, WithBaseField};
use godot::register::{GodotClass, godot_api};
use rakwire_native::secure::{SecureRandom, StaticKey};
use rakwire_native::system_random;

use crate::error::Error;
use crate::options::{ClientSettings, ServerSettings, key_bytes};
use crate::packet::{Mode, Packet, Transfer};
use crate::session::{Notice, Session, Status};
use crate::values::{
    checked, connection_status, dictionary, each_option, identity, mode_of, push, shown, text, transfer_mode,
};

/// A peer for Godot's high-level multiplayer over RakNet. Server and clients must all use `RakwirePeer`.
///
/// Each error is shown in the debugger with its reason, and returned as one of Godot's error codes.
#[derive(Debug, GodotClass)]
#[class(tool, base = MultiplayerPeerExtension, init)]
pub struct RakwirePeer {
    base: Base<MultiplayerPeerExtension>,
    session: Option<Session>,
    target: i32,
    channel: i32,
    mode: Mode,
    is_refusing: bool,
    /// Incremented whenever a session opens or closes, to detect notices of an earlier session.
    sessions: u64,
    /// True if the engine should flush at the end of the frame.
    is_flush_due: bool,
    /// The reason why the last session closed.
    end: GString,
}

impl RakwirePeer {
    /// Opens a session, unless one is already open.
    fn begin(&mut self, open: impl FnOnce() -> Result<Session, Error>) -> Result<(), Error> {
        if self.status() != Status::Disconnected {
            return Err(Error::AlreadyActive);
        }
        // Drop a closed session, or a socket that was opened for pings.
        self.session = None;
        self.sessions += 1;
        let session = open().inspect_err(|error| self.end = text(error))?;
        session.set_refusing(self.is_refusing);
        self.end = GString::new();
        self.session = Some(session);
        Ok(())
    }

    fn status(&self) -> Status {
        self.session.as_ref().map_or(Status::Disconnected, Session::status)
    }

    fn session(&self) -> Result<&Session, Error> {
        self.session.as_ref().ok_or(Error::NotConnected)
    }

    fn session_mut(&mut self) -> Result<&mut Session, Error> {
        self.session.as_mut().ok_or(Error::NotConnected)
    }

    /// Returns the session, or opens a socket for pings if there is none.
    fn pinger(&mut self) -> Result<&mut Session, Error> {
        match &mut self.session {
            Some(session) => Ok(session),
            none => Ok(none.insert(Session::pinger()?)),
        }
    }

    fn put(&mut self, payload: &[u8]) -> Result<(), Error> {
        let transfer = Transfer::new(self.mode, self.channel).ok_or(Error::Channel(self.channel))?;
        let target = self.target;
        self.session_mut()?.put(target, transfer, payload)?;
        if !self.is_flush_due {
            self.is_flush_due = true;
            self.base_mut().call_deferred("flush", &[]);
        }
        Ok(())
    }

    fn front(&self) -> Option<&Packet> {
        self.session.as_ref()?.front()
    }

    /// Emits the signal for a notice. Signal handlers may call methods of this peer.
    fn notify(&mut self, notice: &Notice) {
        match notice {
            Notice::PeerConnected(id) => {
                self.base_mut().emit_signal("peer_connected", vslice![*id]);
            }
            Notice::PeerDisconnected(id) => {
                self.base_mut().emit_signal("peer_disconnected", vslice![*id]);
            }
            Notice::Pong { from, latency, advertisement } => {
                let (address, port) = (text(from.ip().to_canonical()), i64::from(from.port()));
                let advertisement = PackedByteArray::from(&advertisement[..]);
                let arguments = vslice![address, port, latency.as_secs_f64(), advertisement];
                self.base_mut().emit_signal("pong_received", arguments);
            }
            Notice::SendFailed { peer, error } => {
                push(&Error::Broken { peer: *peer, source: *error });
            }
        }
    }
}

#[godot_api]
impl RakwirePeer {
    /// Emitted when a server answers a ping. `round_trip` is in seconds.
    #[signal]
    fn pong_received(address: GString, port: i64, round_trip: f64, advertisement: PackedByteArray);

    /// Opens a server for up to `max_clients` clients. Port 0 selects a free port.
    #[func]
    fn create_server(&mut self, port: i64, #[opt(default = 32)] max_clients: i64) -> global::Error {
        self.create_server_with(port, max_clients, VarDictionary::new())
    }

    /// Opens a server with options, which the README lists.
    #[func]
    fn create_server_with(&mut self, port: i64, max_clients: i64, options: VarDictionary) -> global::Error {
        checked(self.begin(|| {
            let mut settings = ServerSettings::default();
            each_option(&options, |name, value| settings.set(name, value))?;
            Session::server(port, max_clients, settings)
        }))
    }

    /// Starts connecting to a server. Resolving a host name blocks.
    #[func]
    fn create_client(&mut self, host: GString, port: i64) -> global::Error {
        self.create_client_with(host, port, VarDictionary::new())
    }

    /// Starts connecting to a server with options, which the README lists.
    #[func]
    fn create_client_with(&mut self, host: GString, port: i64, options: VarDictionary) -> global::Error {
        checked(self.begin(|| {
            let mut settings = ClientSettings::default();
            each_option(&options, |name, value| settings.set(name, value))?;
            Session::client(&host.to_string(), port, settings)
        }))
    }

    /// Sends the packets that were put since the last poll. At the end of a frame with packets the engine calls this
    /// method itself.
    #[func]
    fn flush(&mut self) {
        self.is_flush_due = false;
        if let Some(session) = &mut self.session {
            session.flush();
        }
    }

    /// Bans an address, a wildcard such as `192.0.2.*`, or a prefix such as `2001:db8::/32`. With 0 seconds the ban is
    /// permanent.
    #[func]
    fn ban(&mut self, addresses: GString, #[opt(default = 0.0)] seconds: f64) -> global::Error {
        checked(self.session_mut().and_then(|session| session.ban(&addresses.to_string(), seconds)))
    }

    /// Removes a ban. Returns true if it existed.
    #[func]
    fn unban(&mut self, addresses: GString) -> bool {
        shown(self.session_mut().and_then(|session| session.unban(&addresses.to_string())))
    }

    /// Returns true if an address is currently banned.
    #[func]
    fn is_banned(&mut self, address: GString) -> bool {
        shown(self.session_mut().and_then(|session| session.is_banned(&address.to_string())))
    }

    /// Pings a server without a connection. Call `poll()` until `pong_received` is emitted. Resolving a host name
    /// blocks.
    #[func]
    fn ping(&mut self, host: GString, port: i64) -> global::Error {
        checked(self.pinger().and_then(|session| session.ping(&host.to_string(), port)))
    }

    /// Pings all servers of the local network on a port. `pong_received` is emitted for each pong.
    #[func]
    fn discover(&mut self, port: i64) -> global::Error {
        checked(self.pinger().and_then(|session| session.discover(port)))
    }

    /// Sets the data that this server sends in its pongs, at most 399 bytes.
    #[func]
    fn set_advertisement(&mut self, data: PackedByteArray) -> global::Error {
        checked(self.session_mut().and_then(|session| session.set_advertisement(data.as_slice())))
    }

    /// Returns the statistics of the connection to a peer, or with peer 0 the statistics of the socket.
    #[func]
    fn get_statistics(&self, #[opt(default = 0)] peer: i32) -> VarDictionary {
        dictionary(shown(self.session().and_then(|session| session.figures(peer))))
    }

    /// Returns a dictionary with `secure`. If the peer has authenticated itself, it also contains the public key `key`,
    /// and with a connect token `user_id` and `user_data`.
    #[func]
    fn get_peer_identity(&self, peer: i32) -> VarDictionary {
        identity(shown(self.session().and_then(|session| session.identity(peer))))
    }

    /// Returns the IP address of a peer.
    #[func]
    fn get_peer_address(&self, peer: i32) -> GString {
        shown(self.session().and_then(|session| Ok(text(session.remote(peer)?.ip().to_canonical()))))
    }

    /// Returns the port of a peer.
    #[func]
    fn get_peer_port(&self, peer: i32) -> i64 {
        shown(self.session().and_then(|session| Ok(session.remote(peer)?.port().into())))
    }

    /// Returns the local port of the socket.
    #[func]
    fn get_local_port(&self) -> i64 {
        shown(self.session().map(|session| session.local_addr().port().into()))
    }

    /// Returns the reason why the last connection closed or could not be opened; empty if there is none.
    #[func]
    fn get_close_reason(&self) -> GString {
        let reason = self.session.as_ref().and_then(Session::end_reason);
        reason.map_or_else(|| self.end.clone(), text)
    }

    /// Generates a private key of 32 bytes for a server or a player.
    #[func]
    fn generate_key() -> PackedByteArray {
        let mut key = [0; 32];
        match system_random() {
            Ok(mut random) => random.fill(&mut key),
            Err(error) => {
                push(&Error::Entropy(error));
                return PackedByteArray::new();
            }
        }
        PackedByteArray::from(&key[..])
    }

    /// Returns the public key of a private key.
    #[func]
    fn public_key(key: PackedByteArray) -> PackedByteArray {
        let public = key_bytes(key.as_slice()).map(|key| StaticKey::from_bytes(key).public().0.to_vec());
        PackedByteArray::from(shown(public))
    }
}

#[godot_api]
impl IMultiplayerPeerExtension for RakwirePeer {
    // The methods `get_packet` and `put_packet` take pointers. They would avoid one copy per packet, but need unsafe
    // code.
    fn get_packet_script(&mut self) -> PackedByteArray {
        let packet = self.session.as_mut().and_then(Session::take);
        packet.map(|packet| PackedByteArray::from(packet.payload())).unwrap_or_default()
    }

    fn put_packet_script(&mut self, buffer: PackedByteArray) -> global::Error {
        checked(self.put(buffer.as_slice()))
    }

    fn get_available_packet_count(&self) -> i32 {
        self.session.as_ref().map_or(0, |session| i32::try_from(session.available()).unwrap_or(i32::MAX))
    }

    fn get_max_packet_size(&self) -> i32 {
        self.session
            .as_ref()
            .map_or(0, |session| i32::try_from(session.max_packet_size()).unwrap_or(i32::MAX))
    }

    fn get_packet_channel(&self) -> i32 {
        self.front().map_or(0, |packet| packet.transfer().channel())
    }

    fn get_packet_mode(&self) -> TransferMode {
        transfer_mode(self.front().map_or(Mode::Reliable, |packet| packet.transfer().mode()))
    }

    fn get_packet_peer(&self) -> i32 {
        self.front().map_or(0, Packet::from)
    }

    fn set_transfer_channel(&mut self, channel: i32) {
        self.channel = channel;
    }

    fn get_transfer_channel(&self) -> i32 {
        self.channel
    }

    fn set_transfer_mode(&mut self, mode: TransferMode) {
        self.mode = mode_of(mode);
    }

    fn get_transfer_mode(&self) -> TransferMode {
        transfer_mode(self.mode)
    }

    fn set_target_peer(&mut self, peer: i32) {
        self.target = peer;
    }

    fn is_server(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_server)
    }

    fn is_server_relay_supported(&self) -> bool {
        self.status() != Status::Disconnected
    }

    fn poll(&mut self) {
        let notices = self.session.as_mut().map(Session::poll).unwrap_or_default();
        let sessions = self.sessions;
        for notice in &notices {
            self.notify(notice);
            // If a handler has closed or replaced the session, the remaining notices are obsolete.
            if self.sessions != sessions {
                break;
            }
        }
    }

    fn close(&mut self) {
        self.end = self.get_close_reason();
        self.session = None;
        self.sessions += 1;
    }

    fn disconnect_peer(&mut self, peer: i32, force: bool) {
        shown(self.session_mut().and_then(|session| session.disconnect(peer, force)));
    }

    fn get_unique_id(&self) -> i32 {
        self.session.as_ref().map_or(0, Session::unique_id)
    }

    fn set_refuse_new_connections(&mut self, enable: bool) {
        self.is_refusing = enable;
        if let Some(session) = &self.session {
            session.set_refusing(enable);
        }
    }

    fn is_refusing_new_connections(&self) -> bool {
        self.is_refusing
    }

    fn get_connection_status(&self) -> ConnectionStatus {
        connection_status(self.status())
    }
}
