//! Servers that need more than one core: several endpoints bound to one address.

use std::sync::Arc;

use rakwire::endpoint::{Hook, Protocol};
use tokio::net::ToSocketAddrs;
use tokio::runtime::Handle;

use super::admission::LockedAdmission;
use super::hooks::BoxedHook;
use super::options::Options;
use super::shared::Shared;
use super::{Endpoint, Shards};
use crate::host::{BindError, Clock};
use crate::socket::Socket;

/// Returns one handle of the current runtime per shard.
fn here(shards: usize) -> Vec<Handle> {
    vec![Handle::current(); shards.max(1)]
}

impl<P: Protocol> Endpoint<P> {
    /// Binds several endpoints (shards) to one address, for a server that needs more than one core.
    ///
    /// Each endpoint has its own socket, tasks, locks, and the memory given in `options`. The system passes all
    /// datagrams from a client to the same endpoint. Accept connections from each endpoint.
    ///
    /// To clients, the endpoints are one server. They share:
    /// - the identity and the keys of the configuration;
    /// - `max_incoming`, which limits their incoming connections in total;
    /// - in RakNet the GUIDs of connected clients, so that a client cannot connect twice, and the used connect tokens,
    ///   if the options require tokens;
    /// - in RakNet the password, the bans and the data of pongs: a change at one endpoint applies to all;
    /// - the rate limits: pongs and challenges per second, in total and per network, the time between two connections
    ///   of an address, and the half-open connections of a network if cookies are off.
    ///
    /// Each endpoint has its own memory, queues, statistics and outgoing connections. The GUIDs of outgoing connections
    /// are known only to the endpoint that opened them. A full RakNet server evicts a half-open connection for a new
    /// client only at the endpoint that the client reaches. A connection occupies a slot until it is closed or its
    /// endpoint is dropped.
    ///
    /// # Errors
    /// Returns a [`BindError`] with the address. Only Linux and Android distribute datagrams by client; on other
    /// systems this always fails.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # if cfg!(not(target_os = "linux")) { return Ok(()) }
    /// let shards = Endpoint::bind_shards("127.0.0.1:0", &Options::server(500)?, 2).await?;
    /// let address = shards[0].local_addr();
    /// let (accepted, mut connections) = tokio::sync::mpsc::unbounded_channel();
    /// for shard in shards {
    ///     let accepted = accepted.clone();
    ///     tokio::spawn(async move {
    ///         while let Some(connection) = shard.accept().await {
    ///             accepted.send(connection).expect("the main task is running");
    ///         }
    ///     });
    /// }
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let there = client.connect(address).await?;
    /// let here = connections.recv().await.expect("the shards accept");
    /// assert_eq!(here.remote(), client.local_addr());
    /// # drop(there);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bind_shards(
        address: impl ToSocketAddrs,
        options: &Options<P>,
        shards: usize,
    ) -> Result<Vec<Self>, BindError> {
        Self::open_shards(address, options, &here(shards), |_| BoxedHook::NONE).await
    }

    /// Binds one shard per runtime, like [`bind_shards`](Self::bind_shards). The tasks of each shard run in its
    /// runtime.
    ///
    /// One single-threaded runtime per core is the most efficient setup: the state of an endpoint stays on one core,
    /// and no task wakes another thread. Accept the connections of an endpoint in its runtime.
    ///
    /// # Errors
    /// The same errors as [`bind_shards`](Self::bind_shards).
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    /// use tokio::runtime::{Builder, Runtime};
    ///
    /// async fn serve(shard: Endpoint) {
    ///     while let Some(connection) = shard.accept().await {
    ///         println!("{} has come", connection.remote());
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # if cfg!(not(target_os = "linux")) { return Ok(()) }
    /// let runtime = |_| Builder::new_current_thread().enable_all().build();
    /// let runtimes: Vec<Runtime> = (0..2).map(runtime).collect::<Result<_, _>>()?;
    /// let handles: Vec<_> = runtimes.iter().map(|runtime| runtime.handle().clone()).collect();
    /// let options = Options::server(500)?;
    /// let shards = runtimes[0].block_on(Endpoint::bind_shards_on("127.0.0.1:0", &options, &handles))?;
    /// let address = shards[0].local_addr();
    /// for (runtime, shard) in runtimes.into_iter().zip(shards) {
    ///     std::thread::spawn(move || runtime.block_on(serve(shard)));
    /// }
    /// let runtime = Builder::new_current_thread().enable_all().build()?;
    /// runtime.block_on(async {
    ///     let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    ///     let connection = client.connect(address).await?;
    ///     connection.disconnect().await;
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bind_shards_on(
        address: impl ToSocketAddrs,
        options: &Options<P>,
        runtimes: &[Handle],
    ) -> Result<Vec<Self>, BindError> {
        Self::open_shards(address, options, runtimes, |_| BoxedHook::NONE).await
    }

    /// Binds shards like [`bind_shards`](Self::bind_shards), each with a hook. `hook` creates the hook of a shard from
    /// the number of the shard, counted from 0.
    ///
    /// The endpoints run concurrently. Connection ids are unique among the endpoints, so one
    /// [`SharedHook`](crate::endpoint::SharedHook) may serve all endpoints if it keeps its state by id, as a
    /// [`MessageFilter`](crate::raknet::MessageFilter) does. The endpoints then contend for its lock. Slots are not
    /// unique: a plugin that keeps its state by slot ([`BySlot`](rakwire::endpoint::BySlot)), like all of
    /// `rakwire-plugins`, needs one instance per endpoint.
    ///
    /// # Errors
    /// The same errors as [`bind_shards`](Self::bind_shards).
    ///
    /// ```
    /// use rakwire_native::endpoint::SharedHook;
    /// use rakwire_native::raknet::{Endpoint, FilterGroup, MessageFilter, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # if cfg!(not(target_os = "linux")) { return Ok(()) }
    /// let filters = [0, 1].map(|_| SharedHook::new(MessageFilter::<64>::new()));
    /// let options = Options::server(8)?;
    /// let hook = |number: usize| filters[number].clone();
    /// let shards = Endpoint::bind_shards_with_hook("127.0.0.1:0", &options, filters.len(), hook).await?;
    /// for filter in &filters {
    ///     filter.with(|filter| filter.deny(FilterGroup::DEFAULT, [0x90]));
    /// }
    /// assert_eq!(shards.len(), filters.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bind_shards_with_hook<H: Hook<P> + Send + 'static>(
        address: impl ToSocketAddrs,
        options: &Options<P>,
        shards: usize,
        mut hook: impl FnMut(usize) -> H,
    ) -> Result<Vec<Self>, BindError> {
        Self::open_shards(address, options, &here(shards), |number| BoxedHook::new(hook(number))).await
    }

    /// Binds shards like [`bind_shards_on`](Self::bind_shards_on), with hooks.
    ///
    /// `hook` creates a hook for each endpoint, as in [`bind_shards_with_hook`](Self::bind_shards_with_hook).
    ///
    /// # Errors
    /// The same errors as [`bind_shards`](Self::bind_shards).
    pub async fn bind_shards_on_with_hook<H: Hook<P> + Send + 'static>(
        address: impl ToSocketAddrs,
        options: &Options<P>,
        runtimes: &[Handle],
        mut hook: impl FnMut(usize) -> H,
    ) -> Result<Vec<Self>, BindError> {
        Self::open_shards(address, options, runtimes, |number| BoxedHook::new(hook(number))).await
    }

    async fn open_shards(
        address: impl ToSocketAddrs,
        options: &Options<P>,
        runtimes: &[Handle],
        mut hook: impl FnMut(usize) -> BoxedHook<P>,
    ) -> Result<Vec<Self>, BindError> {
        let Some((first, others)) = runtimes.split_first() else { return Ok(Vec::new()) };
        let bind = |runtime: &Handle, address| {
            let _entered = runtime.enter();
            Socket::bind_shared(address)
        };
        let first = Socket::open_with(address, |address| bind(first, address)).await?;
        let address = first.local_addr();
        let mut sockets = vec![first];
        for runtime in others {
            let socket = bind(runtime, address);
            sockets.push(socket.map_err(|source| BindError::Socket { address, source })?);
        }
        // Each further socket changes the distribution of clients, so the endpoints start only once all sockets are
        // bound.
        let (clock, admission) = (Clock::start(), LockedAdmission::default());
        let mut shared = |number| {
            let shared = Shared::new(options.clone(), hook(number), clock);
            let mut state = shared.lock();
            state.share_admission(admission.clone());
            let partitioned = state.partition_ids(number, sockets.len());
            drop(state);
            partitioned
                .map(|()| Arc::new(shared))
                .map_err(|error| BindError::Socket { address, source: std::io::Error::other(error) })
        };
        let all = (0..sockets.len()).map(&mut shared).collect::<Result<Vec<_>, BindError>>()?;
        let shards = Shards::of(&all);
        let run = |((socket, shared), runtime): (_, &Handle)| {
            let _entered = runtime.enter();
            Self::run(socket, shared, &shards, options.simulation())
        };
        Ok(sockets.into_iter().zip(all).zip(runtimes).map(run).collect())
    }
}
