//! The native class behind `rakwire.Connection`.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rakwire_native::endpoint::TryRecvError;
use rakwire_native::{Connection as Driver, Delivery, Direction, Outcome, Receipt, SendError};

use crate::convert::{self, address};
use crate::errors;
use crate::message::{Bytes, Message, delivery};
use crate::operation::Operation;
use crate::runtime::Owned;
use crate::{security, statistics};

/// The length in bytes from which a message is moved to the driver instead of being copied once more.
const LARGE: usize = 64 << 10;

/// A connection. Dropping the last reference closes it.
#[pyclass(frozen, module = "rakwire._native")]
#[derive(Debug)]
pub(crate) struct Connection(Owned<Driver>);

impl Connection {
    pub(crate) fn create(py: Python<'_>, connection: Driver) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, Self(Owned::new(connection)))?.into_any())
    }

    pub(crate) fn driver(&self, py: Python<'_>) -> PyResult<&Driver> {
        self.0.get(py)
    }
}

fn has_no_room(error: SendError) -> bool {
    matches!(error, SendError::QuotaExceeded | SendError::PoolExhausted)
}

fn sent(py: Python<'_>, receipt: Option<Receipt>) -> PyResult<Py<PyAny>> {
    convert::object(py, receipt.map(|receipt| receipt.0))
}

/// Sends without waiting. Also returns the bytes, so that the caller can retry if the send memory is full.
fn send_now<'py>(
    py: Python<'py>,
    connection: &Driver,
    data: Bytes<'py>,
    delivery: Delivery,
) -> (Result<Option<Receipt>, SendError>, Bytes<'py>) {
    if data.as_slice().len() < LARGE {
        let bytes = data.as_slice();
        let result = py.detach(|| connection.try_send(bytes, delivery));
        return (result, data);
    }
    let mut bytes = data.into_vec();
    let result = py.detach(|| connection.try_send_vec(&mut bytes, delivery));
    (result, Bytes::Copied(bytes))
}

#[pymethods]
impl Connection {
    /// Sends a message. Returns the receipt number or None. If the send memory is full, returns an operation that waits
    /// for space.
    fn send(
        &self,
        py: Python<'_>,
        data: Bytes<'_>,
        reliability: u8,
        channel: u8,
        priority: u8,
    ) -> PyResult<Py<PyAny>> {
        let connection = self.driver(py)?;
        let delivery = delivery(reliability, channel, priority)?;
        match send_now(py, connection, data, delivery) {
            (Ok(receipt), _) => sent(py, receipt),
            (Err(error), data) if has_no_room(error) => {
                let (connection, data) = (connection.clone(), data.into_vec());
                let work = async move {
                    let result = connection.send_vec(data, delivery).await;
                    (result, connection)
                };
                let operation = Operation::new(work, |py, (result, connection)| match result {
                    Ok(receipt) => sent(py, receipt),
                    Err(error) => Err(errors::send(py, error, connection.closed_reason())),
                });
                convert::object(py, operation)
            }
            (Err(error), _) => Err(errors::send(py, error, connection.closed_reason())),
        }
    }

    /// Sends a message without waiting. Returns the receipt number or None. Raises NoRoom if the send memory is full.
    fn try_send(
        &self,
        py: Python<'_>,
        data: Bytes<'_>,
        reliability: u8,
        channel: u8,
        priority: u8,
    ) -> PyResult<Option<u32>> {
        let connection = self.driver(py)?;
        let (result, _) = send_now(py, connection, data, delivery(reliability, channel, priority)?);
        let receipt = result.map_err(|error| errors::send(py, error, connection.closed_reason()))?;
        Ok(receipt.map(|receipt| receipt.0))
    }

    /// Returns the next message, or an operation that waits for it.
    fn recv(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let connection = self.driver(py)?;
        match connection.try_recv() {
            Ok(message) => Message::create(py, &message),
            Err(TryRecvError::Closed) => Err(errors::connection_closed(py, connection.closed_reason())),
            Err(TryRecvError::Empty) => {
                let connection = connection.clone();
                let work = async move {
                    let message = connection.recv().await;
                    (message, connection)
                };
                let operation = Operation::new(work, |py, (message, connection)| match message {
                    Some(message) => Message::create(py, &message),
                    None => Err(errors::connection_closed(py, connection.closed_reason())),
                });
                convert::object(py, operation)
            }
        }
    }

    /// Waits for the outcome of a message with a receipt. Returns the receipt number, and true if it was
    /// acknowledged.
    fn recv_receipt(&self, py: Python<'_>) -> PyResult<Operation> {
        let connection = self.driver(py)?.clone();
        let work = async move {
            let outcome = connection.recv_receipt().await;
            (outcome, connection)
        };
        Ok(Operation::new(work, |py, (outcome, connection)| match outcome {
            Some((receipt, outcome)) => convert::object(py, (receipt.0, outcome == Outcome::Acknowledged)),
            None => Err(errors::connection_closed(py, connection.closed_reason())),
        }))
    }

    /// Waits for the progress of a split message. Returns true if the message is outgoing, its number, the number of
    /// finished parts, and the number of all parts.
    fn recv_progress(&self, py: Python<'_>) -> PyResult<Operation> {
        let connection = self.driver(py)?.clone();
        let work = async move {
            let progress = connection.recv_progress().await;
            (progress, connection)
        };
        Ok(Operation::new(work, |py, (progress, connection)| match progress {
            Some(progress) => {
                let is_outgoing = progress.direction == Direction::Sending;
                convert::object(py, (is_outgoing, progress.message, progress.done, progress.parts))
            }
            None => Err(errors::connection_closed(py, connection.closed_reason())),
        }))
    }

    /// Waits for an MTU change. Returns the new MTU.
    fn mtu_changed(&self, py: Python<'_>) -> PyResult<Operation> {
        let connection = self.driver(py)?.clone();
        let work = async move {
            let mtu = connection.mtu_changed().await;
            (mtu, connection)
        };
        Ok(Operation::new(work, |py, (mtu, connection)| match mtu {
            Some(mtu) => convert::object(py, mtu),
            None => Err(errors::connection_closed(py, connection.closed_reason())),
        }))
    }

    /// Waits until the connection is closed. Returns the reason.
    fn wait_closed(&self, py: Python<'_>) -> PyResult<Operation> {
        let connection = self.driver(py)?.clone();
        let work = async move { connection.closed().await };
        Ok(Operation::new(work, |py, reason| convert::object(py, errors::disconnect_reason(reason))))
    }

    /// Closes the connection, optionally after a last message.
    fn disconnect(
        &self,
        py: Python<'_>,
        message: Option<Bytes<'_>>,
        reliability: u8,
        channel: u8,
    ) -> PyResult<Operation> {
        let connection = self.driver(py)?.clone();
        let delivery = delivery(reliability, channel, 2)?;
        let message = message.map(Bytes::into_vec);
        let work = async move {
            let sent = match &message {
                Some(message) => connection.disconnect_with(message, delivery).await,
                None => {
                    connection.disconnect().await;
                    Ok(())
                }
            };
            (sent, connection)
        };
        Ok(Operation::new(work, |py, (sent, connection)| match sent {
            Ok(()) => Ok(py.None()),
            Err(error) => Err(errors::send(py, error, connection.closed_reason())),
        }))
    }

    /// The reason why the connection closed, or None while it is open.
    #[getter]
    fn closed_reason(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(self.driver(py)?.closed_reason().map(errors::disconnect_reason))
    }

    /// The address of the peer.
    #[getter]
    fn remote_address(&self, py: Python<'_>) -> PyResult<(String, u16)> {
        Ok(address(self.driver(py)?.remote()))
    }

    /// The addresses that the peer reports as its own.
    #[getter]
    fn internal_addresses(&self, py: Python<'_>) -> PyResult<Vec<(String, u16)>> {
        Ok(self.driver(py)?.internal_addresses().into_iter().map(address).collect())
    }

    /// The GUID of the peer.
    #[getter]
    fn guid(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.driver(py)?.guid().0)
    }

    /// The maximum message length in bytes, or None once the connection is closed.
    #[getter]
    fn max_message_length(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        Ok(self.driver(py)?.max_message_len())
    }

    /// The MTU in bytes, or None once the connection is closed.
    #[getter]
    fn mtu(&self, py: Python<'_>) -> PyResult<Option<u16>> {
        Ok(self.driver(py)?.mtu())
    }

    /// The smoothed round-trip time in seconds, or None before the first sample and once the connection is
    /// closed.
    #[getter]
    fn round_trip(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.driver(py)?.rtt().map(|time| time.as_secs_f64()))
    }

    /// Sets the timeout of the connection in seconds (`rakwire.Options.timeout`).
    fn set_timeout(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let time = Duration::try_from_secs_f64(seconds).map_err(errors::value)?;
        self.driver(py)?.set_timeout(time).map_err(|error| errors::set(py, error))
    }

    /// Returns the counters of the connection as fields of ConnectionStats, or None once it is closed.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.driver(py)?.stats().map(|stats| statistics::of_connection(py, &stats)).transpose()
    }

    /// Returns the authenticated peer as fields of SecurePeer, or None for an unencrypted connection.
    fn secure_peer<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        security::peer(py, self.driver(py)?)
    }
}
