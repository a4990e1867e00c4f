//! Received messages, and conversions of bytes and delivery arguments from Python.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString};
use rakwire_native::{Channel, Delivery, Message as Received, Priority, Reliability};

/// A received message.
#[pyclass(frozen, module = "rakwire", name = "Message")]
#[derive(Debug)]
pub(crate) struct Message {
    /// The bytes of the message. The first byte is the message id.
    #[pyo3(get)]
    data: Py<PyBytes>,
    delivery: Delivery,
}

impl Message {
    pub(crate) fn create(py: Python<'_>, message: &Received) -> PyResult<Py<PyAny>> {
        let data = PyBytes::new(py, &message.bytes).unbind();
        Ok(Py::new(py, Self { data, delivery: message.delivery })?.into_any())
    }
}

/// Returns the member of `rakwire.Reliability` with this value.
fn member<'py>(py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
    static MEMBERS: PyOnceLock<Py<PyList>> = PyOnceLock::new();
    let members = MEMBERS.get_or_try_init(py, || {
        let class = py.import("rakwire._types")?.getattr("Reliability")?;
        let members: Vec<_> = class.try_iter()?.collect::<PyResult<_>>()?;
        Ok::<_, PyErr>(PyList::new(py, members)?.unbind())
    })?;
    members.bind(py).get_item(number)
}

#[pymethods]
impl Message {
    /// The reliability with which the message was sent.
    #[getter]
    fn reliability<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        member(py, self.delivery.reliability as usize)
    }

    /// The ordering channel of the message, 0 to 31.
    #[getter]
    const fn channel(&self) -> u8 {
        self.delivery.channel.number()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let data = self.data.bind(py).repr()?;
        let reliability = self.reliability(py)?.getattr(intern!(py, "name"))?;
        Ok(format!("Message(data={data}, reliability={reliability}, channel={})", self.channel()))
    }
}

/// The bytes in a Python argument.
#[derive(Debug)]
pub(crate) enum Bytes<'py> {
    /// Borrowed from an immutable object.
    Lent(Bound<'py, PyBytes>),
    Copied(Vec<u8>),
}

impl Bytes<'_> {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes.as_bytes(),
            Self::Copied(bytes) => bytes,
        }
    }

    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self {
            Self::Lent(bytes) => bytes.as_bytes().to_vec(),
            Self::Copied(bytes) => bytes,
        }
    }
}

/// Accepts bytes, a bytearray, or another object with the buffer protocol. Such an object is copied through a
/// memoryview, because Python's stable ABI has no buffer protocol before 3.11.
impl<'a, 'py> FromPyObject<'a, 'py> for Bytes<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Lent(bytes.to_owned()));
        }
        if let Ok(bytes) = object.cast::<PyByteArray>() {
            return Ok(Self::Copied(bytes.to_vec()));
        }
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(
                "data must be bytes, not a str: write b\"...\", or call encode()",
            ));
        }
        let Ok(view) = PyMemoryView::from(&object) else {
            let class = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "data must be bytes, a bytearray or a memoryview, not {class}"
            )));
        };
        let bytes = view.call_method0(intern!(object.py(), "tobytes"))?;
        Ok(Self::Lent(bytes.cast_into::<PyBytes>()?))
    }
}

/// Converts the delivery arguments of a send function, and checks their ranges.
pub(crate) fn delivery(reliability: u8, channel: u8, priority: u8) -> PyResult<Delivery> {
    let reliability = Reliability::from_number(reliability).ok_or_else(|| {
        PyValueError::new_err("reliability must be a member of rakwire.Reliability, 0 to 7")
    })?;
    let priority = Priority::from_number(priority)
        .ok_or_else(|| PyValueError::new_err("priority must be a member of rakwire.Priority, 0 to 3"))?;
    let channel = Channel::new(channel).ok_or_else(|| PyValueError::new_err("channel must be 0 to 31"))?;
    Ok(Delivery::new(reliability).on(channel).with_priority(priority))
}
