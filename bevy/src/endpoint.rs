//! The options of an endpoint with its UDP socket.

use std::time::Duration;

use rakwire_native::Options;

/// Sets the acknowledgement delay to 0 for an endpoint that is polled once per frame. The acknowledgements of
/// a frame are sent together anyway, and a delay would postpone them to the next frame.
pub(crate) fn once_a_frame(mut options: Options) -> Options {
    options.config.ack_delay = Duration::ZERO;
    options
}
