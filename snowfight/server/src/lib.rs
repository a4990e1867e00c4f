//! The snowball fight over UDP. [`Host`] is the server: one world for players of the Game Protocol and of RakNet.
//! [`Player`] is a player without a display. The rules and both state machines are in the crate `snowfight`; this crate
//! adds sockets and a clock.
//!
//! ```
//! use snowfight::client::Input;
//! use snowfight::message::{Direction, Scope};
//! use snowfight_server::{Host, Options, Player, Protocol};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Host::bind(&Options::on_loopback()).await?;
//! let address = host.address(Protocol::GameProtocol);
//! let server = tokio::spawn(host.run());
//!
//! let mut player = Player::join(address, Protocol::GameProtocol, Scope::Whole).await?;
//! let north = Input { movement: Direction::NORTH, ..Input::default() };
//! let before = player.me().ok_or("no player")?.position;
//! while player.me().is_some_and(|me| me.position.y < before.y + 0.5) {
//!     player.frame(north).await?;
//! }
//! assert!(player.me().is_some(), "the player must still be in the game");
//! server.abort();
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod bots;
mod connection;
mod host;
mod key;
mod meter;
mod player;
pub mod program;
mod replication;

pub use connection::{ConnectError, Protocol};
pub use host::{Host, Options, OptionsError};
pub use meter::{Meter, Report};
pub use player::{Player, PlayerError};
