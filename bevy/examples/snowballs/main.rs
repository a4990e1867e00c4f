//! The snowball fight as Bevy entities: a headless server decides, and bots and pages play.
//!
//! ```sh
//! cargo run --release --example snowballs                               # a server and two bots for 20 seconds
//! cargo run --release --example snowballs -- server 0.0.0.0:19133 600   # a server for ten minutes
//! cargo run --release --example snowballs -- client 127.0.0.1:19133 60  # a bot for a minute
//! cargo run --release --example snowballs -- watch 127.0.0.1:19133 60   # prints which way the players walk
//! ```
//!
//! With a key file of `rakwire keygen` behind its seconds, the server admits only secure connections. Its clients need the
//! public key in the same place, and the page in its address: `?key=rakwire-public-key-1:...`.
//!
//! For `wasm32-unknown-unknown` the same program builds as a page, `index.html`, by the commands of the README.

mod game;

#[cfg(not(target_arch = "wasm32"))]
mod bot;
#[cfg(not(target_arch = "wasm32"))]
mod program;
#[cfg(not(target_arch = "wasm32"))]
mod server;

#[cfg(target_arch = "wasm32")]
mod page;

#[cfg(not(target_arch = "wasm32"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    program::main()
}

/// Does nothing: the page calls [`page::play`] when it has an address.
#[cfg(target_arch = "wasm32")]
fn main() {}
