//! A game over real sockets: a server of one protocol behind the relay, and a client with an interrupted connection.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, SinkExt, StreamExt};
use rakwire::endpoint::{Capacity, ConnectionId, Event, Peer};
use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;
use tokio::io::AsyncWriteExt;
use tokio::net::UdpSocket;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use crate::model::resumption::{FIRST_BYTE, Game};
use crate::support::{Client, Flow, Running, Server, config, within};

/// Number of messages in each direction.
const MESSAGES: u32 = 300;
/// Number of times that the connection is cut.
const CUTS: u32 = 5;

/// One side of the game.
struct Player<P: Game> {
    peer: Peer<'static, P>,
    start: Instant,
    id: Option<ConnectionId>,
    sent: u32,
    arrived: BTreeSet<u32>,
}

impl<P: Game> Player<P> {
    fn new(entropy: u8, max_incoming: u16) -> Self {
        let mut config = P::configure([entropy; 32]);
        *P::max_incoming(&mut config) = max_incoming;
        let capacity = Capacity { connections: 1, blocks: 512, block_size: 512 };
        let peer = Peer::with_capacity(capacity, config);
        Self { peer, start: Instant::now(), id: None, sent: 0, arrived: BTreeSet::new() }
    }

    fn now(&self) -> rakwire::Instant {
        rakwire::Instant::from_micros(self.start.elapsed().as_micros() as u64)
    }

    fn receive(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.peer.handle_datagram(self.now(), from, datagram);
    }

    /// Sends the messages up to number `until`, and returns the datagrams that are due.
    fn play(&mut self, until: u32) -> Vec<Vec<u8>> {
        let now = self.now();
        if self.peer.poll_timeout().is_some_and(|at| at <= now) {
            self.peer.handle_timeout(now);
        }
        while let Some(event) = self.peer.poll_event() {
            match event {
                Event::Connected { id, .. } => {
                    assert_eq!(*self.id.get_or_insert(id), id, "the connection stays the same")
                }
                Event::Message { message, .. } => {
                    let bytes = message.to_vec();
                    let number = u32::from_be_bytes(bytes[1..5].try_into().unwrap());
                    assert!(self.arrived.insert(number), "{number} arrived twice");
                }
                Event::ConnectFailed { reason, .. } => panic!("no connection: {reason}"),
                Event::Disconnected { reason, .. } => panic!("disconnected: {reason}"),
                Event::Receipt { .. } | _ => {}
            }
        }
        if let Some(id) = self.id.filter(|_| self.sent < until) {
            let number = self.sent.to_be_bytes();
            let message: Vec<u8> = [FIRST_BYTE].into_iter().chain(number).chain([7; 200]).collect();
            if self.peer.send(now, id, &message, P::Delivery::default()).is_ok() {
                self.sent += 1;
            }
        }
        let (mut datagrams, mut buffer) = (Vec::new(), [0; 2_048]);
        while let Some(transmit) = self.peer.poll_transmit(now, &mut buffer) {
            datagrams.push(transmit.payload.to_vec());
        }
        datagrams
    }

    fn has_all(&self) -> bool {
        self.arrived.len() == MESSAGES as usize
    }
}

/// Runs the server until it is stopped. It reports when it has received all messages.
async fn serve<P: Game>(
    socket: UdpSocket,
    complete: oneshot::Sender<()>,
    mut done: oneshot::Receiver<()>,
) -> BTreeSet<SocketAddr> {
    let mut complete = Some(complete);
    let mut player = Player::<P>::new(2, 1);
    let (mut clients, mut buffer) = (BTreeSet::new(), [0; 2_048]);
    loop {
        while let Some(Ok((len, from))) = socket.recv_from(&mut buffer).now_or_never() {
            clients.insert(from);
            player.receive(from, &buffer[..len]);
        }
        for datagram in player.play(MESSAGES) {
            socket.send_to(&datagram, *clients.first().unwrap()).await.unwrap();
        }
        if player.has_all()
            && let Some(complete) = complete.take()
        {
            complete.send(()).unwrap();
        }
        if done.try_recv().is_ok() {
            return clients;
        }
        sleep(Duration::from_millis(1)).await;
    }
}

async fn reliable_messages_survive<P: Game>() {
    let socket = Server::bind().await.0;
    let address = socket.local_addr().unwrap();
    let relay = Running::start(config(address)).await;
    let (done, stopped) = oneshot::channel();
    let (complete, mut completed) = oneshot::channel();
    let server = tokio::spawn(serve::<P>(socket, complete, stopped));

    let mut player = Player::<P>::new(1, 0);
    player.peer.connect(player.now(), address).unwrap();
    let (mut client, flow) = Client::with_control(relay.address, "/ws?target=game").await;
    let (mut cuts, mut server_has_all) = (0, false);
    let game = async {
        loop {
            while let Some(Some(Ok(message))) = client.0.next().now_or_never() {
                if let Message::Binary(datagram) = message {
                    player.receive(address, &datagram);
                }
            }
            for datagram in player.play(MESSAGES) {
                client.0.send(Message::binary(datagram)).await.unwrap();
            }
            if player.sent > (cuts + 1) * MESSAGES / (CUTS + 1) && cuts < CUTS {
                // Every second cut ends the connection without a close frame. The other cuts only replace it. Data is
                // in flight in both directions.
                cuts += 1;
                if cuts % 2 == 0 {
                    client.tcp().shutdown().await.unwrap();
                }
                let path = format!("/ws?target=game&resume={}", flow.resume);
                let (next, resumed) = Client::with_control(relay.address, &path).await;
                assert_eq!(resumed, Flow { resumed: true, ..flow.clone() });
                client = next;
            }
            server_has_all |= completed.try_recv().is_ok();
            if server_has_all && player.has_all() && cuts == CUTS {
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    within(game).await;
    done.send(()).unwrap();
    let clients = within(server).await.unwrap();
    assert_eq!(clients.len(), 1, "the client has one address at the server");
    let snapshot = relay.snapshot();
    assert_eq!((snapshot.flows, snapshot.all().resumed), (1, CUTS.into()));
}

#[tokio::test]
async fn reliable_messages_of_raknet_survive_lost_connections() {
    reliable_messages_survive::<RakNet>().await;
}

#[tokio::test]
async fn reliable_messages_of_the_game_protocol_survive_lost_connections() {
    reliable_messages_survive::<GameProtocol>().await;
}
