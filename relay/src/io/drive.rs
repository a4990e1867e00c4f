//! Runs a flow between its two sockets in one task. The connection to the client can be lost and replaced.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};
use tracing::{info, warn};

use super::app::{App, Connections};
use super::batch::CatchUp;
use super::health::Observations;
use super::open_flows::{OpenFlowGuard, Request};
use super::transport::Connection;
use super::udp::ServerSocket;
use crate::close::CloseReason;
use crate::counters::TransportKind;
use crate::flow::{Flow, FlowEnd, Forwarded, FromClient, FromServer};

/// Maximum number of messages read from the client before they are sent to the game server.
const READS_MAX: usize = 32;

/// Maximum number of receive calls on the game server's socket before data is written to the client.
const RECEIVES_MAX: usize = 2;

/// Maximum number of rounds in both directions before other tasks run.
const ROUNDS_MAX: usize = 4;

/// The result of running a flow to its end.
pub(crate) struct Ended {
    pub(crate) reason: FlowEnd,
    /// The last address and transport of the client.
    pub(crate) client: SocketAddr,
    pub(crate) transport: TransportKind,
    pub(crate) forwarded: Forwarded,
    /// The connection of the client, if it is still open.
    pub(crate) connection: Option<Box<Connection>>,
}

/// A flow with its sockets.
pub(crate) struct Driver<'a> {
    app: &'a App,
    /// The number of the flow, which identifies its lines in the log.
    number: u64,
    flow: Flow,
    server: ServerSocket,
    /// The connection is boxed, because a flow that waits for its client has none.
    connection: Option<Box<Connection>>,
    /// The last address and transport of the client.
    client: SocketAddr,
    transport: TransportKind,
    returning: Arc<Connections>,
    /// The entry of the flow in the list for operators.
    listed: OpenFlowGuard,
    catch_up: CatchUp,
    /// Records observations of the game server, for the judgement of its health.
    observations: Arc<Observations>,
    has_begun: bool,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        app: &'a App,
        flow: Flow,
        server: ServerSocket,
        connection: Box<Connection>,
        returning: Arc<Connections>,
        (number, listed): (u64, OpenFlowGuard),
    ) -> Self {
        let (client, transport) = (connection.client(), connection.kind());
        let catch_up = CatchUp::default();
        let observations = app.probes.observations(server.server());
        Self {
            observations,
            has_begun: false,
            app,
            number,
            flow,
            server,
            connection: Some(connection),
            client,
            transport,
            returning,
            listed,
            catch_up,
        }
    }

    /// Runs until the flow ends.
    ///
    /// The future is boxed, because a task reserves space for every location that a value is moved to.
    pub(crate) async fn run(mut self: Box<Self>) -> Ended {
        let app = self.app;
        let mut timer = pin!(sleep_until(self.flow.poll_timeout().into()));
        let mut stopped = pin!(app.stop.cancelled());
        let reason = poll_fn(|context| {
            if stopped.as_mut().poll(context).is_ready() {
                self.flow.handle_shutdown(Instant::now());
            }
            self.poll(context, timer.as_mut())
        })
        .await;
        // A client that returned at the last moment gets the same close as a connected client.
        let connection = self.returning.close().or(self.connection);
        let last = connection.as_ref().map(|connection| (connection.client(), connection.kind()));
        let (client, transport) = last.unwrap_or((self.client, self.transport));
        Ended { reason, client, transport, forwarded: self.flow.forwarded(), connection }
    }

    fn poll(&mut self, context: &mut Context<'_>, mut timer: Pin<&mut Sleep>) -> Poll<FlowEnd> {
        for _ in 0..ROUNDS_MAX {
            let now = Instant::now();
            self.poll_returning(context, now);
            let has_more_to_read = self.read(context, now);
            self.send(context, now);
            let has_more_to_receive = self.receive(context, now);
            // The timer alone is not sufficient: it is polled only once no more input is queued.
            self.check_time(now);
            self.write(context, now);
            self.listed.set_forwarded(self.flow.forwarded());
            if let Some(end) = self.flow.end() {
                // The game server is notified that the flow has ended.
                self.send(context, now);
                return Poll::Ready(end);
            }
            let is_busy = has_more_to_read || has_more_to_receive;
            if !is_busy && self.poll_timer(context, timer.as_mut()).is_pending() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Handles requests of other tasks, such as the handover of a returning client's connection.
    fn poll_returning(&mut self, context: &Context<'_>, now: Instant) {
        while let Poll::Ready(request) = self.returning.poll(context) {
            match request {
                Request::Attach(connection) => self.attach(connection, now),
                Request::Evict => self.flow.handle_evicted(now),
                Request::End(end) => self.flow.handle_ended(now, end),
                Request::Drain => {
                    let until = self.app.drain_until.get();
                    until.into_iter().for_each(|until| self.flow.handle_draining(now, *until));
                }
            }
        }
    }

    /// Continues with the connection of a returning client.
    fn attach(&mut self, connection: Box<Connection>, now: Instant) {
        self.flow.handle_attached(now);
        self.flow.secret().inspect(|secret| self.app.resumable().set_attached(secret));
        (self.client, self.transport) = (connection.client(), connection.kind());
        self.listed.set_place(self.client, self.transport.name());
        if self.app.admission.is_banned(now, self.client.ip()) {
            self.flow.handle_ended(now, FlowEnd::Banned);
        }
        let (client, transport) = (self.app.addresses.show(self.client), self.transport);
        info!(%client, %transport, flow = self.number, "client resumed its flow");
        if let Some(former) = self.connection.replace(connection) {
            self.dismiss(former, CloseReason::Resumed);
        }
    }

    /// Reads messages from the client. Returns true if there may be more.
    fn read(&mut self, context: &mut Context<'_>, now: Instant) -> bool {
        if let Some(connection) = &self.connection {
            self.flow.set_transport_limits(connection.transport_limits());
        }
        for _ in 0..READS_MAX {
            let Some(connection) = &mut self.connection else { return false };
            let Poll::Ready(input) = connection.poll_read(context) else { return false };
            self.flow.handle_client(now, input);
            if self.flow.end().is_some() {
                return false;
            }
            self.check_connection();
        }
        true
    }

    /// Sends datagrams from the client to the game server until the socket is full.
    fn send(&mut self, context: &mut Context<'_>, now: Instant) {
        while let Some(sent) = self.server.try_send(&mut self.flow, now) {
            match sent {
                Poll::Ready(sent) => {
                    if sent.count > 0 && !self.has_begun {
                        self.observations.begun(self.client.ip());
                        self.has_begun = true;
                    }
                    if let Some(reason) = sent.unreachable {
                        self.observations.unreachable(self.client.ip(), reason);
                        pass(&mut self.flow, self.server.server(), now, FromServer::Unreachable(reason));
                    }
                    self.flow.handle_sent(sent.count, sent.sending);
                }
                Poll::Pending => match self.server.poll_writable(context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return self.flow.handle_server(now, FromServer::Failed),
                    Poll::Pending => return,
                },
            }
        }
    }

    /// Receives datagrams from the game server. Returns true if there may be more.
    fn receive(&mut self, context: &mut Context<'_>, now: Instant) -> bool {
        let Self { flow, server, connection, observations, .. } = self;
        let (address, client) = (server.server(), self.client.ip());
        if !flow.closes_on_unreachable() {
            server.ignore_errors();
        }
        while flow.closes_on_unreachable()
            && let Poll::Ready(reason) = server.poll_unreachable(context)
        {
            observations.unreachable(client, reason);
            pass(flow, address, now, FromServer::Unreachable(reason));
            if flow.end().is_some() {
                return false;
            }
        }
        for _ in 0..RECEIVES_MAX {
            match server.poll_readable(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => {
                    flow.handle_server(now, FromServer::Failed);
                    return false;
                }
                Poll::Pending => return false,
            }
            let received = server.try_recv(|input| {
                // Data is written before the queue is full, so that only a slow client loses datagrams. The next write
                // reports a possible error again.
                if let (0, Some(connection)) = (flow.client_queue_capacity(), connection.as_mut()) {
                    let _ = connection.poll_fill(context, flow, now);
                }
                match &input {
                    FromServer::Datagram(_) => observations.answered(),
                    FromServer::Unreachable(reason) => observations.unreachable(client, *reason),
                    FromServer::Oversized | FromServer::Foreign | FromServer::Failed => {}
                }
                pass(flow, address, now, input);
            });
            if received == ControlFlow::Break(()) && server.poll_readable(context).is_pending() {
                return false;
            }
        }
        true
    }

    /// Writes queued data to the client, in one call if the connection accepts it.
    fn write(&mut self, context: &mut Context<'_>, now: Instant) {
        let Some(connection) = &mut self.connection else { return };
        if let Poll::Ready(Err(_)) = connection.poll_write(context, &mut self.flow, now) {
            self.flow.handle_client(now, FromClient::Vanished);
            self.check_connection();
        }
    }

    /// Returns ready once a deadline has passed.
    fn poll_timer(&mut self, context: &mut Context<'_>, mut timer: Pin<&mut Sleep>) -> Poll<()> {
        let due = self.catch_up.postponed(self.flow.poll_timeout()).into();
        // The timer is not moved with each datagram, which would be expensive. If it fires early, it is set again.
        if due < timer.deadline() {
            timer.as_mut().reset(due);
        }
        if timer.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.check_time(Instant::now());
        timer.reset(self.catch_up.postponed(self.flow.poll_timeout()).into());
        Poll::Ready(())
    }

    /// Notifies the flow if its deadline has passed.
    fn check_time(&mut self, now: Instant) {
        let due = self.flow.poll_timeout();
        if due <= now && self.catch_up.is_over(due, now) {
            self.flow.handle_timeout(now);
            self.check_connection();
        }
    }

    /// Drops the connection of a client that the flow considers lost.
    fn check_connection(&mut self) {
        let Some(lost) = self.flow.lost() else { return };
        let Some(connection) = self.connection.take() else { return };
        self.listed.set_away();
        self.flow.secret().inspect(|secret| self.app.resumable().set_detached(secret));
        self.dismiss(connection, CloseReason::Flow(lost));
    }

    /// Closes a connection that the flow no longer uses.
    fn dismiss(&self, connection: Box<Connection>, reason: CloseReason) {
        self.app.counters.closed(reason.kind());
        if reason.kind().code().is_some() {
            tokio::spawn(async move { connection.close(&reason).await });
        }
    }
}

/// Passes input from the game server at `address` to its flow. The first report of each kind about a target is logged.
fn pass(flow: &mut Flow, address: SocketAddr, now: Instant, input: FromServer<'_>) {
    if let FromServer::Unreachable(reason) = input
        && flow.is_first_report(reason)
    {
        let reason = reason.text();
        warn!(server = %address, reason, "the game server is unreachable; further reports are only counted");
    }
    flow.handle_server(now, input);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use std::sync::atomic::AtomicBool;

    use tokio::net::UdpSocket;

    use super::super::open_flows::Ender;
    use super::*;
    use crate::admission::{Admission, Targets};
    use crate::config::Config;
    use crate::counters::Counters;
    use crate::flow::{FlowLimits, Secret, Setup, Source};

    /// The number of waiting datagrams, more than one turn of the driver receives.
    const WAITING: usize = 200;

    #[tokio::test]
    async fn a_flow_ends_on_time_under_constant_server_traffic() {
        let config = Config::new("127.0.0.1:0".parse().unwrap());
        let admission = Admission::new(&config, Targets::default()).unwrap();
        let app = App::new(admission, &config, None);
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        let socket = ServerSocket::connect(address, address.ip(), Source::Shared, 1472).await.unwrap();
        let client = socket.local_addr().unwrap();
        for _ in 0..WAITING {
            server.send_to(b"snapshot", client).await.unwrap();
        }
        // The client was lost so long ago that the flow must end.
        let (limits, setup) =
            (FlowLimits::default(), Setup { secret: Some(Secret::new([7; 16])), ..Setup::default() });
        let lost_at = Instant::now() - limits.resume_within - Duration::from_millis(1);
        let counters = Counters::default().target(&"game".parse().unwrap());
        let mut flow = Flow::new(limits, counters, setup, lost_at);
        flow.handle_client(lost_at, FromClient::Vanished);
        let mut driver = Driver {
            observations: Arc::default(),
            has_begun: false,
            app: &app,
            number: 1,
            flow,
            server: socket,
            connection: None,
            client,
            transport: TransportKind::WebSocket,
            returning: Arc::new(Connections::new()),
            listed: app.open_flows.add(
                1,
                "game".parse().unwrap(),
                (client, "websocket"),
                Ender::Front(AtomicBool::new(false)),
            ),
            catch_up: CatchUp::default(),
        };
        let mut timer = pin!(sleep_until(driver.flow.poll_timeout().into()));
        let first_turn = poll_fn(|context| Poll::Ready(driver.poll(context, timer.as_mut()))).await;
        assert_eq!(first_turn, Poll::Ready(FlowEnd::ClientVanished));
        assert!(driver.server.has_more(), "the server was not busy enough for this test");
    }
}
