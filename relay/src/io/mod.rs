//! Moves the bytes: HTTP and WebSocket on one side, UDP on the other. What they mean is decided in `session`.

mod app;
mod client;
mod drive;
mod http;
mod serve;
mod tcp;
mod udp;
mod websocket;

pub(crate) use app::App;
pub(crate) use http::router;
pub(crate) use serve::serve;
