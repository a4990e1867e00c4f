//! IO: HTTP and WebSocket on one side, UDP on the other. The logic is in `flow`.

mod admin;
mod app;
mod batch;
mod client;
mod connected;
mod drive;
mod files;
mod front;
mod front_admission;
mod handover;
mod http;
mod list_cache;
mod prober;
mod probes;
mod read_ahead;
mod receive;
mod serve;
mod server_list;
mod source;
mod tcp;
mod udp;
mod websocket;
mod write_deadline;

pub(crate) use admin::serve_admin;
pub(crate) use app::App;
pub(crate) use front::UdpFront;
pub(crate) use front_admission::FrontAdmission;
pub(crate) use http::router;
pub(crate) use probes::PROBES_INTERVAL;
pub(crate) use serve::serve;
