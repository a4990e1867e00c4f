//! Voice: what is heard over which network, peers that send what they like, and the example.

mod hostile;
mod opus;
mod simulated;
mod vectors;

#[path = "../../../examples/voice.rs"]
mod example;

#[test]
fn a_tone_is_heard_over_real_sockets() {
    example::main().expect("it is heard");
}
