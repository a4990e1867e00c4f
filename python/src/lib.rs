//! The extension module `rakwire._native`, on which the Python package `rakwire` is built.
//!
//! These classes are thin. The package in `src-python` defines public names, defaults and types; `README.md` describes
//! it.

mod bell;
mod connection;
mod convert;
mod endpoint;
mod errors;
mod message;
mod operation;
mod options;
mod runtime;
mod security;
mod statistics;

use pyo3::prelude::*;

/// The native part of the package.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::connection::Connection;
    #[pymodule_export]
    use super::endpoint::{Endpoint, Incoming};
    #[pymodule_export]
    use super::message::Message;
    #[pymodule_export]
    use super::operation::{Bridge, Operation, Watch};
    #[pymodule_export]
    use super::runtime::after_fork_in_child;
    #[pymodule_export]
    use super::security::{SecretKey, TokenKey, create_token};

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
