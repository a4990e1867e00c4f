//! Endpoints over loopback, of both protocols.

mod crash_report;
mod endpoint;
mod game_protocol;
mod polled;
mod port_mapping;
mod raknet;
mod reconnect;
mod sqlite_log;
mod support;
mod tcp;
