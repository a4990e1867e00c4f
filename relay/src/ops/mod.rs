//! What an operator needs beside the relay itself: metrics, health, logs, and the service manager.

mod addresses;
mod admin;
mod control;
mod log;
mod metrics;
mod refusals;
pub mod systemd;
mod total_log;

pub(crate) use self::addresses::AddressLog;
pub(crate) use self::admin::{Health, Reloading, admin_router};
pub(crate) use self::control::{Control, control_router};
pub(crate) use self::log::report_missing;
#[cfg(test)]
pub(crate) use self::log::written::Lines;
pub use self::log::{LogError, start_logging};
pub(crate) use self::metrics::{Gauges, TargetHealth, render as render_metrics};
pub(crate) use self::refusals::RefusalLog;
pub(crate) use self::total_log::{INTERVAL as TOTAL_LOG_INTERVAL, TotalLog};
