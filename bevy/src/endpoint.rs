//! The endpoint with its UDP socket, and its connections.

use std::time::Duration;

use rakwire::endpoint::SendError;
use rakwire_native::raknet::ConnectionId;
use rakwire_native::{ConnectionStats, Delivery, Options, RakNet, Receipt, polled};

use crate::outbox::Link;

/// Sets the acknowledgement delay to 0 for an endpoint that is polled once per frame. The acknowledgements of
/// a frame are sent together anyway, and a delay would postpone them to the next frame.
pub(crate) fn once_a_frame(mut options: Options) -> Options {
    options.config.ack_delay = Duration::ZERO;
    options
}

/// One connection of an endpoint.
pub(crate) struct Connection<'e> {
    pub(crate) endpoint: &'e mut polled::Endpoint<RakNet>,
    pub(crate) id: ConnectionId,
}

impl Link for Connection<'_> {
    fn send(&mut self, message: &mut Vec<u8>, delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        self.endpoint.send_vec(self.id, message, delivery)
    }

    fn stats(&mut self) -> Option<ConnectionStats> {
        self.endpoint.peer().connection_stats(self.id)
    }

    fn disconnect(&mut self) {
        self.endpoint.disconnect(self.id);
    }
}
