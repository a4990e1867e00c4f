//! Step 2 of the guide: a chat in which every player has a name.
//!
//! ```sh
//! cargo run -p rakwire-native --example guide_chat -- server 127.0.0.1:19132
//! cargo run -p rakwire-native --example guide_chat -- client 127.0.0.1:19132 ann
//! ```

use std::error::Error;

use rakwire_native::{Channel, Connection, Delivery, Endpoint, Options, id};
use tokio::sync::mpsc;

/// The first message of a client: its name.
const HELLO: u8 = id::USER;
/// A line of chat. The server puts the name of the player before it.
pub(crate) const CHAT: u8 = id::USER + 1;
/// A line from the server, such as "ann has joined".
pub(crate) const NOTICE: u8 = id::USER + 2;

/// Chat has a separate channel, so that a lost line does not delay other messages.
const ON_CHAT: Delivery = match Channel::new(1) {
    Some(channel) => Delivery::RELIABLE_ORDERED.on(channel),
    None => panic!("channels are 0 to 31"),
};
const LONGEST_NAME: usize = 16;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [role, address] if role == "server" => {
            let endpoint = Endpoint::bind(address, Options::server(64)?).await?;
            println!("listening on {}", endpoint.local_addr());
            serve(endpoint).await;
        }
        [role, address, name] if role == "client" => talk(join(address, name).await?).await?,
        _ => return Err("usage: guide_chat server ADDRESS | client ADDRESS NAME".into()),
    }
    Ok(())
}

/// Accepts players until the endpoint is closed.
pub(crate) async fn serve(endpoint: Endpoint) {
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(player(endpoint.clone(), connection));
    }
}

/// Handles one player from its name until it disconnects.
async fn player(endpoint: Endpoint, connection: Connection) {
    let name = connection.recv().await.and_then(|message| text_of(&message.bytes, HELLO));
    let Some(name) = name.filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME) else {
        return connection.disconnect().await;
    };
    endpoint.broadcast(&encoded(NOTICE, &format!("{name} has joined")), Delivery::RELIABLE_ORDERED);
    while let Some(message) = connection.recv().await {
        if let Some(line) = text_of(&message.bytes, CHAT) {
            endpoint.broadcast(&encoded(CHAT, &format!("{name}: {line}")), ON_CHAT);
        }
    }
    endpoint.broadcast(&encoded(NOTICE, &format!("{name} has left")), Delivery::RELIABLE_ORDERED);
}

/// Connects to a server and sends the name.
pub(crate) async fn join(server: &str, name: &str) -> Result<Connection, Box<dyn Error>> {
    let endpoint = Endpoint::bind("0.0.0.0:0", Options::client()?).await?;
    let connection = endpoint.connect(server.parse()?).await?;
    // Sent on the chat channel: if a line of chat arrived before the name, the server would disconnect the client.
    connection.send(&encoded(HELLO, name), ON_CHAT).await?;
    Ok(connection)
}

/// Sends the lines typed into the terminal, and prints the lines from the server.
async fn talk(connection: Connection) -> Result<(), Box<dyn Error>> {
    let mut lines = terminal();
    loop {
        tokio::select! {
            message = connection.recv() => match message {
                Some(message) => println!("{}", String::from_utf8_lossy(message.bytes.get(1..).unwrap_or_default())),
                None => return Err("the server has left".into()),
            },
            line = lines.recv() => match line {
                Some(line) => say(&connection, &line).await?,
                None => break,
            },
        }
    }
    connection.disconnect().await;
    Ok(())
}

pub(crate) async fn say(connection: &Connection, line: &str) -> Result<(), Box<dyn Error>> {
    connection.send(&encoded(CHAT, line), ON_CHAT).await?;
    Ok(())
}

/// Reads lines in a thread, because reading blocks.
fn terminal() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.blocking_send(line))
    });
    lines
}

fn encoded(id: u8, text: &str) -> Vec<u8> {
    [&[id], text.as_bytes()].concat()
}

/// Returns the text of a message with this id. Bytes of other peers may be anything.
pub(crate) fn text_of(message: &[u8], id: u8) -> Option<String> {
    let (first, text) = message.split_first()?;
    std::str::from_utf8(text).ok().filter(|_| *first == id).map(str::to_owned)
}
