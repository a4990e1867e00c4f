//! A minimal Rust program for browsers: connects through a relay, sends, and checks the echoes.
//!
//! `tests/rust.test.mjs` builds it and runs it in a browser.

use rakwire::game_protocol;
use rakwire::raknet::{Delivery, Direction, Outcome, Reliability};
use rakwire_wasm::web::{Options, connect, game};
use wasm_bindgen::prelude::*;

/// Sends a short and a long message to an echo server. Checks the echoes, the receipts, and the progress of the long
/// message in both directions.
///
/// # Errors
/// If connecting fails or a check does.
#[wasm_bindgen]
pub async fn play(url: String, target: String) -> Result<String, JsError> {
    let mut options = Options::default();
    options.progress_interval = 10;
    let connection = connect(&url, &target, options).await?;
    let long: Vec<u8> =
        (0..150_000_u32).map(|index| if index == 0 { 0xFE } else { (index % 251) as u8 }).collect();
    let mut echoed = Vec::new();
    for message in [b"\xFEhello".as_slice(), &long] {
        let sent = connection.send(message, Delivery::new(Reliability::ReliableOrderedWithReceipt))?;
        let receipt = connection.recv_receipt().await;
        if receipt != sent.map(|receipt| (receipt, Outcome::Acknowledged)) {
            return Err(JsError::new("the receipt belongs to another message"));
        }
        let echo = connection.recv().await;
        let echo = echo.ok_or_else(|| JsError::new(&describe_end(&connection)))?;
        if echo.bytes != message {
            return Err(JsError::new("the echo differs from the message"));
        }
        echoed.push(echo.bytes.len().to_string());
    }
    let mut has_progress = [false; 2];
    while has_progress != [true; 2] {
        let progress = connection.recv_progress().await;
        let progress = progress.ok_or_else(|| JsError::new(&describe_end(&connection)))?;
        if progress.done == 0 || progress.done > progress.parts || progress.parts < 150_000 / 1_464 {
            return Err(JsError::new("the progress is invalid"));
        }
        match progress.direction {
            Direction::Sending => has_progress[0] = true,
            Direction::Receiving => has_progress[1] = true,
        }
    }
    connection.disconnect().await;
    Ok(format!("echoed {} bytes", echoed.join(" and ")))
}

fn describe_end(connection: &rakwire_wasm::web::Connection) -> String {
    connection.ending().map_or_else(|| "the connection has not ended".to_owned(), |ending| ending.to_string())
}

/// The same with the Game Protocol and its longest message.
///
/// # Errors
/// If connecting fails or a check does.
#[wasm_bindgen]
pub async fn play_game(url: String, target: String) -> Result<String, JsError> {
    let connection = game::connect(&url, &target, 3).await?;
    let long: Vec<u8> = (0..129_024_u32).map(|index| (index % 251) as u8).collect();
    let mut echoed = Vec::new();
    for (message, reliability) in [
        (b"hello".as_slice(), game_protocol::Reliability::Unreliable),
        (&long, game_protocol::Reliability::Reliable),
    ] {
        connection.send(message, reliability)?;
        let echo = connection.recv().await.ok_or_else(|| JsError::new("the connection ended"))?;
        if echo.bytes != message || echo.reliability != reliability {
            return Err(JsError::new("the echo differs from the message"));
        }
        echoed.push(echo.bytes.len().to_string());
    }
    connection.disconnect().await;
    Ok(format!("echoed {} bytes", echoed.join(" and ")))
}
