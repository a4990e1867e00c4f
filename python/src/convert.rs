//! Converts values to Python objects.

use std::net::SocketAddr;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

/// Returns host and port in the format of Python's `socket` module.
pub(crate) fn address(address: SocketAddr) -> (String, u16) {
    let host = match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
        SocketAddr::V4(_) | SocketAddr::V6(_) => address.ip().to_string(),
    };
    (host, address.port())
}

/// Converts a value to a Python object.
pub(crate) fn object<'py, T: IntoPyObjectExt<'py>>(py: Python<'py>, value: T) -> PyResult<Py<PyAny>> {
    value.into_py_any(py)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_format_of_python_sockets() {
        for (text, host) in
            [("192.0.2.1:7", "192.0.2.1"), ("[2001:db8::1]:7", "2001:db8::1"), ("[fe80::1%3]:7", "fe80::1%3")]
        {
            assert_eq!(address(text.parse().expect("an address")), (host.to_owned(), 7));
        }
    }
}
