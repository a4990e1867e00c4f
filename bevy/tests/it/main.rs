//! Tests of a server and clients over loopback, based on the checklist of replicon's own backends.

mod connections;
mod messages;
mod support;
