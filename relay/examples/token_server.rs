//! An endpoint that issues tokens for a relay. A game's backend would issue them in the same way, after it has
//! authenticated the player.
//!
//! ```sh
//! rakwire-relay keygen --out token.key
//! cargo run -p rakwire-relay --example token_server -- token.key game 127.0.0.1:8090
//! rakwire-relay --token-key token.key.pub ...
//! ```
//!
//! A client then fetches `http://127.0.0.1:8090/token`, and connects with the token in the response.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;
use rakwire_relay::token::{Claims, SigningKey};
use tokio::net::TcpListener;

/// Validity period of a token; short, because a client connects immediately.
const LIFETIME: Duration = Duration::from_secs(60);

struct Issuer {
    key: SigningKey,
    target: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or_else(|| format!("missing argument: {what}"));
    let (key, target, listen) = (next("KEY")?, next("TARGET")?, next("ADDR")?);
    let key = SigningKey::from_text(&std::fs::read_to_string(key)?)?;
    let router = Router::new().route("/token", get(issue_token)).with_state(Arc::new(Issuer { key, target }));
    let listener = TcpListener::bind(listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

/// Issues a token that is valid for a short time, and only for the address that requested it.
async fn issue_token(
    State(issuer): State<Arc<Issuer>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
) -> Result<([(HeaderName, &'static str); 1], String), StatusCode> {
    let token = issue(&issuer, client).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(([(CACHE_CONTROL, "no-store")], format!(r#"{{"token":"{token}"}}"#)))
}

fn issue(issuer: &Issuer, client: SocketAddr) -> Result<String, Box<dyn Error>> {
    let mut claims = Claims::new(&issuer.target, SystemTime::now() + LIFETIME)?;
    // Omit this claim if clients may reach the relay from another address, such as over IPv4 here and over IPv6 there.
    claims.addr = Some(client.ip().to_canonical().into());
    Ok(issuer.key.sign(&claims)?)
}
