//! Endpoint options for a UDP socket that is polled once per frame.

use std::time::Duration;

use rakwire_native::Options;

/// Sets the acknowledgement delay to 0 for an endpoint that is polled once per frame. All acknowledgements of a frame
/// are already sent together at its end. A delay would only postpone them to the next frame.
pub(crate) fn once_a_frame(mut options: Options) -> Options {
    options.config.ack_delay = Duration::ZERO;
    options
}
