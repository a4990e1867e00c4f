//! What a target that knows its protocol decides about datagrams.

use std::fmt;
use std::time::Instant;

use bytes::Bytes;

use super::counters::DropReason;
use crate::protocol::ProtocolKind;

/// What happens to a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It passes as it is.
    Pass,
    /// This passes in its place.
    Replace(Bytes),
    /// It goes no further, and its sender gets this answer at once.
    Answer(Bytes),
    /// It is dropped and counted.
    Drop(DropReason),
    /// It begins a handshake of another protocol than the target's, which is this one: the flow ends.
    WrongProtocol(ProtocolKind),
}

/// Decides about each datagram of one flow. A flow without it passes everything.
pub trait Inspect: Send + fmt::Debug {
    /// A datagram of the client.
    fn to_server(&mut self, now: Instant, datagram: &[u8]) -> Verdict;

    /// A datagram of the game server.
    fn to_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict;

    /// Whether a datagram of the client begins a connection.
    fn begins_connection(&self, datagram: &[u8]) -> bool;

    /// What tells the game server that the client has gone, if the protocol has something for that.
    fn parting(&self) -> Option<Bytes>;

    /// The transport of the client carries datagrams of so many bytes in one piece from now on; `None` is any.
    fn set_carried(&mut self, longest: Option<usize>);
}
