//! Converts errors of the driver to exceptions of the Python module `rakwire._errors`.

use std::net::SocketAddr;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use rakwire_native::raknet::Refusal;
use rakwire_native::rakwire::endpoint::RefuseReason;
use rakwire_native::{
    BanListFull, BindError, ConnectError, ConnectFailure, DisconnectReason, OutOfBandError, PingError,
    SendError, SetError,
};

/// Creates an exception of a class in `rakwire._errors`.
pub(crate) fn new<'py, A>(py: Python<'py>, class: &str, arguments: A) -> PyErr
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    A::Error: Into<PyErr>,
{
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let create = || {
        let module = MODULE.get_or_try_init(py, || py.import("rakwire._errors").map(Bound::unbind))?;
        let arguments = arguments.into_pyobject(py).map_err(Into::into)?;
        module.bind(py).getattr(class)?.call1(arguments)
    };
    create().map_or_else(|error: PyErr| error, PyErr::from_value)
}

pub(crate) fn value(text: impl ToString) -> PyErr {
    PyValueError::new_err(text.to_string())
}

pub(crate) fn bind(py: Python<'_>, address: &str, error: &BindError) -> PyErr {
    let (text, number) = match error {
        BindError::Resolve(source) => {
            (format!("cannot resolve {address:?}: {source}"), source.raw_os_error())
        }
        BindError::Socket { source, .. } => (error.to_string(), source.raw_os_error()),
        BindError::NoAddress | _ => (format!("{address:?}: {error}"), None),
    };
    new(py, "BindError", (number, text))
}

pub(crate) fn system(error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    }
}

pub(crate) fn resolve(py: Python<'_>, target: &str, error: &std::io::Error) -> PyErr {
    let text = format!("cannot resolve {target:?}: {error}; write it as \"host:port\"");
    new(py, "ConnectError", (text, "unresolved"))
}

pub(crate) fn endpoint_closed(py: Python<'_>) -> PyErr {
    new(py, "EndpointClosed", ("the endpoint is closed; bind another one",))
}

pub(crate) fn connection_closed(py: Python<'_>, reason: Option<DisconnectReason>) -> PyErr {
    let text = reason.map_or_else(|| "the connection is closing".to_owned(), |reason| reason.to_string());
    new(py, "ConnectionClosed", (text, reason.map(disconnect_reason)))
}

pub(crate) fn send(py: Python<'_>, error: SendError, reason: Option<DisconnectReason>) -> PyErr {
    match error {
        SendError::NotConnected => connection_closed(py, reason),
        SendError::QuotaExceeded | SendError::PoolExhausted => new(py, "NoRoom", (error.to_string(),)),
        SendError::ReservedId => {
            new(py, "MessageError", (format!("{error}; use 0x86 to 0xFF as the first byte"),))
        }
        SendError::Empty
        | SendError::TooLong
        | SendError::NeverFits
        | SendError::FeatureDisabled
        | SendError::Filtered
        | _ => new(py, "MessageError", (error.to_string(),)),
    }
}

/// Returns the exception for a failed attempt to connect to `target`.
pub(crate) fn connect(py: Python<'_>, target: &str, error: ConnectError) -> PyErr {
    let reason = match error {
        ConnectError::EndpointClosed => return endpoint_closed(py),
        ConnectError::AlreadyConnected => "connected-already",
        ConnectError::Full => "endpoint-full",
        ConnectError::AddressFamily => "address-family",
        ConnectError::UnassignedAddress => "unresolved",
        ConnectError::Disconnected => "closed",
        ConnectError::Failed(failure) => connect_failure(failure),
        ConnectError::InvalidMtu | ConnectError::PasswordTooLong => return value(error),
        ConnectError::NoSecurity | ConnectError::IdentityWithoutTrust | ConnectError::InvalidIdentityData => {
            return value(error);
        }
        _ => "other",
    };
    new(py, "ConnectError", (format!("cannot connect to {target}: {error}"), reason))
}

const fn connect_failure(failure: ConnectFailure) -> &'static str {
    match failure {
        ConnectFailure::NoAnswer => "no-answer",
        ConnectFailure::Unreachable => "unreachable",
        ConnectFailure::HandshakeTimeout => "handshake-timeout",
        ConnectFailure::Refused(refusal) => self::refusal(refusal),
        ConnectFailure::IncompatibleProtocol { .. } | ConnectFailure::NoAnswerAfterIncompatible { .. } => {
            "protocol-version"
        }
        ConnectFailure::SecurityRequired => "security-required",
        ConnectFailure::ServerWithoutSecurity => "server-without-security",
        ConnectFailure::IdentityRequired => "identity-required",
        ConnectFailure::InvalidIdentity => "invalid-identity",
        ConnectFailure::PublicKeyMismatch => "public-key-mismatch",
        ConnectFailure::InvalidPassword => "invalid-password",
        ConnectFailure::Closed => "closed",
        ConnectFailure::Cancelled => "cancelled",
        _ => "other",
    }
}

const fn refusal(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::AttemptFailed => "attempt-failed",
        Refusal::AlreadyConnected => "connected-already",
        Refusal::NoFreeIncomingConnections => "server-full",
        Refusal::Banned => "banned",
        Refusal::RecentlyConnected => "recently-connected",
    }
}

pub(crate) const fn disconnect_reason(reason: DisconnectReason) -> &'static str {
    match reason {
        DisconnectReason::Local => "local",
        DisconnectReason::Remote => "remote",
        DisconnectReason::Lost => "lost",
        DisconnectReason::MessageTooLarge => "message-too-large",
        DisconnectReason::SentTooLarge => "sent-too-large",
        DisconnectReason::PathTooNarrow => "path-too-narrow",
        DisconnectReason::ReceiveMemory => "receive-memory",
        _ => "other",
    }
}

pub(crate) const fn refuse_reason(reason: RefuseReason) -> &'static str {
    match reason {
        RefuseReason::WrongPassword => "wrong-password",
        RefuseReason::NoIdentity => "no-identity",
        RefuseReason::InvalidIdentity => "invalid-identity",
        RefuseReason::NoToken => "no-token",
        RefuseReason::TokenExpired => "token-expired",
        RefuseReason::TokenForOtherServer => "token-for-other-server",
        RefuseReason::TokenOfOtherClient => "token-of-other-client",
        RefuseReason::TokenUsed => "token-used",
        RefuseReason::TokenStoreFull => "token-store-full",
        _ => "other",
    }
}

pub(crate) fn ping(py: Python<'_>, target: SocketAddr, error: PingError) -> PyErr {
    let reason = match error {
        PingError::EndpointClosed => return endpoint_closed(py),
        PingError::NoAnswer => "no-answer",
        PingError::Unreachable => "unreachable",
        PingError::TooMany => "too-many",
        PingError::AddressFamily => "address-family",
        _ => "other",
    };
    new(py, "PingError", (format!("cannot ping {target}: {error}"), reason))
}

pub(crate) fn out_of_band(py: Python<'_>, error: OutOfBandError) -> PyErr {
    match error {
        OutOfBandError::EndpointClosed => endpoint_closed(py),
        OutOfBandError::BadLength | OutOfBandError::AddressFamily | _ => {
            new(py, "MessageError", (error.to_string(),))
        }
    }
}

pub(crate) fn set(py: Python<'_>, error: SetError) -> PyErr {
    match error {
        SetError::NoConnection => connection_closed(py, None),
        SetError::AdvertisementTooLong
        | SetError::PasswordTooLong
        | SetError::TooManyAddresses
        | SetError::NoMemory
        | _ => value(error),
    }
}

pub(crate) fn ban(py: Python<'_>, error: BanListFull) -> PyErr {
    new(py, "RakwireError", (error.to_string(),))
}
