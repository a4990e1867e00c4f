//! Congestion control of datagrams that the relay sends to pages by QUIC.
//!
//! The game protocol inside has its own congestion control, which distinguishes random loss from congestion. A QUIC
//! controller that halves its window at each loss would throttle it. QUIC therefore uses RakNet's delay-based window
//! here (`docs/congestion.md`).

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;
use rakwire::raknet::{PathSample, PathWindow};

/// The maximum congestion window in bytes: 80 Mbit/s at a round-trip time of 200 ms. It also bounds the packets that
/// QUIC has to track.
const WINDOW_MAX: u32 = 2 * 1024 * 1024;

/// Builds the controller of each connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuicCongestionConfig;

impl ControllerFactory for QuicCongestionConfig {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(QuicCongestion {
            path: PathWindow::new(mtu.into(), WINDOW_MAX),
            epoch: Epoch::since(now),
            next: 0,
            acknowledged: None,
        })
    }
}

/// The packets acknowledged by the current ACK frame.
#[derive(Debug, Clone, Copy)]
struct Acknowledged {
    bytes: u64,
    oldest_sent_at: Instant,
    newest_sent_at: Instant,
}

/// The controller of one path.
#[derive(Debug, Clone, Copy)]
struct QuicCongestion {
    path: PathWindow,
    epoch: Epoch,
    /// The number of the next packet.
    next: u64,
    acknowledged: Option<Acknowledged>,
}

impl Controller for QuicCongestion {
    fn on_sent(&mut self, _: Instant, _: u64, number: u64) {
        self.next = self.next.max(number.saturating_add(1));
    }

    fn on_ack(&mut self, _: Instant, sent_at: Instant, bytes: u64, _: bool, _: &RttEstimator) {
        let first = Acknowledged { bytes: 0, oldest_sent_at: sent_at, newest_sent_at: sent_at };
        let acknowledged = self.acknowledged.get_or_insert(first);
        acknowledged.bytes = acknowledged.bytes.saturating_add(bytes);
        acknowledged.oldest_sent_at = acknowledged.oldest_sent_at.min(sent_at);
        acknowledged.newest_sent_at = acknowledged.newest_sent_at.max(sent_at);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _: bool, newest: Option<u64>) {
        let (Some(acknowledged), Some(newest)) = (self.acknowledged.take(), newest) else { return };
        self.path.on_ack(&PathSample {
            now: self.epoch.convert(now),
            oldest_sent_at: self.epoch.convert(acknowledged.oldest_sent_at),
            newest_sent_at: self.epoch.convert(acknowledged.newest_sent_at),
            bytes: saturated(acknowledged.bytes),
            in_flight: saturated(in_flight.saturating_add(acknowledged.bytes)),
            newest,
            // A new path has sent nothing yet when packets of the previous path are acknowledged.
            next: self.next.max(newest.saturating_add(1)),
        });
    }

    fn on_congestion_event(&mut self, now: Instant, sent_at: Instant, is_persistent: bool, lost: u64) {
        if is_persistent {
            self.path.on_persistent_congestion();
            return;
        }
        let (now, sent_at) = (self.epoch.convert(now), self.epoch.convert(sent_at));
        // quinn reports an ECN mark as congestion without a loss.
        if lost == 0 {
            self.path.on_ecn_mark(now, sent_at);
        } else {
            self.path.on_lost(now, sent_at, saturated(lost));
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.path.set_datagram(mtu.into());
    }

    fn window(&self) -> u64 {
        self.path.bytes().into()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The epoch for the instants of one connection.
#[derive(Debug, Clone, Copy)]
struct Epoch(Instant);

impl Epoch {
    const fn since(epoch: Instant) -> Self {
        Self(epoch)
    }

    /// Converts an instant. An instant before the epoch becomes the epoch.
    fn convert(self, instant: Instant) -> rakwire::Instant {
        let elapsed = instant.saturating_duration_since(self.0).as_micros();
        rakwire::Instant::from_micros(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! Real QUIC connections on simulated paths in virtual time. `docs/congestion.md` contains the tables printed by
    //! `cargo test -p rakwire-relay --lib congestion -- --nocapture --test-threads 1`.

    use std::collections::VecDeque;
    use std::net::SocketAddr;
    use std::time::Duration;

    use bytes::{Bytes, BytesMut};
    use quinn::congestion::{CubicConfig, NewRenoConfig};
    use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
    use quinn_proto::{
        ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, ServerConfig,
        TransportConfig,
    };
    use rakwire::sim::{Conditions, Dumbbell};
    use rakwire::{Machine, Transmit};
    use rustls::RootCertStore;
    use rustls::crypto::ring;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::version::TLS13;

    use super::*;

    /// Bytes of a datagram: the MTU of the npm package.
    const DATAGRAM: usize = 1_024;

    const RATE: u64 = 20_000_000;

    /// One endpoint of a connection. A server always has data to send.
    struct Quic {
        endpoint: Endpoint,
        connection: Option<(ConnectionHandle, Connection)>,
        /// The instant of the simulator's time zero.
        epoch: Instant,
        peer: SocketAddr,
        /// The start time and the configuration of a client.
        starts: Option<(rakwire::Instant, ClientConfig)>,
        outgoing: VecDeque<Vec<u8>>,
        deadline: Option<rakwire::Instant>,
        /// Bytes of datagrams received.
        arrived: u64,
        largest_window: u64,
    }

    impl Quic {
        fn std(&self, now: rakwire::Instant) -> Instant {
            self.epoch + Duration::from_micros(now.as_micros())
        }

        /// Passes pending data between the layers.
        fn drive(&mut self, now: Instant) {
            let Some((handle, connection)) = &mut self.connection else { return };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while connection.poll().is_some() {}
            while let Some(datagram) = connection.datagrams().recv() {
                self.arrived += datagram.len() as u64;
            }
            let is_server = connection.side().is_server();
            let is_open = is_server && connection.datagrams().max_size().is_some_and(|max| max >= DATAGRAM);
            while is_open && connection.datagrams().send_buffer_space() >= DATAGRAM {
                connection.datagrams().send(Bytes::from_static(&[7; DATAGRAM]), false).unwrap();
            }
            let mut buffer = Vec::new();
            while let Some(transmit) = connection.poll_transmit(now, 1, &mut buffer) {
                self.outgoing.push_back(buffer.drain(..).take(transmit.size).collect());
            }
            self.largest_window = self.largest_window.max(connection.congestion_state().window());
            self.deadline = connection.poll_timeout().map(|at| {
                let micros = at.saturating_duration_since(self.epoch).as_nanos().div_ceil(1_000);
                rakwire::Instant::from_micros(u64::try_from(micros).unwrap())
            });
        }
    }

    impl Machine for Quic {
        fn handle_datagram(&mut self, now: rakwire::Instant, _: SocketAddr, datagram: &[u8]) {
            let at = self.std(now);
            let mut answer = Vec::new();
            match self.endpoint.handle(at, self.peer, None, None, BytesMut::from(datagram), &mut answer) {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    self.connection = self.endpoint.accept(incoming, at, &mut answer, None).ok();
                }
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    self.connection.as_mut().unwrap().1.handle_event(event);
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
            self.drive(at);
        }

        fn handle_timeout(&mut self, now: rakwire::Instant) {
            let at = self.std(now);
            if let Some((_, config)) = self.starts.take_if(|(starts, _)| *starts <= now) {
                self.connection = self.endpoint.connect(at, config, self.peer, "localhost").ok();
            }
            if let Some((_, connection)) = &mut self.connection {
                connection.handle_timeout(at);
            }
            self.drive(at);
        }

        fn poll_transmit<'b>(&mut self, now: rakwire::Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
            if self.outgoing.is_empty() {
                self.drive(self.std(now));
            }
            let datagram = self.outgoing.pop_front()?;
            let payload = &mut buffer[..datagram.len()];
            payload.copy_from_slice(&datagram);
            Some(Transmit { to: self.peer, payload })
        }

        fn poll_timeout(&self) -> Option<rakwire::Instant> {
            self.starts.as_ref().map_or(self.deadline, |(starts, _)| Some(*starts))
        }
    }

    /// Returns the configurations of a server named `localhost` and of its client.
    pub(crate) fn quic_pair() -> (ServerConfig, ClientConfig) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.key_pair.serialize_der()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        (
            ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).unwrap())),
            ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).unwrap())),
        )
    }

    /// Returns the configurations of a server and its client.
    fn configs(controller: Arc<dyn ControllerFactory + Send + Sync>) -> (ServerConfig, ClientConfig) {
        let (mut server, client) = quic_pair();
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(controller).datagram_send_buffer_size(32 * 1024);
        server.transport_config(Arc::new(transport));
        (server, client)
    }

    /// Flows that share one bottleneck, each from a server to a client.
    struct Race {
        net: Dumbbell<Quic, Quic>,
        start: rakwire::Instant,
    }

    impl Race {
        /// Creates flows, each with a controller and a start time in milliseconds.
        fn new(conditions: Conditions, flows: &[(Kind, u64)]) -> Self {
            let mut net = Dumbbell::new(conditions, 1);
            let (start, epoch) = (net.now, Instant::now());
            for (index, &(kind, starts)) in flows.iter().enumerate() {
                let port = u16::try_from(index + 1).unwrap();
                let [a, b] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], port)));
                let (server, client) = configs(kind.factory());
                let quic = |server: Option<ServerConfig>, peer, starts| Quic {
                    endpoint: Endpoint::new(
                        Arc::new(EndpointConfig::default()),
                        server.map(Arc::new),
                        false,
                        Some([u8::try_from(port).unwrap(); 32]),
                    ),
                    connection: None,
                    epoch,
                    peer,
                    starts,
                    outgoing: VecDeque::new(),
                    deadline: None,
                    arrived: 0,
                    largest_window: 0,
                };
                let starts = start + Duration::from_millis(starts);
                net.join(quic(Some(server), b, None), quic(None, a, Some((starts, client))));
            }
            Self { net, start }
        }

        fn until(&mut self, time: Duration) {
            while self.net.now.saturating_since(self.start) < time {
                assert!(self.net.step(), "the simulation has no further events");
            }
        }

        /// Returns the rate of each flow in Mbit/s from 3 s on, and the mean queueing delay in milliseconds.
        fn run(&mut self, time: Duration) -> (Vec<f64>, f64) {
            self.until(Duration::from_secs(3));
            let arrived =
                |race: &Self| race.net.pairs().iter().map(|ends| ends.b.arrived).collect::<Vec<_>>();
            let before = arrived(self);
            self.net.forth().take_stats();
            self.until(Duration::from_secs(3) + time);
            let after = arrived(self);
            let rates = after.iter().zip(before);
            let rates = rates.map(|(after, before)| (after - before) as f64 * 8.0 / time.as_secs_f64() / 1e6);
            (rates.collect(), self.net.forth().take_stats().mean_queueing_delay().as_secs_f64() * 1e3)
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Kind {
        DelayBased,
        Cubic,
        NewReno,
    }

    impl Kind {
        fn factory(self) -> Arc<dyn ControllerFactory + Send + Sync> {
            match self {
                Self::DelayBased => Arc::new(QuicCongestionConfig),
                Self::Cubic => Arc::new(CubicConfig::default()),
                Self::NewReno => Arc::new(NewRenoConfig::default()),
            }
        }
    }

    fn path(queue: u64, loss: f64) -> Conditions {
        let millis = Duration::from_millis;
        Conditions { loss, ..Conditions::bottlenecked(millis(50), RATE, millis(queue)) }
    }

    /// Returns the rate of a single flow.
    fn single(kind: Kind, loss: f64) -> f64 {
        let (rates, queue) = Race::new(path(50, loss), &[(kind, 0)]).run(Duration::from_secs(10));
        println!("{kind:?}, {:.0} % lost: {:.2} Mbit/s, queue mean {queue:.1} ms", loss * 100.0, rates[0]);
        rates[0]
    }

    #[test]
    fn delay_based_control_is_ten_times_as_fast_as_cubic_under_random_loss() {
        let ours = single(Kind::DelayBased, 0.05);
        let cubic = single(Kind::Cubic, 0.05);
        assert!(ours > 10.0 * cubic, "{ours:.2} Mbit/s, Cubic {cubic:.2} Mbit/s");
        assert!(ours > 0.75 * single(Kind::DelayBased, 0.0), "{ours:.2} Mbit/s");
    }

    /// The delay-based flow starts on a path that another flow has already filled.
    #[test]
    fn a_flow_shares_a_path_with_loss_based_flows() {
        for other in [Kind::NewReno, Kind::Cubic] {
            for queue in [50, 100] {
                let flows = [(Kind::DelayBased, 3_000), (other, 0)];
                let (rates, delay) = Race::new(path(queue, 0.0), &flows).run(Duration::from_secs(20));
                let (share, both) = (rates[0] / (rates[0] + rates[1]), rates[0] + rates[1]);
                println!(
                    "beside {other:?}, queue of {queue} ms: {:.1} % of {both:.2} Mbit/s, queue mean {delay:.1} ms",
                    share * 100.0
                );
                assert!((0.1..0.8).contains(&share), "{share:.2} beside {other:?}, queue of {queue} ms");
                assert!(both > 15.0, "{both:.2} Mbit/s beside {other:?}, queue of {queue} ms");
            }
        }
    }

    #[test]
    fn delay_based_flows_share_a_path_evenly() {
        let flows = [(Kind::DelayBased, 0), (Kind::DelayBased, 3_000)];
        for loss in [0.0, 0.05] {
            let (rates, delay) = Race::new(path(50, loss), &flows).run(Duration::from_secs(10));
            println!("two flows, {:.0} % lost: {rates:.2?} Mbit/s, queue mean {delay:.1} ms", loss * 100.0);
            let share = rates[0] / (rates[0] + rates[1]);
            assert!((0.35..0.65).contains(&share), "{rates:?}");
        }
    }

    /// On an unlimited path the window doubles with each round trip, until it reaches `WINDOW_MAX`.
    #[test]
    fn the_congestion_window_is_bounded_on_an_unlimited_path() {
        let conditions = Conditions { latency: Duration::from_millis(25), ..Conditions::default() };
        let mut race = Race::new(conditions, &[(Kind::DelayBased, 0)]);
        race.until(Duration::from_secs(2));
        let largest = race.net.pairs()[0].a.largest_window;
        assert_eq!(largest, u64::from(WINDOW_MAX));
    }

    /// quinn reports an ECN mark as congestion without lost bytes.
    #[test]
    fn an_ecn_mark_shrinks_the_window_but_a_single_loss_does_not() {
        let start = Instant::now();
        let window = |lost, events: u32| {
            let mut controller = Arc::new(QuicCongestionConfig).build(start, 1_200);
            let before = controller.window();
            for event in 1..=events {
                let sent_at = start + event * Duration::from_millis(1);
                controller.on_congestion_event(sent_at + Duration::from_millis(50), sent_at, false, lost);
            }
            controller.window() * 100 / before
        };
        assert_eq!((window(0, 1), window(0, 20), window(1_200, 1)), (85, 85, 100));
    }
}
