//! An echo server, and a client that checks the echoes, with `rust-raknet`. Command line and output: ../../README.md.

#[path = "../../shared/bench.rs"]
mod bench;
mod roles;

use rust_raknet::{RaknetListener, RaknetSocket, Reliability};
use std::{
    io::Read,
    net::SocketAddr,
    process::exit,
    sync::Mutex,
    time::{Duration, Instant},
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

#[derive(Default)]
struct Options {
    address: Option<SocketAddr>,
    port: Option<u16>,
    protocol: Option<u8>,
    count: u32,
    size: usize,
    window: u32,
    timeout: Duration,
    /// The delay before the last message.
    pause: Duration,
    reliability: Option<Reliability>,
}

impl Options {
    fn reliability(&self) -> Reliability {
        self.reliability.unwrap_or(Reliability::ReliableOrdered)
    }

    fn is_sequenced(&self) -> bool {
        matches!(self.reliability(), Reliability::UnreliableSequenced | Reliability::ReliableSequenced)
    }

    fn may_lose(&self) -> bool {
        self.is_sequenced() || matches!(self.reliability(), Reliability::Unreliable)
    }
}

fn usage() -> ! {
    eprintln!(
        "usage: peer server --port PORT [--protocol N] [--reliability NAME]\n       \
         peer client HOST:PORT [--protocol N] [--reliability NAME] [--count N] [--size BYTES] [--window W] \
         [--timeout SECONDS] [--pause SECONDS]\n       \
         peer ping HOST:PORT [--timeout SECONDS]"
    );
    exit(2)
}

fn number<T: std::str::FromStr>(text: Option<String>) -> T {
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| usage())
}

fn reliability(name: &str) -> Reliability {
    match name {
        "unreliable" => Reliability::Unreliable,
        "unreliable-sequenced" => Reliability::UnreliableSequenced,
        "reliable" => Reliability::Reliable,
        "reliable-ordered" => Reliability::ReliableOrdered,
        "reliable-sequenced" => Reliability::ReliableSequenced,
        _ => usage(),
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> (String, Options) {
    let mode = args.next().unwrap_or_else(|| usage());
    let mut o =
        Options { count: 10, size: 100, window: 64, timeout: Duration::from_secs(60), ..Options::default() };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--port" => o.port = Some(number(args.next())),
            "--protocol" => o.protocol = Some(number(args.next())),
            "--reliability" => {
                o.reliability = Some(reliability(&args.next().unwrap_or_else(|| usage())));
            }
            "--count" => o.count = number(args.next()),
            "--size" => o.size = number(args.next()),
            "--window" => o.window = number(args.next()),
            "--pause" => o.pause = Duration::from_secs_f64(number(args.next())),
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
    listener.set_full_motd("rakwire interop rust-raknet".into()).await?;
    listener.listen().await;
    println!("ready {}", listener.local_addr()?.port());
    std::thread::spawn(|| {
        let mut buffer = [0; 256];
        while matches!(std::io::stdin().read(&mut buffer), Ok(1..)) {}
        exit(0);
    });
    let reliability = o.reliability();
    loop {
        let socket = listener.accept().await?;
        tokio::spawn(async move {
            while let Ok(message) = socket.recv().await {
                if socket.send(&message, reliability).await.is_err() {
                    break;
                }
            }
        });
    }
}

/// Checks the content and the order of echoes, and that there are no duplicates.
struct Echoes<'o> {
    options: &'o Options,
    state: Mutex<State>,
    progress: Notify,
}

struct State {
    seen: Vec<bool>,
    count: u32,
    next: u32,
    answered: u32,
    sent: u32,
    last: Instant,
}

impl<'o> Echoes<'o> {
    fn new(options: &'o Options) -> Self {
        let seen = vec![false; options.count as usize];
        let state = State { seen, count: 0, next: 0, answered: 0, sent: 0, last: Instant::now() };
        Self { options, state: Mutex::new(state), progress: Notify::new() }
    }

    fn take(&self, data: &[u8]) -> Result<(), String> {
        let o = self.options;
        let mut state = self.state.lock().unwrap();
        if data.len() != o.size {
            return Err("wrong length".into());
        }
        let number = match o.reliability() {
            Reliability::ReliableOrdered => state.next,
            _ => u32::from_be_bytes([data[1], data[2], data[3], data[4]]),
        };
        if number >= o.count || state.seen[number as usize] {
            return Err("a message that was not sent, or a duplicate".into());
        }
        if o.is_sequenced() && number < state.next {
            return Err("an outdated message".into());
        }
        if data != message(number, o.size) {
            return Err("wrong content or order".into());
        }
        state.seen[number as usize] = true;
        state.count += 1;
        state.next = state.next.max(number + 1);
        state.answered = state.answered.max(number + 1);
        state.last = Instant::now();
        self.progress.notify_one();
        Ok(())
    }

    fn sent(&self) -> u32 {
        let mut state = self.state.lock().unwrap();
        state.sent += 1;
        state.sent - 1
    }

    /// Returns true if another message may be sent. Lost messages count as answered, because the window would otherwise
    /// stay closed.
    fn has_room(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let silent = state.last.elapsed() > Duration::from_millis(300);
        if self.options.may_lose() && state.answered < state.sent && silent {
            state.answered = state.sent;
            state.last = Instant::now();
        }
        let answered = if self.options.may_lose() { state.answered } else { state.count };
        state.sent - answered < self.options.window
    }

    fn is_done(&self) -> bool {
        let state = self.state.lock().unwrap();
        let silent = state.last.elapsed() > Duration::from_secs(5);
        let o = self.options;
        state.count == o.count || o.may_lose() && state.sent == o.count && state.count > 0 && silent
    }
}

/// Sends and receives in two tasks, because `send` blocks while the library's own window is full.
async fn exchange(socket: &RaknetSocket, o: &Options, echoed: &mut u32) -> Result<(), String> {
    let echoes = Echoes::new(o);
    let send = async {
        for number in 0..o.count {
            while !echoes.has_room() {
                let _ = timeout(Duration::from_millis(50), echoes.progress.notified()).await;
            }
            if number + 1 == o.count {
                sleep(o.pause).await;
            }
            socket.send(&message(echoes.sent(), o.size), o.reliability()).await.map_err(|e| e.to_string())?;
        }
        Ok::<_, String>(())
    };
    let receive = async {
        while !echoes.is_done() {
            if let Ok(data) = timeout(Duration::from_millis(50), socket.recv()).await {
                echoes.take(&data.map_err(|e| e.to_string())?)?;
            }
        }
        Ok(())
    };
    let result = tokio::try_join!(send, receive).map(|_| ());
    *echoed = echoes.state.lock().unwrap().count;
    result
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
        // `close` drops queued messages, so they are flushed first. A timer task of the library sends the disconnection
        // notification.
        let _ = timeout(Duration::from_secs(1), socket.flush()).await;
        socket.close().await.map_err(|e| e.to_string())?;
        sleep(Duration::from_secs(1)).await;
        Ok::<_, String>(())
    };
    let result = timeout(o.timeout, run).await.unwrap_or_else(|_| Err("time limit reached".into()));
    match result {
        Ok(()) => {
            let bytes = u64::from(echoed) * o.size as u64;
            println!(r#"{{"connected":true,"echoed":{echoed},"bytes":{bytes},"seconds":{seconds:.6}}}"#);
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
    if let Some(command) = bench::Command::parse(std::env::args().skip(1)) {
        let result = roles::play(command).await;
        if let Err(error) = &result {
            eprintln!("{error}");
        }
        exit(i32::from(result.is_err()));
    }
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
