//! IO: HTTP and WebSocket on one side, UDP on the other. The logic is in `flow`.

mod admin;
mod app;
mod batch;
mod client;
mod connected;
mod drive;
mod files;
mod front;
mod handover;
mod http;
mod prober;
mod probes;
mod serve;
mod tcp;
mod udp;
mod websocket;
mod write_deadline;

pub(crate) use admin::serve_admin;
pub(crate) use app::App;
pub(crate) use client::payload_max;
pub(crate) use front::UdpFront;
pub(crate) use http::router;
pub(crate) use probes::PROBES_INTERVAL;
pub(crate) use serve::serve;
