//! What endpoints of both protocols do, over loopback. Each test runs by both.

mod answers;
mod fairness;
pub(crate) mod hooks;
mod incoming;
mod lifecycle;
mod messages;
mod meters;
mod pauses;
mod proxies;
#[cfg(target_os = "linux")]
mod shards;
mod simulation;
mod sockets;
pub(crate) mod spans;
mod streams;
pub(crate) mod subject;
#[cfg(target_os = "linux")]
mod unreachable;

/// Makes tests of each function that is generic over the protocol: by both protocols, on a runtime with several threads and on one
/// with a single thread, where the driver's tasks run in the order in which they are woken.
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

        mod raknet_on_one_thread {
            $(#[tokio::test]
            async fn $test() {
                super::$test::<rakwire::raknet::RakNet>().await;
            })+
        }

        mod game_protocol_on_one_thread {
            $(#[tokio::test]
            async fn $test() {
                super::$test::<rakwire::game_protocol::GameProtocol>().await;
            })+
        }
    };
}

pub(crate) use by_both_protocols;
