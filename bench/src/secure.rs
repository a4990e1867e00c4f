//! Compares secure connections with plain ones: messages over loopback, and handshakes without sockets.
//!
//! The runs alternate, so that a change in the machine's load affects both.

use std::hint::black_box;
use std::path::Path as FilePath;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use rakwire_bench::connected_peers::{ConnectedPeers, Forgery, Path, Protection};
use rakwire_native::secure::{DatagramCipher, RustCrypto, ServerIdentity, ServerTrust, StaticKey};
use rakwire_native::{
    ConnectOptions, Connection, Delivery, Endpoint, Options as EndpointOptions, RingCipher,
};

use crate::report::{markdown, number};
use crate::{environment, publish, server_handshakes};

const DOCUMENT: &str = "docs/secure-costs.md";
const BEGIN: &str = "<!-- figures: written by `cargo xtask bench secure --publish` -->";
const BEGIN_FLOODS: &str = "<!-- figures of floods: written by `cargo xtask bench secure --publish` -->";

/// The cipher of the datagrams, or `None` for a plain connection.
type Cipher = Option<&'static dyn DatagramCipher>;

const CIPHERS: [Cipher; 3] = [None, Some(&RustCrypto), Some(&RingCipher)];

/// The number of players during a flood of forged datagrams.
const FLOODED_PLAYERS: u16 = 1_000;
/// The size of a player's message in bytes.
const FLOODED_SIZE: usize = 100;
const TICK_RATE: usize = 60;
/// The floods, with the forged datagrams per second. Those of the last one cost the server most: they are the longest,
/// and the server derives a key for each.
const FLOODS: [(usize, Forgery); 5] = [
    (0, Forgery::Current(100)),
    (12_000, Forgery::Current(100)),
    (60_000, Forgery::Current(100)),
    (120_000, Forgery::Current(100)),
    (60_000, Forgery::AfterNext(1_464)),
];

/// Measure secure connections compared with plain ones.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The number of runs of each measurement; their median is printed
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Send a hundredth of the messages once, as a smoke test
    #[arg(long)]
    quick: bool,
    /// Write the tables into docs/secure-costs.md
    #[arg(long, conflicts_with = "quick")]
    publish: bool,
}

impl Options {
    const fn runs(&self) -> u32 {
        if self.quick { 1 } else { self.runs }
    }
}

/// The unit that is counted per second.
#[derive(Clone, Copy, Debug)]
enum Workload {
    Messages { count: usize, size: usize },
    PingPong { count: usize },
    Handshakes { count: usize },
}

const WORKLOADS: [(&str, Workload); 4] = [
    ("messages of 100 bytes", Workload::Messages { count: 100_000, size: 100 }),
    ("messages of 10,000 bytes", Workload::Messages { count: 5_000, size: 10_000 }),
    ("round trips of 64 bytes", Workload::PingPong { count: 5_000 }),
    ("handshakes, core alone, both ends on one core", Workload::Handshakes { count: 500 }),
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut environment = environment::begin(options.runs())?;
    "cargo xtask bench secure".clone_into(&mut environment.command);
    environment.peers.clear();
    let rates =
        format!("{}\n{}", rates(options)?, server_handshakes::table(if options.quick { 20 } else { 2_000 })?);
    println!("{rates}");
    let floods = floods(options);
    println!("{floods}");
    environment::end(&mut environment)?;
    if options.publish {
        let rates = format!("{}\n\n{rates}", environment.sentences());
        publish::write_figures(FilePath::new(DOCUMENT), BEGIN, &rates)?;
        publish::write_figures(FilePath::new(DOCUMENT), BEGIN_FLOODS, &floods)?;
    }
    Ok(())
}

/// Measures each workload with each cipher, and returns a table with the medians of rates and of ratios.
fn rates(options: &Options) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut lines = vec![["per second", "plain", "secure, RustCrypto", "secure, ring"].map(str::to_owned)];
    for (name, workload) in WORKLOADS {
        let workload = if options.quick { workload.shortened() } else { workload };
        let (mut rates, mut ratios) = (CIPHERS.map(|_| Vec::new()), CIPHERS.map(|_| Vec::new()));
        for _ in 0..options.runs() {
            let mut plain = f64::NAN;
            for ((cipher, rates), ratios) in CIPHERS.into_iter().zip(&mut rates).zip(&mut ratios) {
                let rate = runtime.block_on(workload.rate(cipher))?;
                if cipher.is_none() {
                    plain = rate;
                }
                rates.push(rate);
                ratios.push(rate / plain);
            }
        }
        let ([plain, portable, ring], [_, portable_ratio, ring_ratio]) =
            (rates.map(median), ratios.map(median));
        let with_ratio = |rate, ratio: f64| format!("{} ({ratio:.2})", number(rate));
        let secure = [with_ratio(portable, portable_ratio), with_ratio(ring, ring_ratio)];
        let [portable, ring] = secure;
        lines.push([name.to_owned(), number(plain), portable, ring]);
    }
    Ok(markdown(&lines))
}

/// Measures the ticks of a server with many players while datagrams with their addresses are forged.
fn floods(options: &Options) -> String {
    let players = if options.quick { 20 } else { FLOODED_PLAYERS };
    let head = [
        "forged datagrams a second",
        "median of a tick, ms",
        "99 % of the ticks, ms",
        "share of the core",
        "late ticks",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    let mut peers = ConnectedPeers::protected(players, 64, Path::Clean, Protection::Secure);
    let seconds = if options.quick { 1 } else { 2 * options.runs() as usize };
    let mut ticks = FLOODS.map(|_| Vec::new());
    // The floods alternate, so that a change in the machine's load affects all of them.
    for _ in 0..seconds {
        for ((rate, forgery), ticks) in FLOODS.into_iter().zip(&mut ticks) {
            let tick = |_| peers.tick(FLOODED_SIZE, rate / TICK_RATE, forgery).as_secs_f64();
            ticks.extend((0..TICK_RATE).map(tick));
        }
    }
    for ((rate, forgery), mut ticks) in FLOODS.into_iter().zip(ticks) {
        ticks.sort_by(f64::total_cmp);
        let at =
            |share: f64| ticks.get((ticks.len() as f64 * share) as usize).map_or(f64::NAN, |tick| tick * 1e3);
        let core = 100.0 * ticks.iter().sum::<f64>() / ticks.len() as f64 * TICK_RATE as f64;
        let late = ticks.iter().filter(|tick| **tick * TICK_RATE as f64 > 1.0).count();
        let rate = if rate == 0 { "0".to_owned() } else { number(rate as f64) };
        let flood = match forgery {
            Forgery::Current(size) => format!("{rate} of {size} bytes"),
            Forgery::AfterNext(size) => format!("{rate} of {size} bytes, two epochs ahead"),
        };
        let [p50, p99] = [at(0.5), at(0.99)].map(|millis| format!("{millis:.1}"));
        lines.push([flood, p50, p99, format!("{core:.0} %"), late.to_string()]);
    }
    format!("{players} players, the server alone on one core:\n\n{}", markdown(&lines))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Workload {
    const fn shortened(self) -> Self {
        match self {
            Self::Messages { count, size } => Self::Messages { count: count / 100, size },
            Self::PingPong { count } => Self::PingPong { count: count / 100 },
            Self::Handshakes { count } => Self::Handshakes { count: count / 100 },
        }
    }

    /// Returns the number of completed messages, round trips or handshakes per second.
    async fn rate(self, cipher: Cipher) -> Result<f64> {
        let (count, seconds) = match self {
            Self::Messages { count, size } => (count, messages(&connect(cipher).await?, count, size).await?),
            Self::PingPong { count } => (count, ping_pong(&connect(cipher).await?, count).await?),
            Self::Handshakes { count } => (count, handshakes(cipher, count)),
        };
        Ok(count as f64 / seconds)
    }
}

/// Two endpoints and the connection between them.
struct Pair {
    _endpoints: [Endpoint; 2],
    here: Connection,
    there: Connection,
}

async fn connect(cipher: Cipher) -> Result<Pair> {
    let (mut at_server, mut at_client) = (EndpointOptions::server(1)?, EndpointOptions::client()?);
    let mut trust = None;
    if let Some(cipher) = cipher {
        let security = at_server.secure()?;
        security.server = Some(ServerIdentity::new(StaticKey::from_bytes([5; 32])));
        security.cipher = cipher;
        at_client.secure()?.cipher = cipher;
        trust = Some(ServerTrust::Any);
    }
    let server = Endpoint::bind("127.0.0.1:0", at_server).await?;
    let client = Endpoint::bind("127.0.0.1:0", at_client).await?;
    let options = ConnectOptions { trust, ..ConnectOptions::default() };
    let (here, there) = tokio::join!(client.connect_with(server.local_addr(), &options), server.accept());
    let (here, there) = (here?, there.context("the server endpoint is closed")?);
    Ok(Pair { _endpoints: [server, client], here, there })
}

/// Returns the seconds from sending the first message to receiving the last one.
async fn messages(pair: &Pair, count: usize, size: usize) -> Result<f64> {
    let message = vec![0x86; size];
    let began = Instant::now();
    let send = async {
        for _ in 0..count {
            pair.here.send(&message, Delivery::RELIABLE_ORDERED).await?;
        }
        anyhow::Ok(())
    };
    let receive = async {
        for _ in 0..count {
            pair.there.recv().await.context("the connection is closed")?;
        }
        anyhow::Ok(())
    };
    tokio::try_join!(send, receive)?;
    Ok(began.elapsed().as_secs_f64())
}

async fn ping_pong(pair: &Pair, count: usize) -> Result<f64> {
    let began = Instant::now();
    for _ in 0..count {
        for (from, to) in [(&pair.here, &pair.there), (&pair.there, &pair.here)] {
            from.send(&[0x86; 64], Delivery::RELIABLE_ORDERED).await?;
            to.recv().await.context("the connection is closed")?;
        }
    }
    Ok(began.elapsed().as_secs_f64())
}

/// Returns the seconds for `count` handshakes. All ciphers give the same result, because handshakes do not use them.
fn handshakes(cipher: Cipher, count: usize) -> f64 {
    let protection = cipher.map_or(Protection::Plain, |_| Protection::Secure);
    let began = Instant::now();
    for _ in 0..count {
        black_box(ConnectedPeers::protected(1, 64, Path::Clean, protection));
    }
    began.elapsed().as_secs_f64()
}
