//! Connections over TCP, routers, logs and reports, over loopback.

mod crash_report;
mod port_mapping;
mod sqlite_log;
mod support;
mod tcp;
