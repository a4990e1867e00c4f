//! Integration tests of the plugins: vectors, properties, and peers that send false data, flood and leave.

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
