//! File transfer: a directory of one peer, as another peer has it afterwards.
//!
//! The [receiver](FileReceiver) asks for everything, and so decides how fast it comes and goes on where an earlier transfer has
//! ended. Each file is checked against the SHA-256 in the manifest before the application is told that it is complete. Files
//! are reached by the application's [`Source`] and [`Store`]; whole files that are here already are not sent again, and of one
//! that has changed only a patch is, if both have the older version.
//! `docs/plugins/files.md` has the messages.
//!
//! ```
//! use rakwire::endpoint::PluginHost;
//! use rakwire::raknet::RakNet;
//! use rakwire_plugins::files::{Entry, FileSender, Source, StorageError, Totals};
//!
//! /// One file that is in memory.
//! struct Text(&'static [u8], [u8; 32]);
//!
//! impl Source for Text {
//!     fn totals(&self) -> Totals {
//!         Totals { files: 1, bytes: self.0.len() as u64 }
//!     }
//!
//!     fn entry(&self, file: u32) -> Option<Entry<'_>> {
//!         (file == 0).then_some(Entry { path: b"text.txt", size: self.0.len() as u64, digest: self.1 })
//!     }
//!
//!     fn read(&mut self, _file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
//!         let begin = usize::try_from(offset).map_err(|_| StorageError)?;
//!         let bytes = self.0.get(begin..begin + buffer.len()).ok_or(StorageError)?;
//!         buffer.copy_from_slice(bytes);
//!         Ok(())
//!     }
//! }
//!
//! // 8 receivers, each with up to 16 requests under way; messages of up to 1,024 bytes.
//! let mut sender = FileSender::<RakNet, _, 8, 16, 1_024>::new(Text(b"snow", [7; 32]));
//! sender.serve_all();
//! let mut host = PluginHost::<_, 1>::new();
//! host.attach::<RakNet>(sender)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `plugins/examples/files.rs` has both sides.

mod outcome;
mod pacer;
mod path;
mod receiver;
mod sender;
mod wire;

pub use self::outcome::{Failure, Progress, Reason, StorageError, Totals};
pub use self::path::{MAX_PATH, check_path};
pub use self::receiver::{
    FileReceiver, Limits, PatchStep, ReceiverEvent, ReceiverStats, Store, TransferUnderWay,
};
pub use self::sender::{FileSender, SenderEvent, SenderStats, Source};
pub use self::wire::{
    BASE_LENGTH, DIGEST_LENGTH, Entries, Entry, MIN_BYTES, Page, PageWriter, REPLY_ID, REQUEST_ID, Reply,
    Request,
};
