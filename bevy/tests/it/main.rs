//! A server and clients over loopback, by the checklist of replicon's own backends and beyond it.

mod connections;
mod messages;
mod support;
