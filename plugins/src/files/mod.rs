//! File transfer: copies a directory from one peer to another.
//!
//! The [receiver](FileReceiver) requests all data. It thereby controls the rate, and resumes where an earlier
//! transfer stopped. Each file is verified against the SHA-256 in the manifest before it is reported as
//! complete. The application provides its files through a [`Source`] or a [`Store`]. Files that the receiver
//! already has are not sent. For a changed file only a patch is sent if both peers have the older version.
//! `docs/plugins/files.md` describes the messages.
//!
//! ```
//! use rakwire::endpoint::PluginHost;
//! use rakwire::raknet::RakNet;
//! use rakwire_plugins::files::{Entry, FileSender, Source, StorageError, Totals};
//!
//! /// One file in memory.
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
//! // 8 receivers, each with up to 16 open requests; messages of up to 1,024 bytes.
//! let mut sender = FileSender::<RakNet, _, 8, 16, 1_024>::new(Text(b"snow", [7; 32]));
//! sender.serve_all();
//! let mut host = PluginHost::<_, 1>::new();
//! host.attach::<RakNet>(sender)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `plugins/examples/files.rs` shows both sides.

mod outcome;
mod pacer;
mod path;
mod receiver;
mod sender;
mod wire;

pub use self::outcome::{Failure, Progress, Reason, StorageError, Totals};
pub use self::path::{MAX_PATH, check_path};
pub use self::receiver::{
    FileReceiver, Limits, PatchStep, ReceiverEvent, ReceiverStats, Store, TransferInProgress,
};
pub use self::sender::{FileSender, SenderEvent, SenderStats, Source};
pub use self::wire::{
    BASE_LENGTH, DIGEST_LENGTH, Entries, Entry, MIN_BYTES, Page, PageWriter, REPLY_ID, REQUEST_ID, Reply,
    Request,
};
