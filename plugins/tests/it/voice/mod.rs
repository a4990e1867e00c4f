//! Voice: playback over all kinds of networks, hostile peers, and the example.

mod hostile;
mod opus;
mod simulated;
mod vectors;

#[path = "../../../examples/voice.rs"]
mod example;

#[test]
fn a_tone_is_received_over_udp_sockets() {
    example::main().expect("the tone is received");
}
