// A loopback network for the documentation examples, which include this file: one machine that receives what it sends.
#[allow(dead_code, reason = "no example uses everything")]
mod loopback {
    use std::error::Error;
    use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

    use embassy_net::driver::{HardwareAddress, LinkState};
    use embassy_net::{Config, Ipv4Cidr, Stack, StackResources, StaticConfigV4};
    use embassy_net_driver_channel as channel;
    use rakwire::endpoint::Protocol;
    use rakwire_embassy::{Handle, State, new};

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const PORT: u16 = 19_132;
    const MTU: usize = 1_514;

    /// The address of the server in [`peers`].
    pub(crate) const SERVER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(ADDRESS, PORT));

    /// Runs an example.
    pub(crate) fn run<E>(example: E) -> Result<(), Box<dyn Error>>
    where
        E: AsyncFnOnce(Stack<'static>) -> Result<(), Box<dyn Error>>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        tokio::task::LocalSet::new().block_on(&runtime, async { example(stack()).await })
    }

    fn stack() -> Stack<'static> {
        let state = Box::leak(Box::new(channel::State::<MTU, 16, 16>::new()));
        let (device, driver) = channel::new(state, HardwareAddress::Ip);
        let (status, mut rx, mut tx) = device.split();
        status.set_link_state(LinkState::Up);
        tokio::task::spawn_local(async move {
            loop {
                let packet = tx.tx_buf().await.to_vec();
                tx.tx_done();
                rx.rx_buf().await[..packet.len()].copy_from_slice(&packet);
                rx.rx_done(packet.len());
            }
        });
        let address = Ipv4Cidr::new(ADDRESS, 24);
        let config = StaticConfigV4 { address, gateway: None, dns_servers: Default::default() };
        let resources = Box::leak(Box::new(StackResources::<6>::new()));
        let (stack, mut runner) = embassy_net::new(driver, Config::ipv4_static(config), resources, 7);
        tokio::task::spawn_local(async move { runner.run().await });
        stack
    }

    /// Creates a client, and a server at [`SERVER`], with memory for two connections each.
    pub(crate) fn peers<P: Protocol>(stack: Stack<'static>) -> (Handle<'static, P>, Handle<'static, P>) {
        (peer(stack, 0, 0), peer(stack, PORT, 2))
    }

    fn peer<P: Protocol>(stack: Stack<'static>, port: u16, max_incoming: u16) -> Handle<'static, P> {
        let mut config = P::config([max_incoming as u8; 32]);
        *P::max_incoming(&mut config) = max_incoming;
        peer_with(stack, port, config)
    }

    /// Creates a peer with memory for two connections.
    pub(crate) fn peer_with<P: Protocol>(
        stack: Stack<'static>,
        port: u16,
        config: P::Config,
    ) -> Handle<'static, P> {
        let memory = Box::leak(Box::new(State::<P, 2, 64, 128, 8, 1_500>::new()));
        let (handle, mut runner) = new(memory, stack, port, config);
        tokio::task::spawn_local(async move { runner.run().await });
        handle
    }

    /// Echoes all messages of one connection.
    pub(crate) async fn echo<P: Protocol>(server: Handle<'static, P>) {
        let connection = server.accept().await;
        let mut buffer = [0; 1_024];
        while let Some(message) = connection.recv().await {
            let delivery = message.delivery();
            let length = message.copy_to(&mut buffer).expect("a short message").len();
            drop(message);
            connection.send(&buffer[..length], delivery).await.expect("an open connection");
        }
    }

    /// A generator for examples only: its output is predictable.
    pub(crate) struct Rng;

    impl rand_core::RngCore for Rng {
        fn next_u32(&mut self) -> u32 {
            7
        }

        fn next_u64(&mut self) -> u64 {
            7
        }

        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }
}
