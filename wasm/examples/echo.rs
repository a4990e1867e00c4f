//! A game in Rust, as small as one can be: connects through a relay, sends, and checks the echoes.
//!
//! `tests/rust-door.test.mjs` builds it and runs it in a browser.

use rakwire::game_protocol;
use rakwire::raknet::{Delivery, Direction, Outcome, Reliability};
use rakwire_wasm::web::{Options, connect, game};
use wasm_bindgen::prelude::*;

/// Sends one short and one long message to an echo server and says what came back, what became of the second, and how
/// far it came on both ways while nobody read messages.
///
/// # Errors
/// What went wrong, in words.
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
            return Err(JsError::new("the receipt is not that of the message"));
        }
        let echo = connection.recv().await;
        let echo = echo.ok_or_else(|| JsError::new(&describe_end(&connection)))?;
        if echo.bytes != message {
            return Err(JsError::new("the echo is not what was sent"));
        }
        echoed.push(echo.bytes.len().to_string());
    }
    let mut further = [false; 2];
    while further != [true; 2] {
        let progress = connection.recv_progress().await;
        let progress = progress.ok_or_else(|| JsError::new(&describe_end(&connection)))?;
        if progress.done == 0 || progress.done > progress.parts || progress.parts < 150_000 / 1_464 {
            return Err(JsError::new("the progress makes no sense"));
        }
        match progress.direction {
            Direction::Sending => further[0] = true,
            Direction::Receiving => further[1] = true,
        }
    }
    connection.disconnect().await;
    Ok(format!("echoed {} bytes", echoed.join(" and ")))
}

fn describe_end(connection: &rakwire_wasm::web::Connection) -> String {
    connection.ending().map_or_else(|| "no end".to_owned(), |ending| ending.to_string())
}

/// The same in the Game Protocol, with its longest message.
///
/// # Errors
/// What went wrong, in words.
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
            return Err(JsError::new("the echo is not what was sent"));
        }
        echoed.push(echo.bytes.len().to_string());
    }
    connection.disconnect().await;
    Ok(format!("echoed {} bytes", echoed.join(" and ")))
}
