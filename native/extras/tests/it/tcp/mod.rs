//! Connections over TCP, to each other and to raw sockets.

mod either_way;
mod hostile;
mod limits;
mod messages;
mod plugins;
mod spans;
mod tls;

use rakwire_extras::tcp::{Connection, Endpoint, Options};
use rakwire_native::Delivery;
use tokio::net::TcpStream;

use crate::support::DEADLINE;

const ORDERED: Delivery = Delivery::RELIABLE_ORDERED;

async fn endpoint(options: Options) -> Endpoint {
    Endpoint::bind("127.0.0.1:0", options).await.expect("a free port")
}

/// A connected client and server with the same options, except for the number of incoming connections.
struct Pair {
    here: Connection,
    there: Connection,
    client: Endpoint,
    server: Endpoint,
}

impl Pair {
    async fn open(options: &Options) -> Self {
        let mut of_client = options.clone();
        of_client.max_incoming = 0;
        let (server, client) = (endpoint(options.clone()).await, endpoint(of_client).await);
        let (here, there) = tokio::join!(client.connect(server.local_addr()), server.accept());
        Self { here: here.expect("open"), there: there.expect("accepted"), client, server }
    }
}

/// Returns a connection of the library, and the socket of its peer.
async fn with_socket(options: Options) -> (Endpoint, Connection, TcpStream) {
    let server = endpoint(options).await;
    let (socket, connection) = tokio::join!(TcpStream::connect(server.local_addr()), server.accept());
    (server, connection.expect("accepted"), socket.expect("open"))
}

/// Awaits a future; panics after `DEADLINE`.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("a result in time")
}
