//! All clients of a measurement in one program. They share a socket that receives for all of their addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rakwire::raknet::{Capacity, Config, ConnectionId, Delivery, Event, Guid, Peer};
use rakwire::wire::MAX_DATAGRAM;

use super::size::{DATAGRAM, MESSAGE, TICK};
use super::socket::{Socket, address_of, client_at};
use super::window::{Record, print_line};

/// The number of parts of a tick. An equal number of clients send in each part.
const PARTS: u32 = 16;
/// The number of clients that connect at the same time.
const AT_A_TIME: usize = 16;
const CONNECTING: Duration = Duration::from_secs(40);

pub(super) fn run(server: SocketAddr, clients: u16, udp: bool) -> Result<()> {
    let record = Record::begin();
    let mut load = Load::new(server, clients, udp, record.clone())?;
    load.connect()?;
    print_line("connected")?;
    std::thread::spawn(move || load.play());
    record.print_at_each_line()
}

struct Client {
    address: IpAddr,
    /// The RakNet peer, or `None` if the client sends plain datagrams.
    peer: Option<Peer<'static>>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Connecting,
    Connected(Option<ConnectionId>),
}

pub(super) struct Load {
    socket: Socket,
    server: SocketAddr,
    clients: Vec<Client>,
    start: Instant,
    record: Record,
}

impl Load {
    pub(super) fn new(server: SocketAddr, clients: u16, udp: bool, record: Record) -> Result<Self> {
        let client = |number| Client {
            address: address_of(number),
            peer: (!udp).then(|| peer(number)),
            state: State::Waiting,
        };
        let socket = Socket::bind(Ipv4Addr::UNSPECIFIED)?;
        Ok(Self {
            socket,
            server,
            clients: (0..clients).map(client).collect(),
            start: Instant::now(),
            record,
        })
    }

    fn now(&self) -> rakwire::Instant {
        rakwire::Instant::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Connects all clients, at most [`AT_A_TIME`] at the same time.
    pub(super) fn connect(&mut self) -> Result<()> {
        let is = |state: State| move |client: &&Client| client.state == state;
        loop {
            let connecting = self.clients.iter().filter(is(State::Connecting)).count();
            let waiting = self.clients.iter().filter(is(State::Waiting)).count();
            if connecting + waiting == 0 {
                return Ok(());
            }
            let left = connecting + waiting;
            ensure!(
                self.start.elapsed() < CONNECTING,
                "{left} clients did not connect within {} s",
                CONNECTING.as_secs()
            );
            let now = self.now();
            let waiting = self.clients.iter_mut().filter(|client| client.state == State::Waiting);
            for client in waiting.take(AT_A_TIME.saturating_sub(connecting)) {
                client.begin(now, self.server)?;
            }
            self.transmit(0..self.clients.len());
            self.socket.wait(Duration::from_millis(1))?;
            self.receive()?;
        }
    }

    /// Sends one message per client and tick, and receives the messages from the server, forever.
    fn play(mut self) -> Result<()> {
        let mut due = Instant::now();
        for part in (0..PARTS as usize).cycle() {
            due += TICK / PARTS;
            self.send(part);
            loop {
                let now = Instant::now();
                self.receive()?;
                if now >= due {
                    break;
                }
                self.socket.wait(due - now)?;
            }
        }
        Ok(())
    }

    /// Sends one message from every client.
    pub(super) fn send_all(&mut self) {
        (0..PARTS as usize).for_each(|part| self.send(part));
    }

    /// Sends one message from every client of this part of a tick.
    fn send(&mut self, part: usize) {
        let now = self.now();
        let of_part = |at: usize| at * self.clients.len() / PARTS as usize;
        let range = of_part(part)..of_part(part + 1);
        for client in self.clients.get_mut(range.clone()).unwrap_or_default() {
            match (&mut client.peer, client.state) {
                // If the send queue of the connection is full, the message is skipped in this tick.
                (Some(peer), State::Connected(Some(id))) => {
                    let _ = peer.send(now, id, &[0x86; MESSAGE], Delivery::UNRELIABLE);
                }
                (Some(_), _) => {}
                (None, _) => self.socket.send(Some(client.address), self.server, &[0x86; DATAGRAM]),
            }
        }
        self.transmit(range);
    }

    /// Handles the timers of these clients and sends their pending datagrams.
    fn transmit(&mut self, range: std::ops::Range<usize>) {
        let now = self.now();
        let mut buffer = [0; MAX_DATAGRAM];
        for client in self.clients.get_mut(range).unwrap_or_default() {
            let from = Some(client.address);
            let Some(peer) = &mut client.peer else {
                if client.state == State::Connecting {
                    self.socket.send(from, self.server, &[0x86; DATAGRAM]);
                }
                continue;
            };
            if peer.poll_timeout().is_some_and(|due| due <= now) {
                peer.handle_timeout(now);
            }
            while let Some(transmit) = peer.poll_transmit(now, &mut buffer) {
                self.socket.send(from, self.server, transmit.payload);
            }
        }
    }

    /// Receives and handles all waiting datagrams.
    pub(super) fn receive(&mut self) -> Result<()> {
        let (now, server) = (self.now(), self.server);
        let mut messages = 0;
        let clients = &mut self.clients;
        let mut each = |_: SocketAddr, to: Option<IpAddr>, datagram: &[u8]| {
            let client = to.and_then(client_at).and_then(|number| clients.get_mut(usize::from(number)));
            messages += client.map_or(0, |client| client.handle_datagram(now, server, datagram));
        };
        while self.socket.receive(&mut each)? {}
        self.record.received(messages);
        Ok(())
    }
}

impl Client {
    fn begin(&mut self, now: rakwire::Instant, server: SocketAddr) -> Result<()> {
        self.state = State::Connecting;
        if let Some(peer) = &mut self.peer {
            peer.connect(now, server)?;
        }
        Ok(())
    }

    /// Handles a datagram and returns the number of messages in it.
    fn handle_datagram(&mut self, now: rakwire::Instant, server: SocketAddr, datagram: &[u8]) -> u64 {
        let Some(peer) = &mut self.peer else {
            self.state = State::Connected(None);
            return 1;
        };
        peer.handle_datagram(now, server, datagram);
        let mut messages = 0;
        while let Some(event) = peer.poll_event() {
            if let Event::Connected { id, .. } = event {
                self.state = State::Connected(Some(id));
            } else if matches!(event, Event::Message { .. }) {
                messages += 1;
            }
        }
        messages
    }
}

fn peer(number: u16) -> Peer<'static> {
    let mut entropy = [7; 32];
    entropy[..2].copy_from_slice(&number.to_be_bytes());
    let mut config = Config::new(entropy);
    config.guid = Guid(u64::from(number) + 1_000_000);
    config.protocol_version = 11;
    Peer::with_capacity(Capacity { connections: 1, blocks: 64, block_size: 256 }, config)
}
