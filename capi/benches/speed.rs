//! Compares the allocations and instructions of the C library with those of the polled endpoint of `rakwire-native`:
//! `cargo bench --bench speed`. `cargo xtask bench doors` compares the rates.
//!
//! Two programs do the same work, a server and a client in one thread over loopback: one in C with the static library,
//! and this one in Rust. If valgrind is installed, callgrind counts the instructions of both programs; these counts
//! hardly depend on the load of the machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use rakwire_native::rakwire::endpoint::{ConnectionId, Event};
use rakwire_native::{Delivery, Options, RakNet, polled};

mod library;

const WARM_UP: u64 = 1_000;
const BATCH: usize = 64;
const MESSAGE: [u8; 64] = [0x86; 64];
/// The number of runs under callgrind. Their counts differ, because the number of acknowledgements depends on timing.
const COUNTED_RUNS: usize = 5;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: each call is forwarded to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: required of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: required of the caller.
        unsafe { System.dealloc(place, layout) }
    }
}

type Endpoint = polled::Endpoint<RakNet>;

/// A connected server and client.
struct Pair {
    server: Endpoint,
    client: Endpoint,
    here: ConnectionId,
    /// Opaque to the compiler, as in the C library. Otherwise it would specialise the sender for this delivery.
    delivery: Delivery,
}

impl Pair {
    fn open() -> Self {
        let bind = |options| Endpoint::bind("127.0.0.1:0", options).expect("a free port");
        let mut client = bind(Options::client().expect("entropy"));
        let server = bind(Options::server(8).expect("entropy"));
        let here = client.connect(server.local_addr()).expect("a free slot");
        let mut pair = Self { server, client, here, delivery: black_box(Delivery::RELIABLE_ORDERED) };
        let (mut is_open, mut is_open_there) = (false, false);
        while !is_open || !is_open_there {
            pair.receive(&mut is_open);
            pair.client.flush();
            pair.server.update();
            while let Some(event) = pair.server.poll_event() {
                is_open_there |= matches!(event, Event::Connected { .. });
            }
            pair.server.flush();
        }
        pair
    }

    /// Runs a frame of the server, which echoes messages if `echoes`. Returns the number of messages.
    fn serve(&mut self, echoes: bool) -> u64 {
        let mut received = 0;
        let mut buffer = [0; MESSAGE.len()];
        self.server.update();
        while let Some(event) = self.server.poll_event() {
            let Event::Message { id, message, .. } = event else { continue };
            received += 1;
            if echoes {
                // The message borrows from the endpoint, which cannot send in the meantime, so copy it. The C library
                // copies it, too.
                let length = message.len();
                buffer[..length].copy_from_slice(message.as_slice().expect("a message in one piece"));
                self.server.send(id, &buffer[..length], self.delivery).expect("the send memory has space");
            }
        }
        self.server.flush();
        received
    }

    fn receive(&mut self, is_open: &mut bool) -> u64 {
        let mut received = 0;
        self.client.update();
        while let Some(event) = self.client.poll_event() {
            *is_open |= matches!(event, Event::Connected { .. });
            received += u64::from(matches!(event, Event::Message { .. }));
        }
        received
    }

    fn trips(&mut self, count: u64) {
        for _ in 0..count {
            self.client
                .send(self.here, black_box(&MESSAGE[..]), self.delivery)
                .expect("the send memory has space");
            self.client.flush();
            let mut received = 0;
            while received == 0 {
                self.serve(true);
                received = self.receive(&mut true);
            }
        }
    }

    fn messages(&mut self, count: u64) {
        let (mut sent, mut received) = (0, 0);
        while received < count {
            for _ in 0..BATCH {
                if sent == count
                    || self.client.send(self.here, black_box(&MESSAGE[..]), self.delivery).is_err()
                {
                    break;
                }
                sent += 1;
            }
            self.client.flush();
            received += self.serve(false);
            self.receive(&mut true);
        }
    }
}

/// Does the work in Rust, and prints the number of allocations like the C program.
fn native(mode: &str, count: u64) {
    let run = if mode == "trips" { Pair::trips } else { Pair::messages };
    let mut pair = Pair::open();
    run(&mut pair, WARM_UP);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    run(&mut pair, count);
    println!("{}", ALLOCATIONS.load(Ordering::Relaxed) - before);
}

fn compile(this: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = this.with_file_name("speed-in-c");
    let mut command = Command::new("cc");
    command.args(["-O2", "-o"]).arg(&program).arg("-I").arg(folder.join("include"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let library = library::build(target, "secure sim").join("librakwire_c.a");
    command.arg(folder.join("benches/speed.c")).arg(library);
    library::run(command.args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]));
    program
}

/// Runs a program once. Returns its allocations.
fn allocations(command: &mut Command) -> u64 {
    let output = command.output().expect("a program that runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = text.trim().parse();
    count.unwrap_or_else(|_| panic!("{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Counts the instructions of a run with callgrind; `None` if it is not installed.
fn instructions(program: &Path, arguments: &[String]) -> Option<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args(arguments);
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

fn median(mut numbers: Vec<u64>) -> f64 {
    numbers.sort_unstable();
    numbers[numbers.len() / 2] as f64
}

/// Compares the programs for one kind of work.
fn compare(programs: &[PathBuf; 2], mode: &str, count: u64) {
    let arguments = [mode.to_owned(), count.to_string()];
    let [native, in_c] =
        programs.each_ref().map(|program| allocations(Command::new(program).args(&arguments)));
    println!("{mode}, {count} of {} bytes", MESSAGE.len());
    println!("  allocations:      native {native}, C {in_c}");
    let few = [mode.to_owned(), "5000".to_owned()];
    let none = [mode.to_owned(), "0".to_owned()];
    let counts = programs.each_ref().map(|program| {
        let start = instructions(program, &none)?;
        let all: Option<Vec<_>> = (0..COUNTED_RUNS).map(|_| instructions(program, &few)).collect();
        Some((median(all?) - start as f64) / 5_000.0)
    });
    if let [Some(native), Some(in_c)] = counts {
        println!(
            "  instructions:     native {native:.0}, C {in_c:.0} for one: {:+.1} %",
            (in_c / native - 1.0) * 100.0
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, count] = &arguments[..] {
        return native(mode, count.parse().expect("a count"));
    }
    let this = std::env::current_exe().expect("the path of this program");
    let programs = [this.clone(), compile(&this)];
    compare(&programs, "trips", 5_000);
    compare(&programs, "messages", 50_000);
}
