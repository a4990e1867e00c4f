//! The server of the UDP baseline. It sends a datagram to every client in each tick, and receives between the ticks.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use anyhow::Result;

use super::size::{DATAGRAM, TICK};
use super::socket::{ControlMessages, Socket, client_at};
use super::window::{Record, print_line};

pub(super) fn run(clients: u16, control: ControlMessages) -> Result<()> {
    let socket = match control {
        ControlMessages::On => Socket::bind(Ipv4Addr::LOCALHOST)?,
        ControlMessages::Off => Socket::bind_without_control_messages(Ipv4Addr::LOCALHOST)?,
    };
    print_line(&format!("ready {}", socket.port()?))?;
    let record = Record::begin();
    let server = Server { socket, clients: vec![None; clients.into()], record: record.clone() };
    std::thread::spawn(move || server.serve());
    record.print_at_each_line()
}

struct Server {
    socket: Socket,
    /// The addresses of the clients by number; `None` until a client has sent its first datagram.
    clients: Vec<Option<SocketAddr>>,
    record: Record,
}

impl Server {
    fn serve(mut self) -> Result<()> {
        let mut due = Instant::now() + TICK;
        loop {
            let now = Instant::now();
            if now >= due {
                self.tick();
                self.record.tick(due, now);
                due = (due + TICK).max(now);
            } else {
                self.socket.wait(due - now)?;
                self.receive()?;
            }
        }
    }

    fn tick(&self) {
        let datagram = [0x86; DATAGRAM];
        self.clients.iter().flatten().for_each(|client| self.socket.send(None, *client, &datagram));
    }

    fn receive(&mut self) -> Result<()> {
        let mut count = 0;
        self.socket.receive(|from, _, _| {
            count += 1;
            let client = client_at(from.ip()).and_then(|client| self.clients.get_mut(usize::from(client)));
            if let Some(client) = client {
                *client = Some(from);
            }
        })?;
        self.record.received(count);
        Ok(())
    }
}
