//! Integration tests of the plugins: wire vectors, properties, and hostile peers.

mod calls;
mod examples;
mod files;
mod mesh;
mod nat;
mod ready;
mod registry;
mod replication;
mod rpc4;
mod support;
mod tcp;
mod voice;
