//! IO: HTTP and the transports of clients on one side, UDP on the other. The logic is in `flow`.

mod admin;
#[cfg(unix)]
mod admin_socket;
mod announced;
mod app;
mod batch;
mod catch_up;
mod client;
mod connected;
mod data_channels;
mod drive;
mod files;
mod front;
mod front_admission;
mod front_gate;
mod handover;
mod handshakes;
mod http;
mod list_cache;
#[cfg(test)]
mod narrow_path;
mod observations;
mod open_flows;
mod path_mtu;
mod prober;
mod probes;
mod read_ahead;
mod receive;
mod serve;
mod server_list;
mod session_request;
mod shared_socket;
mod source;
mod target_watch;
mod tcp;
mod transport;
mod transports;
mod udp;
mod udp_error;
mod webtransport;
mod write_deadline;

pub(crate) use admin::serve_admin;
#[cfg(unix)]
pub(crate) use admin::serve_admin_socket;
#[cfg(unix)]
pub(crate) use admin_socket::AdminSocket;
pub(crate) use announced::{Announced, AnnouncedWebRtc};
pub(crate) use app::App;
pub(crate) use data_channels::{DataChannels, run_data_channels};
pub(crate) use front::UdpFront;
pub(crate) use front_admission::FrontAdmission;
pub(crate) use http::router;
pub(crate) use probes::PROBES_INTERVAL;
pub(crate) use serve::serve;
pub(crate) use shared_socket::Beside;
pub(crate) use webtransport::WebTransport;
