//! Our endpoint and the relay with independent RakNet implementations and other programs.

mod dial;
mod matrix;
mod peers;
mod plugins;
mod registry;
mod relay;
mod secure;
mod secure_cpp;
mod support;
mod tcp;
mod wireshark;
