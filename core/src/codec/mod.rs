//! Encodings for the contents of messages. The protocols know none of them.
//!
//! - [`bits`]: numbers of any width in bytes, in either bit order.
//! - [`rabbit`]: the encoding of the Game Protocol, read without a copy from the pieces that a message lies in.
//! - [`bitstream`]: RakNet's bit stream.
//! - [`aggregate`]: many messages in one, as Minecraft Bedrock sends them.
//! - [`frames`]: messages on a stream of bytes, as RakNet's packetised TCP has them.
//! - [`advertisement`]: what a pong of a Bedrock server carries.

pub mod advertisement;
pub mod aggregate;
pub mod bits;
pub mod bitstream;
pub mod frames;
pub mod rabbit;
