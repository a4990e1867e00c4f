//! Plugins over TCP.

use std::time::Duration;

use rakwire::codec::rabbit::Text;
use rakwire::endpoint::{ConnectionId, Plugin, Side};
use rakwire::raknet::{Delivery, RakNet};
use rakwire_extras::tcp::{Connection, Endpoint, Message, Options, PluginConnection};
use rakwire_plugins::calls::{CallFailure, Function, Handler, Refusal, RemoteCalls};
use tokio::task::JoinHandle;

/// A timeout longer than any step of these tests takes on a slow machine.
const DEADLINE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(30);

/// Opens a connection, and returns both sides and the endpoints.
pub(crate) async fn connect() -> ([Connection; 2], [Endpoint; 2]) {
    let server = Endpoint::bind("127.0.0.1:0", Options::server(1)).await.expect("a free port");
    let client = Endpoint::bind("127.0.0.1:0", Options::client()).await.expect("a free port");
    let (here, there) = tokio::join!(client.connect(server.local_addr()), server.accept());
    ([here.expect("an open connection"), there.expect("an accepted connection")], [client, server])
}

/// Attaches a plugin, which runs until the connection is closed. No message may reach the application; [`end`] checks
/// that.
pub(crate) fn attach<T>(
    connection: Connection,
    side: Side,
    plugin: T,
) -> (PluginConnection<T>, JoinHandle<Option<Message>>)
where
    T: Plugin<RakNet> + Send + 'static,
{
    let connection =
        PluginConnection::new(connection, side, plugin).expect("the connection has message framing");
    let receiving = connection.clone();
    (connection, tokio::spawn(async move { receiving.recv().await }))
}

/// Closes a connection, and waits for all tasks that received from it.
pub(crate) async fn end(
    connection: &Connection,
    receiving: impl IntoIterator<Item = JoinHandle<Option<Message>>>,
) {
    connection.disconnect().await;
    for receiving in receiving {
        let received =
            tokio::time::timeout(DEADLINE, receiving).await.expect("the tasks end before the timeout");
        assert_eq!(received.expect("no panic"), None);
    }
}

pub(crate) async fn until<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(something) = poll() {
                return something;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("a result before the timeout")
}

struct Echo;

impl Function for Echo {
    const NAME: &'static str = "echo";
    type Arguments<'a> = Text<'a>;
    type Answer<'a> = u32;
}

#[derive(Default)]
struct Heard(u32);

impl Handler<Self, Heard> for Echo {
    fn is_allowed(heard: &Heard, _: ConnectionId) -> bool {
        heard.0 < 20
    }

    fn handle(heard: &mut Heard, _: ConnectionId, text: Text<'_>) -> Result<u32, Refusal> {
        heard.0 += 1;
        u32::try_from(text.chars().count()).map_err(|_| Refusal::Failed(1))
    }
}

type Calls<C> = RemoteCalls<RakNet, C, 4, 32, 256>;

fn call(connection: &PluginConnection<Calls<()>>, text: &str) {
    let (id, delivery) = (connection.id(), Delivery::RELIABLE_ORDERED);
    let called = connection.with(|calls| calls.call::<Echo>(id, &Text::new(text), TIMEOUT, delivery));
    called.expect("enough space");
}

async fn answer(connection: &PluginConnection<Calls<()>>) -> Result<u32, CallFailure> {
    until(|| connection.with(RemoteCalls::poll_finished)).await.answer::<Echo>()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remote_calls_work_over_tcp() {
    let ([here, there], _endpoints) = connect().await;
    let mut answering = Calls::new(Heard::default());
    answering.register::<Echo, Echo>().expect("enough space");
    let (_there, at_there) = attach(there, Side::Server, answering);
    let (here, at_here) = attach(here, Side::Client, Calls::new(()));
    for length in 0..20 {
        call(&here, &"é".repeat(length));
        assert_eq!(answer(&here).await, Ok(length as u32));
    }
    call(&here, "one more");
    assert_eq!(answer(&here).await, Err(CallFailure::Refused(Refusal::Forbidden)));
    end(here.connection(), [at_here, at_there]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_tcp_fail_when_the_connection_closes() {
    let ([here, there], _endpoints) = connect().await;
    let (here, at_here) = attach(here, Side::Client, Calls::new(()));
    call(&here, "no answer");
    assert_eq!(
        there.recv().await.expect("an open connection").bytes.first(),
        Some(&rakwire_plugins::calls::MESSAGE_ID)
    );
    there.disconnect().await;
    assert_eq!(answer(&here).await, Err(CallFailure::Disconnected));
    end(here.connection(), [at_here]).await;
}
