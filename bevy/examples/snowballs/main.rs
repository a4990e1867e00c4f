//! The snowball fight as Bevy entities: a headless server runs the game, and bots and browser pages play it.
//!
//! ```sh
//! cargo run --release --example snowballs                               # a server and two bots for 20 seconds
//! cargo run --release --example snowballs -- server 0.0.0.0:19133 600   # a server for ten minutes
//! cargo run --release --example snowballs -- client 127.0.0.1:19133 60  # a bot for a minute
//! cargo run --release --example snowballs -- watch 127.0.0.1:19133 60   # prints the directions of the players
//! ```
//!
//! For secure connections only, pass the server a key file of `rakwire keygen` as its last argument. Clients then need
//! the public key as their last argument, and the page in its URL: `?key=rakwire-public-key-1:...`.
//!
//! The README shows how to build the same program for `wasm32-unknown-unknown`, as the page `index.html`.

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
