//! Our endpoint and the relay with RakNets and other programs that nobody here wrote.

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
