//! Simulated machines on one network, run in one thread.

use std::cell::Cell;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use embassy_net::driver::{Capabilities, Driver, HardwareAddress, LinkState};
use embassy_net::{Config as NetConfig, ConfigV6, Ipv4Cidr, Ipv6Cidr, Stack, StackResources};
use embassy_net::{StaticConfigV4, StaticConfigV6};
use embassy_net_driver_channel as channel;
use heapless::Vec as FixedVec;
use rakwire::endpoint::{Hook, Protocol};
use rakwire::game_protocol::{self, GameProtocol, Reliability};
use rakwire::raknet::{self, Delivery, RakNet};
use rakwire_embassy::{Connection, Handle, Received, Runner, State, new_with_hook};
use tokio::sync::mpsc;

const MTU: usize = 1_534;
/// The time limit for an expected event, far longer than the event takes.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);
/// A time longer than any test may wait.
const TOO_LONG: Duration = TIME_LIMIT.saturating_mul(2);
/// The port of every server.
pub(crate) const PORT: u16 = 19_132;

/// The behaviour of the network: the fraction of datagrams that are lost, selected by a seed.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) loss_percent: Rc<Cell<u64>>,
    /// The maximum length of an IP packet; longer packets are dropped silently.
    longest: Rc<Cell<usize>>,
    state: Rc<Cell<u64>>,
}

impl Wire {
    pub(crate) fn losing(percent: u64) -> Self {
        Self {
            loss_percent: Rc::new(Cell::new(percent)),
            longest: Rc::new(Cell::new(usize::MAX)),
            state: Rc::new(Cell::new(0x9E37_79B9_7F4A_7C15)),
        }
    }

    /// Limits the length of IP packets.
    pub(crate) fn narrow(&self, longest: usize) {
        self.longest.set(longest);
    }

    /// Stops losing datagrams. The Game Protocol sends END only once, so a test calls this method before it waits for
    /// the remote peer to close.
    pub(crate) fn lose_nothing(&self) {
        self.loss_percent.set(0);
    }

    fn loses(&self, packet: usize) -> bool {
        if packet > self.longest.get() {
            return true;
        }
        let mut x = self.state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.state.set(x);
        x % 100 < self.loss_percent.get()
    }
}

/// The medium between the machines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Medium {
    /// A medium without hardware addresses, which carries IP packets.
    Ip,
    /// An Ethernet, on which machines request each other's hardware addresses.
    Ethernet,
}

impl Medium {
    const fn address(self, number: u8) -> HardwareAddress {
        match self {
            Self::Ip => HardwareAddress::Ip,
            Self::Ethernet => HardwareAddress::Ethernet([2, 0, 0, 0, 0, number]),
        }
    }

    /// Returns the number of bytes before the IP packet.
    const fn header(self) -> usize {
        match self {
            Self::Ip => 0,
            Self::Ethernet => 14,
        }
    }

    /// Returns the last byte of the destination.
    fn receiver(self, packet: &[u8]) -> u8 {
        match self {
            Self::Ip => packet[19],
            Self::Ethernet => packet[5],
        }
    }
}

/// A device with a limit on the length of packets.
pub(crate) struct Narrow<D> {
    pub(crate) device: D,
    pub(crate) mtu: usize,
}

impl<D: Driver> Driver for Narrow<D> {
    type RxToken<'a>
        = D::RxToken<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = D::TxToken<'a>
    where
        Self: 'a;

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        self.device.receive(cx)
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Self::TxToken<'_>> {
        self.device.transmit(cx)
    }

    fn link_state(&mut self, cx: &mut Context<'_>) -> LinkState {
        self.device.link_state(cx)
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.device.capabilities();
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        self.device.hardware_address()
    }
}

/// A network, initially without machines.
pub(crate) struct Net {
    wire: Wire,
    medium: Medium,
    machines: Rc<std::cell::RefCell<Vec<mpsc::UnboundedSender<Vec<u8>>>>>,
    /// The links of the machines.
    links: Rc<std::cell::RefCell<Vec<channel::StateRunner<'static>>>>,
    stacks: Vec<Stack<'static>>,
    /// The gateway of machines added later.
    pub(crate) gateway: Option<Ipv4Addr>,
    /// The maximum length of IP packets at the interfaces of machines added later.
    pub(crate) interface_mtu: usize,
    next: u8,
}

/// A machine, its address and its peer.
pub(crate) struct Machine<P: Protocol> {
    pub(crate) handle: Handle<'static, P>,
    pub(crate) address: SocketAddr,
}

/// The parts of a protocol that tests of both protocols need.
pub(crate) trait Tested: Protocol {
    /// Reliable, and in order if the protocol supports it.
    const RELIABLE: Self::Delivery;
    const UNRELIABLE: Self::Delivery;
    /// Set if reliable messages arrive in order.
    const IS_ORDERED: bool;

    /// Creates a peer in leaked memory.
    fn new_peer<const C: usize, const B: usize, const S: usize, const D: usize>(
        stack: Stack<'static>,
        port: u16,
        config: Self::Config,
    ) -> (Handle<'static, Self>, Runner<'static, Self>);

    /// Sets timeouts for a simulated network that loses datagrams.
    fn set_times(config: &mut Self::Config);

    /// Makes the attempts of a client fail early.
    fn hurry(config: &mut Self::Config);

    /// Sets how long a peer may be silent.
    fn set_timeout(config: &mut Self::Config, timeout: Duration);

    /// Returns the number of received datagrams with messages.
    fn received(stats: &Self::ConnectionStats) -> u64;

    /// Returns the number of losses that a connection has detected and repaired.
    fn lost(stats: &Self::ConnectionStats) -> u64;
}

impl Tested for RakNet {
    const RELIABLE: Delivery = Delivery::RELIABLE_ORDERED;
    const UNRELIABLE: Delivery = Delivery::UNRELIABLE;
    const IS_ORDERED: bool = true;

    fn new_peer<const C: usize, const B: usize, const S: usize, const D: usize>(
        stack: Stack<'static>,
        port: u16,
        config: raknet::Config,
    ) -> (Handle<'static, Self>, Runner<'static, Self>) {
        use rakwire_embassy::raknet::{State, new};
        new(Box::leak(Box::new(State::<C, B, S, D>::new())), stack, port, config)
    }

    fn set_times(config: &mut raknet::Config) {
        (config.timeout, config.unreliable_timeout) = (TOO_LONG, TOO_LONG);
    }

    fn hurry(config: &mut raknet::Config) {
        (config.connect_attempts, config.connect_interval) = (3, Duration::from_millis(60));
    }

    fn set_timeout(config: &mut raknet::Config, timeout: Duration) {
        config.timeout = timeout;
    }

    fn received(stats: &raknet::ConnectionStats) -> u64 {
        stats.datagrams_received
    }

    fn lost(stats: &raknet::ConnectionStats) -> u64 {
        stats.datagrams_lost
    }
}

impl Tested for GameProtocol {
    const RELIABLE: Reliability = Reliability::Reliable;
    const UNRELIABLE: Reliability = Reliability::Unreliable;
    const IS_ORDERED: bool = false;

    fn new_peer<const C: usize, const B: usize, const S: usize, const D: usize>(
        stack: Stack<'static>,
        port: u16,
        config: game_protocol::Config,
    ) -> (Handle<'static, Self>, Runner<'static, Self>) {
        use rakwire_embassy::game_protocol::{State, new};
        new(Box::leak(Box::new(State::<C, B, S, D>::new())), stack, port, config)
    }

    fn set_times(config: &mut game_protocol::Config) {
        (config.timeout, config.unreliable_timeout) = (TOO_LONG, TOO_LONG);
        config.redial = game_protocol::Redial::SamePort(Duration::from_millis(50));
        config.resend_interval = game_protocol::ResendInterval::MEASURED;
    }

    fn hurry(config: &mut game_protocol::Config) {
        config.handshake_timeout = Duration::from_millis(200);
    }

    fn set_timeout(config: &mut game_protocol::Config, timeout: Duration) {
        config.timeout = timeout;
    }

    fn received(stats: &game_protocol::ConnectionStats) -> u64 {
        stats.chunks_received
    }

    fn lost(stats: &game_protocol::ConnectionStats) -> u64 {
        stats.chunks_resent
    }
}

impl Net {
    pub(crate) fn new(wire: Wire) -> Self {
        Self::with_medium(wire, Medium::Ip)
    }

    pub(crate) fn with_medium(wire: Wire, medium: Medium) -> Self {
        let (machines, links) = (Rc::default(), Rc::default());
        Self {
            wire,
            medium,
            machines,
            links,
            stacks: Vec::new(),
            gateway: None,
            interface_mtu: 1_500,
            next: 1,
        }
    }

    /// Adds a machine with a peer on this port, 0 for any. Must be called in a `LocalSet`.
    pub(crate) fn machine<P: Tested, const C: usize, const B: usize, const S: usize, const D: usize>(
        &mut self,
        port: u16,
        change: impl FnOnce(&mut P::Config),
    ) -> Machine<P> {
        let (machine, mut runner) = self.idle_machine::<P, C, B, S, D>(port, change);
        tokio::task::spawn_local(async move { runner.run().await });
        machine
    }

    /// Adds a machine with a peer that does nothing before its runner runs.
    pub(crate) fn idle_machine<P: Tested, const C: usize, const B: usize, const S: usize, const D: usize>(
        &mut self,
        port: u16,
        change: impl FnOnce(&mut P::Config),
    ) -> (Machine<P>, Runner<'static, P>) {
        let (number, stack, mut config) = self.next::<P>();
        change(&mut config);
        let (handle, runner) = P::new_peer::<C, B, S, D>(stack, port, config);
        (Machine { handle, address: (Ipv4Addr::new(10, 0, 0, number), port).into() }, runner)
    }

    /// Adds a server with a hook.
    pub(crate) fn hooked<
        P: Tested,
        H: Hook<P> + 'static,
        const C: usize,
        const B: usize,
        const S: usize,
        const D: usize,
    >(
        &mut self,
        hook: H,
    ) -> (SocketAddr, Handle<'static, P, H>) {
        let (number, stack, mut config) = self.next::<P>();
        *P::max_incoming(&mut config) = C as u16;
        let memory = Box::leak(Box::new(State::<P, C, B, S, D, MTU, H>::new()));
        let (handle, mut runner) = new_with_hook(memory, stack, PORT, config, hook);
        tokio::task::spawn_local(async move { runner.run().await });
        ((Ipv4Addr::new(10, 0, 0, number), PORT).into(), handle)
    }

    /// Returns the number of the next machine, its stack and its usual configuration.
    fn next<P: Tested>(&mut self) -> (u8, Stack<'static>, P::Config) {
        let number = self.next;
        self.next += 1;
        let mut config = P::config([number; 32]);
        P::set_times(&mut config);
        (number, self.stack(number), config)
    }

    /// Adds a machine without a peer.
    pub(crate) fn machine_without_peer(&mut self) -> (Stack<'static>, Ipv4Addr) {
        let number = self.next;
        self.next += 1;
        (self.stack(number), Ipv4Addr::new(10, 0, 0, number))
    }

    /// Adds a client on any port.
    pub(crate) fn client<P: Tested, const C: usize, const B: usize, const S: usize, const D: usize>(
        &mut self,
    ) -> Machine<P> {
        self.machine::<P, C, B, S, D>(0, |_| {})
    }

    /// Adds a server that accepts as many connections as it has memory for.
    pub(crate) fn server<P: Tested, const C: usize, const B: usize, const S: usize, const D: usize>(
        &mut self,
    ) -> Machine<P> {
        self.machine::<P, C, B, S, D>(PORT, |config| *P::max_incoming(config) = C as u16)
    }

    /// Puts a packet with any sender on the wire to a machine.
    pub(crate) fn forge(&self, to: u8, packet: Vec<u8>) {
        self.machines.borrow()[usize::from(to) - 1].send(packet).expect("a machine");
    }

    /// Connects a machine to the network, or disconnects it.
    pub(crate) fn set_link(&self, machine: u8, state: LinkState) {
        self.links.borrow()[usize::from(machine) - 1].set_link_state(state);
    }

    /// Stops delivering packets to a machine.
    pub(crate) fn cut(&self, machine: u8) {
        self.machines.borrow_mut()[usize::from(machine) - 1] = mpsc::unbounded_channel().0;
    }

    /// Adds a silent machine, and returns the broadcasts that it receives.
    pub(crate) fn listener(&mut self) -> mpsc::UnboundedReceiver<Vec<u8>> {
        let (sender, packets) = mpsc::unbounded_channel();
        self.machines.borrow_mut().push(sender);
        self.next += 1;
        packets
    }

    /// Returns the network stack of a machine.
    pub(crate) fn stack_of(&self, machine: u8) -> Stack<'static> {
        self.stacks[usize::from(machine) - 1]
    }

    fn stack(&mut self, number: u8) -> Stack<'static> {
        let state = Box::leak(Box::new(channel::State::<MTU, 32, 32>::new()));
        let (driver, device) = channel::new(state, self.medium.address(number));
        let (status, mut rx, mut tx) = driver.split();
        status.set_link_state(LinkState::Up);
        self.links.borrow_mut().push(status);
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
                let (to, header) = (medium.receiver(&packet), medium.header());
                for (at, machine) in machines.borrow().iter().enumerate() {
                    let own = at + 1 == usize::from(number);
                    if !own && (to == 255 || usize::from(to) == at + 1) && !wire.loses(packet.len() - header)
                    {
                        // A machine that was cut off receives nothing.
                        let _ = machine.send(packet.clone());
                    }
                }
            }
        });
        let address = Ipv4Cidr::new(Ipv4Addr::new(10, 0, 0, number), 24);
        let config = StaticConfigV4 { address, gateway: self.gateway, dns_servers: FixedVec::new() };
        let mut config = NetConfig::ipv4_static(config);
        let address = Ipv6Cidr::new(ipv6(number), 64);
        if matches!(self.medium, Medium::Ethernet) {
            config.ipv6 =
                ConfigV6::Static(StaticConfigV6 { address, gateway: None, dns_servers: FixedVec::new() });
        }
        let resources = Box::leak(Box::new(StackResources::<6>::new()));
        let mtu = self.interface_mtu + self.medium.header();
        let (stack, mut runner) = embassy_net::new(Narrow { device, mtu }, config, resources, number.into());
        tokio::task::spawn_local(async move { runner.run().await });
        self.stacks.push(stack);
        stack
    }
}

/// Returns the IPv6 address of a machine.
pub(crate) const fn ipv6(number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, number as u16)
}

/// Runs a test on one thread.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = tokio::task::LocalSet::new();
    runtime.block_on(local.run_until(async {
        tokio::time::timeout(TIME_LIMIT, test).await.expect("the test completes within its time limit");
    }));
}

/// Creates a client and a server with one connection each.
pub(crate) fn pair<P: Tested>(wire: Wire) -> (Machine<P>, Machine<P>) {
    let mut net = Net::new(wire);
    (net.client::<P, 1, 48, 128, 8>(), net.server::<P, 1, 48, 128, 8>())
}

/// Opens a connection, and returns it as seen by the client and by the server.
pub(crate) async fn connect<P: Tested>(
    client: &Machine<P>,
    server: &Machine<P>,
) -> (Connection<'static, P>, Connection<'static, P>) {
    let (opened, accepted) = tokio::join!(client.handle.connect(server.address), server.handle.accept());
    (opened.expect("a connection"), accepted)
}

/// Creates a client and a server, and connects them.
pub(crate) async fn connected<P: Tested>(
    wire: Wire,
) -> (Machine<P>, Machine<P>, Connection<'static, P>, Connection<'static, P>) {
    let (client, server) = pair(wire);
    let (here, there) = connect(&client, &server).await;
    (client, server, here, there)
}

/// Opens a connection as soon as the server has a free slot.
pub(crate) async fn join<P: Tested>(client: &Machine<P>, server: SocketAddr) -> Connection<'static, P> {
    loop {
        if let Ok(connection) = client.handle.connect(server).await {
            return connection;
        }
        // The last attempt is still being closed.
        tokio::task::yield_now().await;
    }
}

/// Echoes every message until the connection is closed, and returns the reason.
pub(crate) async fn echo<P: Tested>(connection: Connection<'static, P>) -> String {
    while let Some(message) = connection.recv().await {
        let (delivery, copy) = (message.delivery(), bytes(&message));
        drop(message);
        // The remote may have left already.
        let _ = connection.send(&copy, delivery).await;
    }
    end(&connection)
}

/// Sends messages and waits for each echo.
pub(crate) async fn round_trips<P: Tested>(connection: &Connection<'static, P>, count: u32, length: usize) {
    for number in 0..count {
        connection.send(&message(number, length), P::RELIABLE).await.expect("an open connection");
        let answer = connection.recv().await.expect("an answer");
        assert_eq!(bytes(&answer), message(number, length));
        assert_eq!((answer.delivery(), answer.len()), (P::RELIABLE, length));
    }
}

/// Returns the reason why a connection was closed.
pub(crate) fn end<P: Tested>(connection: &Connection<'static, P>) -> String {
    connection.closed_reason().expect("the connection is closed").to_string()
}

/// The text of the reason, which is the same in both protocols.
pub(crate) const LOCAL: &str = "this application ended the connection";
pub(crate) const REMOTE: &str = "the peer ended the connection";
pub(crate) const LOST: &str = "the connection timed out: the peer stopped answering";

/// Builds a message that contains its number.
pub(crate) fn message(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0xFE];
    bytes.extend(number.to_be_bytes());
    bytes.extend((bytes.len()..length).map(|at| (at as u32 * 7 + number * 31) as u8));
    bytes
}

/// Returns the number in a message.
pub(crate) fn number<P: Tested, H: Hook<P>>(message: &Received<'static, P, H>) -> u32 {
    u32::from_be_bytes(bytes(message)[1..5].try_into().expect("a number"))
}

/// Returns the received numbers, sorted if the protocol keeps no order.
pub(crate) fn in_order<P: Tested>(mut numbers: Vec<u32>) -> Vec<u32> {
    if !P::IS_ORDERED {
        numbers.sort_unstable();
    }
    numbers
}

/// Returns all bytes of a message.
pub(crate) fn bytes<P: Tested, H: Hook<P>>(message: &Received<'static, P, H>) -> Vec<u8> {
    message.read(|message| message.chunks().flatten().copied().collect())
}

/// Polls a future once and drops it.
pub(crate) fn give_up<F: Future>(future: F) -> bool {
    std::pin::pin!(future).poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending()
}

/// Yields to the machines until `done` returns true.
pub(crate) async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}
