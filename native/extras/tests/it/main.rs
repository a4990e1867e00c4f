//! Connections over TCP, port mappings, SQLite logs and crash reports, over loopback.

mod crash_report;
mod port_mapping;
mod sqlite_log;
mod support;
mod tcp;
