//! Runs libraries that must be polled. A task polls the library whenever its socket is readable, the application sends
//! a message, or a millisecond has passed.

use std::net::UdpSocket;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::library::Delivery;
use crate::role::BenchConnection;

/// The maximum time between two polls. The libraries do not report when their next timer expires.
const TICK: Duration = Duration::from_millis(1);
/// The capacity of each queue between the application and the task, in messages.
const WAITING: usize = 256;

/// One connection of a library.
pub(crate) trait Driven: Send + 'static {
    /// Receives datagrams, handles expired timers, and sends datagrams.
    fn service(&mut self) -> Result<(), String>;
    /// Returns true if the connection is established.
    fn is_connected(&self) -> bool;
    /// Returns true if the library accepts another message of `len` bytes.
    fn has_room(&mut self, len: usize) -> bool;
    /// Queues a message for the next call of `service`.
    fn send(&mut self, message: &[u8], delivery: Delivery) -> Result<(), String>;
    /// Returns the next message that has arrived.
    fn receive(&mut self) -> Option<Vec<u8>>;
}

/// A connection that runs in a task.
pub(crate) struct Handle {
    outgoing: mpsc::Sender<Vec<u8>>,
    incoming: mpsc::Receiver<Vec<u8>>,
}

impl Handle {
    /// Waits until the connection is established, and starts the task.
    pub(crate) async fn start(
        driven: impl Driven,
        socket: &UdpSocket,
        delivery: Delivery,
    ) -> Result<Self, String> {
        let socket = socket.try_clone().and_then(tokio::net::UdpSocket::from_std);
        let socket = socket.map_err(|error| error.to_string())?;
        let (outgoing, from_application) = mpsc::channel(WAITING);
        let (to_application, incoming) = mpsc::channel(WAITING);
        let mut task = Task { driven, socket, delivery, from_application, to_application, waiting: None };
        let mut ticks = ticks();
        while !task.driven.is_connected() {
            ticks.tick().await;
            task.driven.service()?;
        }
        tokio::spawn(task.run());
        Ok(Self { outgoing, incoming })
    }
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

impl BenchConnection for Handle {
    type Message = Vec<u8>;

    async fn send(&self, message: &[u8]) -> Result<(), String> {
        self.outgoing.send(message.to_vec()).await.map_err(|_| "the connection has ended".to_owned())
    }

    async fn recv(&mut self) -> Result<Vec<u8>, String> {
        self.incoming.recv().await.ok_or_else(|| "the connection has ended".to_owned())
    }
}

struct Task<D> {
    driven: D,
    socket: tokio::net::UdpSocket,
    delivery: Delivery,
    from_application: mpsc::Receiver<Vec<u8>>,
    to_application: mpsc::Sender<Vec<u8>>,
    /// The message that the library refused because its queue was full. It is sent again later.
    waiting: Option<Vec<u8>>,
}

impl<D: Driven> Task<D> {
    async fn run(mut self) {
        let mut ticks = ticks();
        while self.step().await.is_ok() {
            let takes = self.waiting.is_none();
            tokio::select! {
                _ = ticks.tick() => {}
                ready = self.socket.readable() => if ready.is_err() { return },
                message = self.from_application.recv(), if takes => match message {
                    Some(message) => self.waiting = Some(message),
                    None => return,
                },
            }
        }
    }

    async fn step(&mut self) -> Result<(), String> {
        for _ in 0..WAITING {
            let next = self.waiting.take().or_else(|| self.from_application.try_recv().ok());
            let Some(message) = next else { break };
            if !self.driven.has_room(message.len()) {
                self.waiting = Some(message);
                break;
            }
            self.driven.send(&message, self.delivery)?;
        }
        self.driven.service()?;
        // The library reads the socket without tokio, so tokio's readiness has to be cleared here.
        let _ = self.socket.try_io(tokio::io::Interest::READABLE, || {
            Err::<(), _>(std::io::Error::from(std::io::ErrorKind::WouldBlock))
        });
        while let Some(message) = self.driven.receive() {
            self.to_application.send(message).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
