//! Awaitable remote calls for the driver `rakwire-native`.

use core::future::{self, Future as _};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use rakwire::endpoint::{ConnectionId, Protocol};
use rakwire_native::endpoint::{Endpoint, SharedHook};

use crate::calls::{CallError, CallId, Finished, Function, RemoteCalls};

/// Calls functions of remote peers, with a future for each answer. Clones use the same plugin.
///
/// ```
/// use std::time::Duration;
/// use rakwire_plugins::caller::Caller;
/// use rakwire_plugins::calls::{CallError, Function, Handler, Refusal, RemoteCalls};
/// use rakwire_plugins::native::endpoint::{ConnectionId, PluginHost, SharedHook};
/// use rakwire_plugins::native::{Delivery, Endpoint, Options, RakNet};
///
/// /// Adds two numbers.
/// struct Add;
///
/// impl Function for Add {
///     const NAME: &'static str = "add";
///     type Arguments<'a> = (u32, u32);
///     type Answer<'a> = u32;
/// }
///
/// impl Handler<Add, ()> for Add {
///     fn is_allowed(_: &(), _: ConnectionId) -> bool {
///         true
///     }
///
///     fn handle(_: &mut (), _: ConnectionId, (a, b): (u32, u32)) -> Result<u32, Refusal> {
///         a.checked_add(b).ok_or(Refusal::Failed(1))
///     }
/// }
///
/// type Calls = SharedHook<RemoteCalls<RakNet, (), 4, 16, 256>>;
///
/// async fn bind(options: Options, calls: &Calls) -> Result<Endpoint, Box<dyn std::error::Error>> {
///     let mut host = PluginHost::<_, 1>::new();
///     host.attach::<RakNet>(calls.clone())?;
///     Ok(Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?)
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (there, here) = (Calls::new(RemoteCalls::new(())), Calls::new(RemoteCalls::new(())));
/// there.with(|calls| calls.register::<Add, Add>())?;
/// let server = bind(Options::server(8)?, &there).await?;
/// let client = bind(Options::client()?, &here).await?;
/// let connection = client.connect(server.local_addr()).await?;
/// let caller = Caller::new(&client, &here, Duration::from_secs(5), Delivery::RELIABLE_ORDERED);
/// let sum = caller.call::<Add>(connection.id(), &(20, 22)).await?;
/// assert_eq!(sum.answer::<Add>()?, 42);
/// client.close().await;
/// let failed = caller.call::<Add>(connection.id(), &(20, 22)).await;
/// assert_eq!(failed.err(), Some(CallError::EndpointClosed));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Caller<P: Protocol, C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize> {
    endpoint: Endpoint<P>,
    calls: SharedHook<RemoteCalls<P, C, FUNCTIONS, CALLS, BYTES>>,
    /// The time limit for an answer, after which the call fails with
    /// [`CallFailure::TimedOut`](crate::calls::CallFailure).
    pub timeout: Duration,
    /// The delivery of the call and of its answer.
    pub delivery: P::Delivery,
}

impl<P: Protocol, C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize>
    Caller<P, C, FUNCTIONS, CALLS, BYTES>
{
    /// Creates a caller that uses a plugin attached to `endpoint`.
    #[must_use]
    pub fn new(
        endpoint: &Endpoint<P>,
        calls: &SharedHook<RemoteCalls<P, C, FUNCTIONS, CALLS, BYTES>>,
        timeout: Duration,
        delivery: P::Delivery,
    ) -> Self {
        Self { endpoint: endpoint.clone(), calls: calls.clone(), timeout, delivery }
    }

    /// Calls a function of a remote peer and waits until the call has completed or failed.
    ///
    /// [`Finished::answer`] returns the answer. If the maximum number of calls is in progress, the future
    /// first waits for a free slot. Only this future receives the result, not [`RemoteCalls::poll_finished`].
    /// Dropping the future cancels the call.
    ///
    /// # Errors
    /// [`CallError::TooLong`], [`CallError::BadName`], and [`CallError::EndpointClosed`] if the endpoint is
    /// closed, because then no timeout would fire.
    pub async fn call<F: Function>(
        &self,
        to: ConnectionId,
        arguments: &F::Arguments<'_>,
    ) -> Result<Finished<BYTES>, CallError> {
        let mut call = pin!(self.call_while_open::<F>(to, arguments));
        let mut closed = pin!(self.endpoint.closed());
        future::poll_fn(|cx| match call.as_mut().poll(cx) {
            Poll::Pending => closed.as_mut().poll(cx).map(|()| Err(CallError::EndpointClosed)),
            ended @ Poll::Ready(_) => ended,
        })
        .await
    }

    async fn call_while_open<F: Function>(
        &self,
        to: ConnectionId,
        arguments: &F::Arguments<'_>,
    ) -> Result<Finished<BYTES>, CallError> {
        let begin = |calls: &mut RemoteCalls<P, C, FUNCTIONS, CALLS, BYTES>| match calls.call::<F>(
            to,
            arguments,
            self.timeout,
            self.delivery,
        ) {
            Err(CallError::TooManyCalls) => None,
            begun => Some(begun.inspect(|id| _ = calls.claim(*id))),
        };
        let id = self.calls.next(begin).await?;
        let call = UnderWay { caller: self, id };
        self.endpoint.wake();
        let finished = future::poll_fn(|cx| self.calls.with(|calls| calls.poll_call(id, cx.waker()))).await;
        drop(call);
        Ok(finished.unwrap_or_else(|| Finished::lost(id)))
    }
}

/// A call in progress, and the future that awaits its result.
struct UnderWay<'c, P: Protocol, C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize> {
    caller: &'c Caller<P, C, FUNCTIONS, CALLS, BYTES>,
    id: CallId,
}

impl<P: Protocol, C, const FUNCTIONS: usize, const CALLS: usize, const BYTES: usize> Drop
    for UnderWay<'_, P, C, FUNCTIONS, CALLS, BYTES>
{
    fn drop(&mut self) {
        self.caller.calls.with(|calls| calls.forget(self.id));
    }
}
