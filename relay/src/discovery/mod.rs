//! Game servers that announce themselves in Redis or Valkey, so that many relays find them.
//!
//! An announcement is a key `rakwire:server:NAME` whose value is a JSON object, with a time to live: a server that ends
//! without a word is forgotten soon.
//!
//! ```text
//! SET rakwire:server:arena-3 '{"address":"10.0.0.7:19132","kind":"raknet"}' EX 15
//! ```

mod announcement;
mod connect;
mod error;
mod store;
mod watch;

pub use announcement::{Announcement, AnnouncementError};
pub use error::DiscoveryError;
pub use store::{Announced, Store};
pub(crate) use watch::Watcher;
