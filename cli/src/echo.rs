//! `rakwire echo`: a server that echoes every user message.

mod answer;
mod arguments;
mod over_tcp;
mod over_udp;

use crate::failure::Failure;

pub(crate) use self::arguments::Arguments;

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.tcp { over_tcp::run(&arguments).await } else { over_udp::run(&arguments).await }
}
