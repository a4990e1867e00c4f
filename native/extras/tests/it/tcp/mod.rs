//! Connections over TCP, with each other and with sockets that write what they like.

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

/// A client and a server that are connected, each with the same options but for who may connect.
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

/// A connection of ours, and the socket at its other end.
async fn with_socket(options: Options) -> (Endpoint, Connection, TcpStream) {
    let server = endpoint(options).await;
    let (socket, connection) = tokio::join!(TcpStream::connect(server.local_addr()), server.accept());
    (server, connection.expect("accepted"), socket.expect("open"))
}

/// Waits for something that comes soon, on a machine that is not broken.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("it comes in time")
}
