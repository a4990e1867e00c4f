//! Tests of the generic endpoint over loopback. Each test runs with both protocols.

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

/// Generates four tests from each function that is generic over the protocol: with each protocol, on a multi-threaded
/// and on a single-threaded runtime. On a single-threaded runtime, tasks run in the order in which they are woken.
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
