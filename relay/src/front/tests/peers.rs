//! Peers of both protocols that connect through a front.

use super::*;

/// Moves datagrams between two peers and the front until nobody has any.
macro_rules! exchange {
    ($bench:ident, $client:ident, $server:ident, $time:expr, $buffer:ident) => {{
        let from = client_address(1);
        let mut addresses = BTreeMap::new();
        loop {
            let mut to_front: Vec<(Option<SocketAddr>, Vec<u8>)> = Vec::new();
            while let Some(transmit) = $client.poll_transmit($time, &mut $buffer) {
                to_front.push((None, transmit.payload.to_vec()));
            }
            while let Some(transmit) = $server.poll_transmit($time, &mut $buffer) {
                to_front.push((Some(transmit.to), transmit.payload.to_vec()));
            }
            if to_front.is_empty() {
                break;
            }
            for (flow, datagram) in to_front {
                let sent = match flow {
                    None => $bench.client(from, &datagram),
                    Some(flow) => $bench.server(addresses[&flow], &datagram),
                };
                let mut waiting = std::collections::VecDeque::from(sent);
                while let Some((to, datagram)) = waiting.pop_front() {
                    match to {
                        To::Client(_) => $client.handle_datagram($time, address(FRONT), &datagram),
                        To::Server(id) => {
                            let flow = address("10.0.0.9:500");
                            addresses.insert(flow, id);
                            $server.handle_datagram($time, flow, &datagram);
                        }
                    }
                }
            }
        }
    }};
}

#[test]
fn peers_of_raknet_connect_through_a_front() {
    for cookies in [CookiePolicy::Off, CookiePolicy::Required] {
        let (mut a, mut b) = (raknet::Resources::<1, 64, 256>::new(), raknet::Resources::<1, 64, 256>::new());
        let mut server_config = raknet::Config::new([2; 32]);
        server_config.max_incoming = 1;
        server_config.cookies = cookies;
        let mut client = raknet::Peer::new(&mut a, raknet::Config::new([1; 32]));
        let mut server = raknet::Peer::new(&mut b, server_config);
        let mut bench = Bench::raknet();
        let mut buffer = [0; MAX_DATAGRAM];
        let time = rakwire::Instant::ZERO;
        let id = client.connect(time, address(FRONT)).unwrap();
        exchange!(bench, client, server, time, buffer);
        assert!(client.poll_event().is_some_and(|event| matches!(event, raknet::Event::Connected { .. })));
        client.send(time, id, b"\xFEhello", Delivery::RELIABLE_ORDERED).unwrap();
        exchange!(bench, client, server, time, buffer);
        let mut heard = Vec::new();
        while let Some(event) = server.poll_event() {
            if let raknet::Event::Message { message, .. } = event {
                heard = message.chunks().flatten().copied().collect();
            }
        }
        assert_eq!(heard, b"\xFEhello");
    }
}

#[test]
fn peers_of_the_game_protocol_connect_through_a_front() {
    let (mut a, mut b) =
        (game_protocol::Resources::<1, 64, 256>::new(), game_protocol::Resources::<1, 64, 256>::new());
    let mut server_config = game_protocol::Config::new([2; 32]);
    server_config.max_incoming = 1;
    let mut client = game_protocol::Peer::new(&mut a, game_protocol::Config::new([1; 32]));
    let mut server = game_protocol::Peer::new(&mut b, server_config);
    let mut bench = Bench::new(settings(FrontProtocol::GameProtocol));
    let mut buffer = [0; MAX_DATAGRAM];
    let mut time = rakwire::Instant::ZERO;
    let id = client.connect(time, address(FRONT)).unwrap();
    exchange!(bench, client, server, time, buffer);
    let connected = client.poll_event();
    assert!(connected.is_some_and(|event| matches!(event, game_protocol::Event::Connected { .. })));
    let reliability = game_protocol::Reliability::Reliable;
    client.send(time, id, b"hello", reliability).unwrap();
    let mut heard = Vec::new();
    for _ in 0..10 {
        exchange!(bench, client, server, time, buffer);
        while let Some(event) = server.poll_event() {
            if let game_protocol::Event::Message { message, .. } = event {
                heard = message.chunks().flatten().copied().collect();
            }
        }
        // What came before the front was done with the server is sent again.
        time = time + Duration::from_millis(500);
        client.handle_timeout(time);
        server.handle_timeout(time);
    }
    assert_eq!(heard, b"hello");
    assert_eq!(bench.counters.snapshot().flows, 1);
}
