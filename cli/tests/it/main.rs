//! End-to-end tests of the program `rakwire`.

mod both_families;
mod commands;
#[cfg(unix)]
mod conformance;
mod decode;
mod facilitator;
mod forwarding;
mod key_log;
#[cfg(target_os = "linux")]
mod links;
mod log;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod narrow_paths;
#[cfg(target_os = "linux")]
mod outputs;
mod path;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod routers;
mod support;
mod tcp;
mod transfer;
mod versions;
