//! The native classes behind `rakwire.Endpoint` and `rakwire.Incoming`.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use rakwire_native::{AddressPattern, Endpoint as Driver, Guid, PingScope, Pong, UnconnectedKind, lookup};

use crate::connection::Connection;
use crate::convert::{self, address};
use crate::errors;
use crate::message::{Bytes, delivery};
use crate::operation::Operation;
use crate::options::{BindOptions, ConnectArguments, Failure, seconds};
use crate::runtime::{self, Owned};
use crate::statistics;

/// A UDP socket and its connections.
#[pyclass(frozen, module = "rakwire._native")]
#[derive(Debug)]
pub(crate) struct Endpoint(Owned<Driver>);

/// Resolves `host:port`, and returns the first address.
async fn first_address(target: &str) -> io::Result<SocketAddr> {
    let missing = || io::Error::other("the host name has no address");
    lookup(target).await?.first().copied().ok_or_else(missing)
}

/// Returns the fields of a pong: host, port, GUID, latency in seconds, advertisement.
fn pong<'py>(py: Python<'py>, pong: &Pong) -> PyResult<Bound<'py, PyTuple>> {
    let (host, port) = address(pong.from);
    let data = PyBytes::new(py, &pong.data);
    (host, port, pong.identity.0, pong.latency.as_secs_f64(), data).into_pyobject(py)
}

#[pymethods]
impl Endpoint {
    /// Binds a socket.
    #[staticmethod]
    fn bind(py: Python<'_>, target: String, options: BindOptions<'_>) -> PyResult<Operation> {
        let settings = options.read()?;
        let (password, advertisement) = (options.password.into_vec(), options.advertisement.into_vec());
        runtime::handle(py)?;
        let work = async move {
            let addresses = lookup(&target).await.map_err(rakwire_native::BindError::Resolve);
            let bound = match addresses {
                Ok(addresses) => Driver::bind(&addresses[..], settings).await,
                Err(error) => Err(error),
            };
            (bound, target)
        };
        Ok(Operation::new(work, move |py, (bound, target)| {
            let endpoint = bound.map_err(|error| errors::bind(py, &target, &error))?;
            endpoint.set_password(&password).map_err(|error| errors::set(py, error))?;
            endpoint.set_advertisement(&advertisement).map_err(|error| errors::set(py, error))?;
            convert::object(py, Self(Owned::new(endpoint)))
        }))
    }

    /// The local address of the socket.
    #[getter]
    fn local_address(&self, py: Python<'_>) -> PyResult<(String, u16)> {
        Ok(address(self.0.get(py)?.local_addr()))
    }

    /// The GUID of the endpoint.
    #[getter]
    fn guid(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.get(py)?.guid().0)
    }

    /// Opens a connection. Without a target, connects to the servers in the connect token.
    fn connect(
        &self,
        py: Python<'_>,
        target: Option<String>,
        arguments: ConnectArguments<'_>,
    ) -> PyResult<Operation> {
        let (endpoint, attempt) = (self.0.get(py)?.clone(), arguments.read()?);
        let work = async move { attempt.run(&endpoint, target.as_deref()).await };
        Ok(Operation::new(work, |py, result| match result {
            Ok(connection) => Connection::create(py, connection),
            Err((target, Failure::Resolve(error))) => Err(errors::resolve(py, &target, &error)),
            Err((target, Failure::Connect(error))) => Err(errors::connect(py, &target, error)),
        }))
    }

    /// Waits for the next incoming connection.
    fn accept(&self, py: Python<'_>) -> PyResult<Operation> {
        let endpoint = self.0.get(py)?.clone();
        let work = async move { endpoint.accept().await };
        Ok(Operation::new(work, |py, accepted| match accepted {
            Some(connection) => Connection::create(py, connection),
            None => Err(errors::endpoint_closed(py)),
        }))
    }

    /// Waits for the next client that requests a connection, if new clients are deferred.
    fn incoming(&self, py: Python<'_>) -> PyResult<Operation> {
        let endpoint = self.0.get(py)?.clone();
        let work = async move { endpoint.incoming().await };
        Ok(Operation::new(work, |py, incoming| match incoming {
            Some(client) => convert::object(py, Incoming::new(client)),
            None => Err(errors::endpoint_closed(py)),
        }))
    }

    /// Waits for the next refused client. Returns host, port, GUID, reason, and true if the address is
    /// validated.
    fn refused_client(&self, py: Python<'_>) -> PyResult<Operation> {
        let endpoint = self.0.get(py)?.clone();
        let work = async move { endpoint.refused_client().await };
        Ok(Operation::new(work, |py, refused| {
            let client = refused.ok_or_else(|| errors::endpoint_closed(py))?;
            let (host, port) = address(client.remote);
            let Guid(guid) = client.identity;
            convert::object(py, (host, port, guid, errors::refuse_reason(client.reason), client.is_validated))
        }))
    }

    /// Pings a server.
    fn ping(&self, py: Python<'_>, target: String, timeout: f64) -> PyResult<Operation> {
        let (endpoint, timeout) = (self.0.get(py)?.clone(), seconds(timeout)?);
        let work = async move {
            let result = match first_address(&target).await {
                Ok(to) => Ok((to, endpoint.ping(to, timeout).await)),
                Err(error) => Err(error),
            };
            (target, result)
        };
        Ok(Operation::new(work, |py, (target, result)| match result {
            Ok((_, Ok(answer))) => convert::object(py, pong(py, &answer)?),
            Ok((to, Err(error))) => Err(errors::ping(py, to, error)),
            Err(error) => Err(errors::resolve(py, &target, &error)),
        }))
    }

    /// Broadcasts a ping, and collects the pongs of servers for `duration` seconds.
    fn discover(
        &self,
        py: Python<'_>,
        target: String,
        only_open: bool,
        duration: f64,
    ) -> PyResult<Operation> {
        let (endpoint, duration) = (self.0.get(py)?.clone(), seconds(duration)?);
        let scope = if only_open { PingScope::OpenConnections } else { PingScope::Any };
        let work = async move {
            let result = match first_address(&target).await {
                Ok(to) => Ok((to, endpoint.discover(to, scope, duration).await)),
                Err(error) => Err(error),
            };
            (target, result)
        };
        Ok(Operation::new(work, |py, (target, result)| match result {
            Ok((_, Ok(found))) => {
                let found = found.iter().map(|answer| pong(py, answer)).collect::<PyResult<Vec<_>>>()?;
                convert::object(py, found)
            }
            Ok((to, Err(error))) => Err(errors::ping(py, to, error)),
            Err(error) => Err(errors::resolve(py, &target, &error)),
        }))
    }

    /// Sets the data that this endpoint sends in its pongs.
    fn set_advertisement(&self, py: Python<'_>, data: Bytes<'_>) -> PyResult<()> {
        self.0.get(py)?.set_advertisement(data.as_slice()).map_err(|error| errors::set(py, error))
    }

    /// Sets the password that new clients must send.
    fn set_password(&self, py: Python<'_>, password: Bytes<'_>) -> PyResult<()> {
        self.0.get(py)?.set_password(password.as_slice()).map_err(|error| errors::set(py, error))
    }

    /// Bans addresses for `time` seconds, or permanently if it is None.
    fn ban(&self, py: Python<'_>, pattern: &str, time: Option<f64>) -> PyResult<()> {
        let time = time.map(seconds).transpose()?;
        self.0.get(py)?.ban(self::pattern(pattern)?, time).map_err(|error| errors::ban(py, error))
    }

    /// Removes the ban of exactly this pattern. Returns false if there is none.
    fn unban(&self, py: Python<'_>, pattern: &str) -> PyResult<bool> {
        Ok(self.0.get(py)?.unban(self::pattern(pattern)?))
    }

    /// Returns the bans, each with its pattern and remaining seconds, or None if permanent.
    fn bans(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<f64>)>> {
        let bans = self.0.get(py)?.bans();
        let left = |(pattern, left): (AddressPattern, Option<Duration>)| {
            (pattern.to_string(), left.map(|left| left.as_secs_f64()))
        };
        Ok(bans.into_iter().map(left).collect())
    }

    /// Sends an out-of-band message or an advertisement to a peer without a connection.
    fn send_unconnected(
        &self,
        py: Python<'_>,
        target: String,
        data: Bytes<'_>,
        advertises: bool,
    ) -> PyResult<Operation> {
        let (endpoint, data) = (self.0.get(py)?.clone(), data.into_vec());
        let work = async move {
            let result = match first_address(&target).await {
                Ok(to) if advertises => Ok(endpoint.advertise(to, &data).await),
                Ok(to) => Ok(endpoint.send_out_of_band(to, &data).await),
                Err(error) => Err(error),
            };
            (target, result)
        };
        Ok(Operation::new(work, |py, (target, result)| match result {
            Ok(Ok(())) => Ok(py.None()),
            Ok(Err(error)) => Err(errors::out_of_band(py, error)),
            Err(error) => Err(errors::resolve(py, &target, &error)),
        }))
    }

    /// Waits for a message from a peer without a connection. Returns host, port, GUID, true for an
    /// advertisement, and the data.
    fn recv_unconnected(&self, py: Python<'_>) -> PyResult<Operation> {
        let endpoint = self.0.get(py)?.clone();
        let work = async move { endpoint.recv_unconnected().await };
        Ok(Operation::new(work, |py, message| {
            let message = message.ok_or_else(|| errors::endpoint_closed(py))?;
            let (host, port) = address(message.from);
            let is_advertisement = message.kind == UnconnectedKind::Advertisement;
            let data = PyBytes::new(py, &message.data);
            convert::object(py, (host, port, message.identity.0, is_advertisement, data))
        }))
    }

    /// Queues a message for all connections except `but`. Returns the numbers of connections that accepted and refused
    /// the message.
    fn broadcast(
        &self,
        py: Python<'_>,
        data: Bytes<'_>,
        how: (u8, u8, u8),
        but: Option<&Bound<'_, Connection>>,
    ) -> PyResult<(usize, usize)> {
        let (endpoint, data) = (self.0.get(py)?, data.as_slice());
        let delivery = delivery(how.0, how.1, how.2)?;
        let but = but.map(|connection| connection.get().driver(py).map(|driver| driver.id())).transpose()?;
        let result = py.detach(|| match but {
            Some(but) => endpoint.broadcast_except(but, data, delivery),
            None => endpoint.broadcast(data, delivery),
        });
        Ok((result.sent, result.refused.len()))
    }

    /// Returns the counters of the endpoint as fields of EndpointStats.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        statistics::of_endpoint(py, &self.0.get(py)?.stats())
    }

    /// Waits until the socket has taken all datagrams that congestion control allows now.
    fn flush(&self, py: Python<'_>) -> PyResult<Operation> {
        let endpoint = self.0.get(py)?.clone();
        Ok(Operation::new(async move { endpoint.flush().await }, |py, ()| Ok(py.None())))
    }

    /// Closes all connections and the endpoint.
    fn close(&self, py: Python<'_>) -> PyResult<Operation> {
        let endpoint = self.0.get(py)?.clone();
        Ok(Operation::new(async move { endpoint.close().await }, |py, ()| Ok(py.None())))
    }

    /// Waits until the endpoint is closed.
    fn wait_closed(&self, py: Python<'_>) -> PyResult<Operation> {
        let endpoint = self.0.get(py)?.clone();
        Ok(Operation::new(async move { endpoint.closed().await }, |py, ()| Ok(py.None())))
    }
}

fn pattern(text: &str) -> PyResult<AddressPattern> {
    text.parse().map_err(|error| errors::value(format!("{text:?}: {error}")))
}

/// A client that waits for a decision. If the object is dropped before a decision, the client is refused.
#[pyclass(frozen, module = "rakwire._native")]
#[derive(Debug)]
pub(crate) struct Incoming {
    remote: SocketAddr,
    guid: u64,
    client: Mutex<Owned<rakwire_native::Incoming>>,
}

impl Incoming {
    fn new(client: rakwire_native::Incoming) -> Self {
        Self { remote: client.remote(), guid: client.guid().0, client: Mutex::new(Owned::new(client)) }
    }

    fn take(&self, py: Python<'_>) -> PyResult<rakwire_native::Incoming> {
        runtime::check_fork(py)?;
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).take();
        client.ok_or_else(|| {
            PyRuntimeError::new_err(
                "this client was already accepted, refused or ignored; call incoming() for the next one",
            )
        })
    }
}

#[pymethods]
impl Incoming {
    /// The address of the client.
    #[getter]
    fn remote_address(&self) -> (String, u16) {
        address(self.remote)
    }

    /// The GUID of the client.
    #[getter]
    const fn guid(&self) -> u64 {
        self.guid
    }

    /// Accepts the client.
    fn accept(&self, py: Python<'_>) -> PyResult<()> {
        self.take(py)?.accept();
        Ok(())
    }

    /// Refuses the client.
    fn refuse(&self, py: Python<'_>) -> PyResult<()> {
        self.take(py)?.refuse();
        Ok(())
    }

    /// Ignores the client without a reply.
    fn ignore(&self, py: Python<'_>) -> PyResult<()> {
        self.take(py)?.ignore();
        Ok(())
    }
}
