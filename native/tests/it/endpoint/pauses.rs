//! Connections across a pause of the whole process, such as a breakpoint, a suspended machine, or a slow file write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rakwire::endpoint::Event;
use rakwire_native::endpoint::{Connection, Options};
use rakwire_native::polled;
use tokio::runtime::Handle;

use super::by_both_protocols;
use super::subject::{Subject, receive, server};
use crate::support::DEADLINE;

by_both_protocols!(players_that_keep_sending_outlast_a_pause, players_that_fall_silent_in_a_pause_are_lost);

/// The idle timeout of the connections.
const TIMEOUT: Duration = Duration::from_millis(500);
/// The length of a pause.
const PAUSE: Duration = Duration::from_millis(1_500);
/// The number of players, which exceeds the number of datagrams that one call reads.
const PLAYERS: usize = 40;

/// Players in a thread of their own, which send until they are stopped.
struct Players {
    is_stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Players {
    fn start<P: Subject>(server: std::net::SocketAddr) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_stopped);
        let thread = std::thread::spawn(move || {
            let mut players: Vec<_> = (0..PLAYERS).map(|_| player::<P>(server)).collect();
            while !stop.load(Ordering::SeqCst) {
                for (endpoint, id) in &mut players {
                    endpoint.update();
                    while let Some(event) = endpoint.poll_event() {
                        if let Event::Connected { id: connected, .. } = event {
                            *id = Some(connected);
                        }
                    }
                    if let Some(id) = *id {
                        // If a message cannot be queued, it is skipped; the player sends many others.
                        let _ = endpoint.send(id, &[0x90, 1], P::UNRELIABLE);
                    }
                    endpoint.flush();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Self { is_stopped, thread }
    }

    fn stop(self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.thread.join().expect("no panic");
    }
}

type Player<P> = (polled::Endpoint<P>, Option<rakwire::endpoint::ConnectionId>);

fn player<P: Subject>(server: std::net::SocketAddr) -> Player<P> {
    let mut options = Options::client().expect("entropy");
    P::be_patient(&mut options.config);
    let mut endpoint = polled::Endpoint::bind("127.0.0.1:0", options).expect("a free port");
    endpoint.connect(server).expect("space for a connection");
    (endpoint, None)
}

/// Blocks all threads of the runtime for the length of a pause.
async fn pause() {
    let others = Handle::current().metrics().num_workers() - 1;
    let (is_paused, paused) = mpsc::channel();
    let mut ends = Vec::new();
    for _ in 0..others {
        let (end, ended) = mpsc::channel::<()>();
        let is_paused = is_paused.clone();
        ends.push(end);
        tokio::spawn(async move {
            is_paused.send(()).expect("the test waits");
            // The call returns when the test drops the sender.
            let _ = ended.recv();
        });
    }
    // The worker that runs the test must be blocked too, although it runs no task of the runtime.
    let here = tokio::spawn(async move {
        for _ in 0..others {
            paused.recv().expect("another worker");
        }
        std::thread::sleep(PAUSE);
        drop(ends);
    });
    here.await.expect("no panic");
}

async fn accept_all<P: Subject>(server: &rakwire_native::endpoint::Endpoint<P>) -> Vec<Connection<P>> {
    let accept = async {
        let mut connections = Vec::new();
        while connections.len() < PLAYERS {
            connections.push(server.accept().await.expect("an open endpoint"));
        }
        connections
    };
    tokio::time::timeout(DEADLINE, accept).await.expect("all players in time")
}

async fn players_that_keep_sending_outlast_a_pause<P: Subject>() {
    let server = server::<P>(|options| P::set_timeout(&mut options.config, TIMEOUT)).await;
    let players = Players::start::<P>(server.local_addr());
    let connections = accept_all(&server).await;
    pause().await;
    for connection in &connections {
        while connection.try_recv().is_ok() {}
        receive(connection).await;
        assert_eq!(connection.closed_reason(), None);
    }
    players.stop();
}

async fn players_that_fall_silent_in_a_pause_are_lost<P: Subject>() {
    let server = server::<P>(|options| P::set_timeout(&mut options.config, TIMEOUT)).await;
    let players = Players::start::<P>(server.local_addr());
    let connections = accept_all(&server).await;
    players.stop();
    pause().await;
    for connection in &connections {
        let ended = tokio::time::timeout(DEADLINE, connection.closed()).await;
        assert_eq!(ended.expect("a result before the timeout"), P::LOST);
    }
}
