//! The rakwire endpoint as a peer of the interop runner. `runner/README.md` describes the environment variables.

use std::env;
use std::error::Error;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use rakwire_native::{Connection, Delivery, Endpoint, Options, Reliability};
use tokio::time::{sleep, timeout};

/// The data of pongs.
const ADVERTISEMENT: &[u8] = b"rakwire interop";
/// The time without an echo after which messages that may be lost count as lost.
const SILENCE: Duration = Duration::from_secs(1);

type Failure = Box<dyn Error + Send + Sync>;

/// Reads a variable of the environment.
fn variable<T: FromStr>(name: &str) -> Result<T, Failure> {
    let text = env::var(name).map_err(|_| format!("{name} is not set"))?;
    text.parse().map_err(|_| format!("{name} cannot be {text:?}").into())
}

fn delivery() -> Result<Delivery, Failure> {
    let name: String = variable("RELIABILITY")?;
    Ok(Delivery::new(match &name[..] {
        "unreliable" => Reliability::Unreliable,
        "unreliable-sequenced" => Reliability::UnreliableSequenced,
        "reliable" => Reliability::Reliable,
        "reliable-ordered" => Reliability::ReliableOrdered,
        "reliable-sequenced" => Reliability::ReliableSequenced,
        "unreliable-with-receipt" => Reliability::UnreliableWithReceipt,
        "reliable-with-receipt" => Reliability::ReliableWithReceipt,
        "reliable-ordered-with-receipt" => Reliability::ReliableOrderedWithReceipt,
        _ => return Err(format!("RELIABILITY cannot be {name:?}").into()),
    }))
}

/// Builds message `number`, like the other peers.
fn message(number: u32, size: usize) -> Vec<u8> {
    let mut message = vec![0xFE];
    message.extend(number.to_be_bytes());
    message.extend((5..size).map(|at| (31 * number as usize + 7 * at + 13 * (at / 256)) as u8));
    message
}

/// Echoes every message until standard input closes.
async fn serve(address: SocketAddr) -> Result<(), Failure> {
    let endpoint = Endpoint::bind(address, Options::server(64)?).await?;
    endpoint.set_advertisement(ADVERTISEMENT)?;
    println!("ready");
    let delivery = delivery()?;
    let echo = async {
        while let Some(connection) = endpoint.accept().await {
            tokio::spawn(async move {
                while let Some(message) = connection.recv().await {
                    // The client may have left.
                    let _ = connection.send(&message.bytes, delivery).await;
                }
            });
        }
    };
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    tokio::select! {
        () = echo => {}
        ended = ended => drop(ended??),
    }
    Ok(())
}

/// Sends the messages of the case, and checks their echoes.
async fn exchange(connection: &Connection) -> Result<(), Failure> {
    let (count, size, window): (u32, usize, u32) =
        (variable("COUNT")?, variable("SIZE")?, variable("WINDOW")?);
    let pause = Duration::from_secs(variable("PAUSE")?);
    let delivery = delivery()?;
    let may_lose = delivery.reliability.is_sequenced() || !delivery.reliability.is_reliable();
    let (mut sent, mut echoed) = (0, 0);
    while echoed < count {
        while sent < count && sent - echoed < window {
            if sent + 1 == count {
                sleep(pause).await;
            }
            connection.send(&message(sent, size), delivery).await?;
            sent += 1;
        }
        let echo = match timeout(SILENCE, connection.recv()).await {
            Err(_) if may_lose && sent == count => return Ok(()),
            Err(_) => continue,
            Ok(echo) => echo.ok_or_else(|| format!("the end: {:?}", connection.closed_reason()))?,
        };
        let number = echo.bytes.get(1..5).and_then(|bytes| Some(u32::from_be_bytes(bytes.try_into().ok()?)));
        if !number.is_some_and(|number| number < sent && echo.bytes == message(number, size)) {
            return Err("an echo of no message".into());
        }
        echoed += 1;
    }
    Ok(())
}

/// Pings a server, or connects to it and exchanges messages, depending on the case.
async fn dial(address: SocketAddr) -> Result<(), Failure> {
    let mut options = Options::client()?;
    options.config.protocol_version = variable("PROTOCOL")?;
    options.config.learn_version = false;
    let endpoint = Endpoint::bind("127.0.0.1:0", options).await?;
    if variable::<String>("TESTCASE")? == "ping" {
        endpoint.ping(address, SILENCE).await?;
        return Ok(());
    }
    let connection = endpoint.connect(address).await?;
    let result = exchange(&connection).await;
    endpoint.close().await;
    result
}

async fn run() -> Result<(), Failure> {
    let address = SocketAddr::new(variable::<IpAddr>("ADDRESS")?, variable("PORT")?);
    let limit = Duration::from_secs(variable("TIMEOUT")?);
    let role: String = variable("ROLE")?;
    match &role[..] {
        "server" => serve(address).await,
        "client" => timeout(limit, dial(address)).await.map_err(|_| "not done in time")?,
        _ => Err(format!("ROLE cannot be {role:?}").into()),
    }
}

#[tokio::main]
async fn main() {
    let result = run().await;
    if let Err(error) = &result {
        eprintln!("rakwire-peer: {error}");
    }
    // Exits explicitly, because a thread still reads standard input.
    std::process::exit(i32::from(result.is_err()))
}
