//! An echo server and a checking client around `rust-raknet`. Command line and output: ../../README.md.

use rust_raknet::{RaknetListener, RaknetSocket, Reliability};
use std::{
    io::Read,
    net::SocketAddr,
    process::exit,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};

#[derive(Default)]
struct Options {
    address: Option<SocketAddr>,
    port: Option<u16>,
    protocol: Option<u8>,
    count: u32,
    size: usize,
    window: u32,
    timeout: Duration,
}

fn usage() -> ! {
    eprintln!(
        "usage: peer server --port PORT [--protocol N]\n       \
         peer client HOST:PORT [--protocol N] [--count N] [--size BYTES] [--window W] [--timeout SECONDS]\n       \
         peer ping HOST:PORT [--timeout SECONDS]"
    );
    exit(2)
}

fn number<T: std::str::FromStr>(text: Option<String>) -> T {
    text.and_then(|text| text.parse().ok())
        .unwrap_or_else(|| usage())
}

fn parse(mut args: impl Iterator<Item = String>) -> (String, Options) {
    let mode = args.next().unwrap_or_else(|| usage());
    let mut o = Options {
        count: 10,
        size: 100,
        window: 64,
        timeout: Duration::from_secs(60),
        ..Options::default()
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--port" => o.port = Some(number(args.next())),
            "--protocol" => o.protocol = Some(number(args.next())),
            "--count" => o.count = number(args.next()),
            "--size" => o.size = number(args.next()),
            "--window" => o.window = number(args.next()),
            "--timeout" => o.timeout = Duration::from_secs_f64(number(args.next())),
            _ if arg.starts_with("--") => usage(),
            _ => o.address = Some(number(Some(arg))),
        }
    }
    if o.count == 0 || o.size < 5 || o.window == 0 {
        usage();
    }
    (mode, o)
}

/// 0xFE, sequence number u32 BE, then byte i is 31 * sequence + 7 * i + 13 * (i / 256) mod 256.
fn message(sequence: u32, size: usize) -> Vec<u8> {
    let mut message = vec![0xFE];
    message.extend(sequence.to_be_bytes());
    message.extend((5..size).map(|i| (31 * sequence as usize + 7 * i + 13 * (i >> 8)) as u8));
    message
}

async fn serve(o: Options) -> rust_raknet::error::Result<()> {
    if !matches!(o.protocol, None | Some(10 | 11)) {
        eprintln!("rust-raknet always accepts protocols 10 and 11, no other");
        exit(1);
    }
    let address = SocketAddr::from(([127, 0, 0, 1], o.port.unwrap_or_else(|| usage())));
    let mut listener = RaknetListener::bind(&address).await?;
    listener
        .set_full_motd("rakwire interop rust-raknet".into())
        .await?;
    listener.listen().await;
    println!("ready {}", listener.local_addr()?.port());
    std::thread::spawn(|| {
        let mut buffer = [0; 256];
        while matches!(std::io::stdin().read(&mut buffer), Ok(1..)) {}
        exit(0);
    });
    loop {
        let socket = listener.accept().await?;
        tokio::spawn(async move {
            while let Ok(message) = socket.recv().await {
                if socket
                    .send(&message, Reliability::ReliableOrdered)
                    .await
                    .is_err()
                {
                    break;
                }
            }
        });
    }
}

/// Sends and receives in two tasks, because `send` waits while the library's own limits are reached.
async fn exchange(socket: &RaknetSocket, o: &Options, echoed: &mut u32) -> Result<(), String> {
    let slots = tokio::sync::Semaphore::new(o.window as usize);
    let send = async {
        for sequence in 0..o.count {
            slots.acquire().await.map_err(|e| e.to_string())?.forget();
            socket
                .send(&message(sequence, o.size), Reliability::ReliableOrdered)
                .await
                .map_err(|e| e.to_string())?;
        }
        Ok::<_, String>(())
    };
    let receive = async {
        for sequence in 0..o.count {
            if socket.recv().await.map_err(|e| e.to_string())? != message(sequence, o.size) {
                return Err("wrong content or order".into());
            }
            *echoed += 1;
            slots.add_permits(1);
        }
        Ok(())
    };
    tokio::try_join!(send, receive).map(|_| ())
}

async fn client(o: Options) -> i32 {
    let address = o.address.unwrap_or_else(|| usage());
    let (mut connected, mut echoed, mut seconds) = (false, 0, 0.0);
    let run = async {
        let socket = match o.protocol {
            Some(version) => RaknetSocket::connect_with_version(&address, version).await,
            None => RaknetSocket::connect(&address).await,
        }
        .map_err(|e| e.to_string())?;
        connected = true;
        let began = Instant::now();
        exchange(&socket, &o, &mut echoed).await?;
        seconds = began.elapsed().as_secs_f64();
        // `close` drops what is still queued, and its own notice is sent by a timer task.
        let _ = timeout(Duration::from_secs(1), socket.flush()).await;
        socket.close().await.map_err(|e| e.to_string())?;
        sleep(Duration::from_millis(100)).await;
        Ok::<_, String>(())
    };
    let result = timeout(o.timeout, run)
        .await
        .unwrap_or_else(|_| Err("time limit reached".into()));
    match result {
        Ok(()) => {
            let bytes = u64::from(echoed) * o.size as u64;
            println!(
                r#"{{"connected":true,"echoed":{echoed},"bytes":{bytes},"seconds":{seconds:.6}}}"#
            );
            0
        }
        Err(error) => {
            println!(r#"{{"connected":{connected},"echoed":{echoed},"error":"{error}"}}"#);
            1
        }
    }
}

async fn ping(o: Options) -> i32 {
    let address = o.address.unwrap_or_else(|| usage());
    match timeout(o.timeout, RaknetSocket::ping(&address)).await {
        Ok(Ok((_, data))) => {
            println!("{data}");
            0
        }
        Ok(Err(error)) => {
            eprintln!("{error}");
            1
        }
        Err(_) => {
            eprintln!("no pong");
            1
        }
    }
}

#[tokio::main]
async fn main() {
    let (mode, options) = parse(std::env::args().skip(1));
    let code = match mode.as_str() {
        "server" => match serve(options).await {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("{error}");
                1
            }
        },
        "client" => client(options).await,
        "ping" => ping(options).await,
        _ => usage(),
    };
    exit(code)
}
