//! A server that adds numbers and a client that calls it, in one program over real sockets.

use std::time::Duration;

use rakwire::endpoint::{ConnectionId, PluginHost};
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Delivery, Endpoint, Options, RakNet};
use rakwire_plugins::caller::Caller;
use rakwire_plugins::calls::{Function, Handler, Refusal, RemoteCalls};

/// Adds two numbers.
struct Add;

impl Function for Add {
    const NAME: &'static str = "add";
    type Arguments<'a> = (u32, u32);
    type Answer<'a> = u32;
}

/// The context of the server's handlers, which counts sums.
#[derive(Default)]
struct Calculator {
    sums: u32,
}

impl Handler<Self, Calculator> for Add {
    fn is_allowed(_: &Calculator, _: ConnectionId) -> bool {
        true
    }

    fn handle(calculator: &mut Calculator, _: ConnectionId, (a, b): (u32, u32)) -> Result<u32, Refusal> {
        calculator.sums += 1;
        a.checked_add(b).ok_or(Refusal::Failed(1))
    }
}

type Calls<C> = SharedHook<RemoteCalls<RakNet, C, 4, 16, 256>>;

/// Binds an endpoint with the plugin.
async fn bind<C: Send + 'static>(
    options: Options,
    calls: &Calls<C>,
) -> Result<Endpoint, Box<dyn std::error::Error>> {
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(calls.clone())?;
    Ok(Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?)
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut calculator = RemoteCalls::new(Calculator::default());
    calculator.register::<Add, Add>()?;
    let (server_calls, client_calls) = (SharedHook::new(calculator), Calls::new(RemoteCalls::new(())));
    let server = bind(Options::server(8)?, &server_calls).await?;
    let client = bind(Options::client()?, &client_calls).await?;
    let connection = client.connect(server.local_addr()).await?;

    let caller = Caller::new(&client, &client_calls, Duration::from_secs(5), Delivery::RELIABLE_ORDERED);
    for (a, b) in [(1, 2), (u32::MAX, 1)] {
        let finished = caller.call::<Add>(connection.id(), &(a, b)).await?;
        match finished.answer::<Add>() {
            Ok(sum) => println!("{a} + {b} = {sum}"),
            Err(failure) => println!("{a} + {b}: {failure}"),
        }
    }
    println!("the server has added {} times", server_calls.with(|calls| calls.context.sums));
    Ok(())
}
