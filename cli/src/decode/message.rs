//! Messages inside a connection with a layout defined by RakNet.

use rakwire::wire::control::Control;
use rakwire::wire::id::{self, MessageScope};
use rakwire::wire::notice::Notice;
use rakwire::wire::{SecuritySizes, Source, Wire};

use super::fields::{Field, Malformed, Recorder};

/// The length in bits to which C++ RakNet truncates `REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY`.
const TRUNCATED_BITS: u16 = 2;

/// A message with a known layout.
#[derive(Debug)]
pub(crate) struct Inner<'a> {
    pub(crate) kind: &'static str,
    pub(crate) fields: Vec<Field<'a>>,
}

impl<'a> Inner<'a> {
    /// Decodes the message at `offset` of the datagram, from a capsule of `bits` bits. Returns `None` for messages of
    /// applications, which have an unknown layout.
    pub(crate) fn read(
        bytes: &'a [u8],
        offset: usize,
        bits: Option<u16>,
        sizes: &SecuritySizes,
    ) -> Option<(Self, Option<Malformed>)> {
        let first = *bytes.first()?;
        let mut source = Recorder::new(bytes, offset);
        let mut kind = id::name(first);
        let read = match first {
            _ if bits == Some(TRUNCATED_BITS) => {
                kind = id::name(id::REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY);
                Control::read_bits(&mut source, TRUNCATED_BITS).map(drop)
            }
            id::TIMESTAMP
            | id::ADVERTISE_SYSTEM
            | id::REMOTE_DISCONNECTION_NOTIFICATION
            | id::REMOTE_CONNECTION_LOST
            | id::REMOTE_NEW_INCOMING_CONNECTION => Notice::read(&mut source).map(drop),
            _ if id::scope(first) == MessageScope::Application => return None,
            // Other messages are not valid inside a connection; the parser returns the error.
            _ => Control::read_with(&mut source, sizes).map(drop),
        };
        let error = read.err().map(|error| source.locate(error));
        if error.is_none() && source.remaining() > 0 {
            source.rest("bytes after the message");
        }
        Some((Self { kind, fields: source.fields() }, error))
    }
}
