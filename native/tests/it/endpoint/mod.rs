//! What endpoints of both protocols do, over loopback. Each test runs by both.

mod fairness;
mod hooks;
mod incoming;
mod lifecycle;
mod messages;
mod meters;
#[cfg(target_os = "linux")]
mod shards;
mod simulation;
mod sockets;
mod spans;
mod streams;
pub(crate) mod subject;

/// Makes two tests of each function that is generic over the protocol.
macro_rules! by_both_protocols {
    ($($test:ident),+ $(,)?) => {
        mod raknet {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test::<rakwire::raknet::RakNet>().await;
            })+
        }

        mod game_protocol {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test::<rakwire::game_protocol::GameProtocol>().await;
            })+
        }
    };
}

pub(crate) use by_both_protocols;
