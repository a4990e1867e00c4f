//! Two or more machines on one network, in one thread.

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use embassy_net::driver::HardwareAddress;
use embassy_net::{Config as NetConfig, Ipv4Cidr, Stack, StackResources, StaticConfigV4};
use embassy_net_driver_channel as channel;
use heapless::Vec as FixedVec;
use rakwire::game_protocol;
use rakwire::raknet::Config;
use rakwire_embassy::game;
use rakwire_embassy::raknet::{self, Connection, Handle, State};
use tokio::sync::mpsc;

const MTU: usize = 1_514;
/// How long a test waits for what must come, which is far more than it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The port of every server.
pub(crate) const PORT: u16 = 19_132;

/// What happens to datagrams: every so-manieth is lost, by a seed.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) loss_percent: Rc<Cell<u64>>,
    state: Rc<Cell<u64>>,
}

impl Wire {
    pub(crate) fn losing(percent: u64) -> Self {
        Self { loss_percent: Rc::new(Cell::new(percent)), state: Rc::new(Cell::new(0x9E37_79B9_7F4A_7C15)) }
    }

    fn loses(&self) -> bool {
        let mut x = self.state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.state.set(x);
        x % 100 < self.loss_percent.get()
    }
}

/// What machines are connected with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Medium {
    /// Packets that need no more than their address.
    Ip,
    /// Frames; machines ask each other for their hardware addresses.
    Ethernet,
}

impl Medium {
    const fn address(self, number: u8) -> HardwareAddress {
        match self {
            Self::Ip => HardwareAddress::Ip,
            Self::Ethernet => HardwareAddress::Ethernet([2, 0, 0, 0, 0, number]),
        }
    }

    /// The last byte of where it goes.
    fn receiver(self, packet: &[u8]) -> u8 {
        match self {
            Self::Ip => packet[19],
            Self::Ethernet => packet[5],
        }
    }
}

/// A network without any machine on it yet.
pub(crate) struct Net {
    wire: Wire,
    medium: Medium,
    machines: Rc<std::cell::RefCell<Vec<mpsc::UnboundedSender<Vec<u8>>>>>,
    next: u8,
}

/// A machine, its address and its peer of the Game Protocol.
pub(crate) struct Player {
    pub(crate) handle: game::Handle<'static>,
    pub(crate) address: SocketAddr,
}

/// A machine, its address and its peer.
pub(crate) struct Machine {
    pub(crate) handle: Handle<'static>,
    pub(crate) address: SocketAddr,
}

impl Net {
    pub(crate) fn new(wire: Wire) -> Self {
        Self::with_medium(wire, Medium::Ip)
    }

    pub(crate) fn with_medium(wire: Wire, medium: Medium) -> Self {
        Self { wire, medium, machines: Rc::default(), next: 1 }
    }

    /// Adds a machine with a peer in this memory. Must be called in a `LocalSet`.
    pub(crate) fn machine<const C: usize, const B: usize, const S: usize, const D: usize>(
        &mut self,
        change: impl FnOnce(&mut Config),
    ) -> Machine {
        self.machine_at::<C, B, S, D>(PORT, change)
    }

    /// The same on this port; 0 is any.
    pub(crate) fn machine_at<const C: usize, const B: usize, const S: usize, const D: usize>(
        &mut self,
        port: u16,
        change: impl FnOnce(&mut Config),
    ) -> Machine {
        let number = self.next;
        self.next += 1;
        let stack = self.stack(number);
        let mut config = Config::new([number; 32]);
        config.timeout = Duration::from_secs(30);
        change(&mut config);
        let state = Box::leak(Box::new(State::<C, B, S, D>::new()));
        let (handle, mut runner) = raknet::new(state, stack, port, config);
        tokio::task::spawn_local(async move { runner.run().await });
        Machine { handle, address: (Ipv4Addr::new(10, 0, 0, number), port).into() }
    }

    /// The same with a peer of the Game Protocol, on this port; 0 is any.
    pub(crate) fn player<const C: usize, const B: usize, const S: usize, const D: usize>(
        &mut self,
        port: u16,
        change: impl FnOnce(&mut game_protocol::Config),
    ) -> Player {
        let number = self.next;
        self.next += 1;
        let stack = self.stack(number);
        let mut config = game_protocol::Config::new([number; 32]);
        config.timeout = Duration::from_secs(30);
        config.redial = game_protocol::Redial::SamePort(Duration::from_millis(50));
        config.resend = game_protocol::Resend::ROUND_TRIP;
        change(&mut config);
        let state = Box::leak(Box::new(game::State::<C, B, S, D>::new()));
        let (handle, mut runner) = game::new(state, stack, port, config);
        tokio::task::spawn_local(async move { runner.run().await });
        Player { handle, address: (Ipv4Addr::new(10, 0, 0, number), port).into() }
    }

    /// Puts a packet on the wire to a machine, whoever it says that it comes from.
    pub(crate) fn forge(&self, to: u8, packet: Vec<u8>) {
        self.machines.borrow()[usize::from(to) - 1].send(packet).expect("a machine");
    }

    fn stack(&self, number: u8) -> Stack<'static> {
        let state = Box::leak(Box::new(channel::State::<MTU, 32, 32>::new()));
        let (driver, device) = channel::new(state, self.medium.address(number));
        let (status, mut rx, mut tx) = driver.split();
        status.set_link_state(embassy_net::driver::LinkState::Up);
        let (sender, mut arriving) = mpsc::unbounded_channel::<Vec<u8>>();
        self.machines.borrow_mut().push(sender);
        tokio::task::spawn_local(async move {
            while let Some(packet) = arriving.recv().await {
                rx.rx_buf().await[..packet.len()].copy_from_slice(&packet);
                rx.rx_done(packet.len());
            }
        });
        let (wire, medium, machines) = (self.wire.clone(), self.medium, Rc::clone(&self.machines));
        tokio::task::spawn_local(async move {
            loop {
                let packet = tx.tx_buf().await.to_vec();
                tx.tx_done();
                let to = medium.receiver(&packet);
                for (at, machine) in machines.borrow().iter().enumerate() {
                    let own = at + 1 == usize::from(number);
                    if !own && (to == 255 || usize::from(to) == at + 1) && !wire.loses() {
                        machine.send(packet.clone()).expect("a machine");
                    }
                }
            }
        });
        let address = Ipv4Cidr::new(Ipv4Addr::new(10, 0, 0, number), 24);
        let config = StaticConfigV4 { address, gateway: None, dns_servers: FixedVec::new() };
        let resources = Box::leak(Box::new(StackResources::<2>::new()));
        let (stack, mut runner) =
            embassy_net::new(device, NetConfig::ipv4_static(config), resources, number.into());
        tokio::task::spawn_local(async move { runner.run().await });
        stack
    }
}

/// Runs a test on one thread.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = tokio::task::LocalSet::new();
    runtime.block_on(local.run_until(async {
        tokio::time::timeout(PATIENCE, test).await.expect("everything in time");
    }));
}

/// A client and a server with one connection each.
pub(crate) fn pair(wire: Wire) -> (Machine, Machine) {
    let mut net = Net::new(wire);
    let client = net.machine::<1, 48, 128, 4>(|_| {});
    let server = net.machine::<1, 48, 128, 4>(|config| config.max_incoming = 1);
    (client, server)
}

/// A client and a server of the Game Protocol with one connection each.
pub(crate) fn players(wire: Wire) -> (Player, Player) {
    let mut net = Net::new(wire);
    let client = net.player::<1, 48, 128, 8>(0, |_| {});
    let server = net.player::<1, 48, 128, 8>(PORT, |config| config.max_incoming = 1);
    (client, server)
}

/// Opens a connection as soon as the server has a place for it.
pub(crate) async fn join(client: &Machine, server: SocketAddr) -> Connection<'static> {
    loop {
        if let Ok(connection) = client.handle.connect(server).await {
            return connection;
        }
        // The last attempt is still being ended.
        tokio::task::yield_now().await;
    }
}

/// A message that tells its number.
pub(crate) fn message(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0xFE];
    bytes.extend(number.to_be_bytes());
    bytes.extend((bytes.len()..length).map(|at| (at as u32 * 7 + number * 31) as u8));
    bytes
}

/// All bytes of what arrived.
pub(crate) fn bytes(message: &raknet::Received<'_>) -> Vec<u8> {
    message.read(|message| message.chunks().flatten().copied().collect())
}

/// The same of the Game Protocol.
pub(crate) fn read(message: &game::Received<'_>) -> Vec<u8> {
    message.read(|message| message.chunks().flatten().copied().collect())
}

/// Polls a future once and drops it.
pub(crate) fn give_up<F: Future>(future: F) -> bool {
    std::pin::pin!(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending()
}

/// Lets the machines work until `done`.
pub(crate) async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}
