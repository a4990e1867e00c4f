//! A server that writes a report of every panic and continues: the task of a player that sends "crash" panics, and
//! the others play on.
//!
//! ```sh
//! cargo run -p rakwire-extras --features crash-report --example crash_report -- 127.0.0.1:19132 reports
//! cargo run -p rakwire-cli -- send 127.0.0.1:19132 crash --timeout 2
//! cat reports/*
//! ```

use rakwire_extras::crash_report::CrashReports;
use rakwire_native::{Connection, Endpoint, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:19132".to_owned());
    let folder = arguments.next().unwrap_or_else(|| "reports".to_owned());
    let reports = CrashReports::install(folder, "crash_report", env!("CARGO_PKG_VERSION"))?;
    let endpoint = Endpoint::bind(address, Options::server(64)?).await?;
    println!("listening on {}", endpoint.local_addr());
    while let Some(connection) = endpoint.accept().await {
        reports.note(format!("{} joins", connection.remote()));
        tokio::spawn(echo(connection));
    }
    Ok(())
}

async fn echo(connection: Connection) {
    while let Some(message) = connection.recv().await {
        assert!(!message.bytes.ends_with(b"crash"), "a player said {}", message.bytes.escape_ascii());
        if connection.send(&message.bytes, message.delivery).await.is_err() {
            return;
        }
    }
}
