//! Messages over TCP: RakNet's `PacketizedTCP`, for networks that block UDP.
//!
//! A [`Connection`] is a socket of embassy-net in borrowed [`Memory`]. It has no task of its own: the task that sends
//! and receives drives it, or two tasks after [`split`](Connection::split). Everything arrives in order, so a lost
//! packet delays those after it. There is no TLS. The wire format is that of [`rakwire::codec::frames`]: each message
//! follows its length.
//!
//! ```
//! use embassy_futures::join::join;
//! use rakwire::raknet::Delivery;
//! use rakwire_embassy::tcp::{Connection, Memory};
//! use static_cell::ConstStaticCell;
//!
//! // A receive window of 1,024 bytes, a send buffer of 512, and messages of at most 256.
//! static HERE: ConstStaticCell<Memory<1_024, 512, 256>> = ConstStaticCell::new(Memory::new());
//! static THERE: ConstStaticCell<Memory<1_024, 512, 256>> = ConstStaticCell::new(Memory::new());
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
//! let accept = Connection::accept(stack, THERE.take(), loopback::SERVER.port());
//! let (here, there) = join(Connection::connect(stack, HERE.take(), loopback::SERVER), accept).await;
//! let (mut here, mut there) = (here?, there?);
//!
//! here.send(b"\xFEhello", Delivery::RELIABLE_ORDERED).await?;
//! assert_eq!(there.recv().await, Some(&b"\xFEhello"[..]));
//! join(here.disconnect(), async { assert!(there.recv().await.is_none()) }).await;
//! # Ok(()) }) }
//! ```

mod connection;
mod error;
mod halves;

pub use self::connection::{Connection, Memory};
pub use self::error::{AcceptError, ConnectError, DisconnectReason};
pub use self::halves::{Receiver, Sender};
