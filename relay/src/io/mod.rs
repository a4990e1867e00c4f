//! IO: HTTP and WebSocket on one side, UDP on the other. The logic is in `flow`.

mod app;
mod batch;
mod client;
mod drive;
mod files;
mod front;
mod handover;
mod http;
mod prober;
mod serve;
mod tcp;
mod udp;
mod websocket;

pub(crate) use app::App;
pub(crate) use http::router;
pub(crate) use serve::serve;
