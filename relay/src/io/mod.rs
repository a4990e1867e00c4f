//! IO: HTTP and the transports of clients on one side, UDP on the other. The logic is in `flow`.

mod app;
mod batch;
mod client;
mod data_channels;
mod drive;
mod front;
mod front_admission;
mod health;
mod http;
mod open_flows;
mod probes;
mod quic;
mod serve;
mod tcp;
mod transport;
mod udp;
mod webtransport;

pub(crate) use app::{Announced, AnnouncedWebRtc, App};
pub(crate) use data_channels::{DataChannels, run_data_channels};
pub(crate) use front::UdpFront;
pub(crate) use front_admission::FrontAdmission;
pub(crate) use http::router;
pub(crate) use probes::PROBES_INTERVAL;
pub(crate) use quic::Beside;
#[cfg(unix)]
pub(crate) use serve::{AdminSocket, serve_admin_socket};
pub(crate) use serve::{serve, serve_admin};
pub(crate) use webtransport::WebTransport;
