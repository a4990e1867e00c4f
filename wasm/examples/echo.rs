//! A game in Rust, as small as one can be: connects through a relay, sends, and checks the echoes.
//!
//! `tests/rust-door.test.mjs` builds it and runs it in a browser.

use rakwire::game_protocol::Reliability;
use rakwire::raknet::Delivery;
use rakwire_wasm::web::{Options, connect, game};
use wasm_bindgen::prelude::*;

/// Sends one short and one long message to an echo server and says what came back.
///
/// # Errors
/// What went wrong, in words.
#[wasm_bindgen]
pub async fn play(url: String, target: String) -> Result<String, JsError> {
    let connection = connect(&url, &target, Options::default()).await?;
    let long: Vec<u8> =
        (0..150_000_u32).map(|index| if index == 0 { 0xFE } else { (index % 251) as u8 }).collect();
    let mut echoed = Vec::new();
    for message in [b"\xFEhello".as_slice(), &long] {
        connection.send(message, Delivery::RELIABLE_ORDERED)?;
        let echo = connection.recv().await;
        let echo = echo.ok_or_else(|| JsError::new(&describe_end(&connection)))?;
        if echo.bytes != message {
            return Err(JsError::new("the echo is not what was sent"));
        }
        echoed.push(echo.bytes.len().to_string());
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
    for (message, reliability) in
        [(b"hello".as_slice(), Reliability::Unreliable), (&long, Reliability::Reliable)]
    {
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
