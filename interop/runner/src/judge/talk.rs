//! The input of a judge: the task, and the messages of a connection.

use crate::capture::{Capture, End};
use crate::cases::Case;
use crate::dissect::Message;
use rakwire_conformance::wire::id;

/// A case, and the protocol version of the pair.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The case that ran.
    pub case: Case,
    /// The protocol version of both peers.
    pub protocol: u8,
}

/// The messages of a connection, by sender.
#[derive(Debug)]
pub(super) struct Talk<'a> {
    pub(super) capture: &'a Capture,
    /// The negotiated MTU.
    pub(super) mtu: u16,
    pub(super) client: Vec<Message>,
    pub(super) server: Vec<Message>,
}

impl Talk<'_> {
    /// Returns the messages that one side sent.
    pub(super) fn of(&self, end: End) -> &[Message] {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
        }
    }

    /// Returns the message with which a side disconnects.
    pub(super) fn goodbye_of(&self, end: End) -> Option<&Message> {
        self.of(end).iter().find(|message| message.id() == Some(id::DISCONNECTION))
    }

    /// Returns the application messages that one side sent.
    pub(super) fn user(&self, end: End) -> impl Iterator<Item = &Message> {
        self.of(end).iter().filter(|message| message.is_of_an_application())
    }
}
