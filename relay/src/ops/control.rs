//! The orders of an operator by the admin socket: to list, end and ban clients.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::clients::{BanList, ClientList, EndedFlows};
use crate::syntax;

/// The most bytes of an order.
const ORDER_MAX: usize = 1_024;

/// What an operator can do with the clients of a relay.
pub(crate) trait Control: Send + Sync + 'static {
    /// The clients with a flow, in a network or everywhere.
    fn clients(&self, network: Option<IpNet>) -> ClientList;

    /// Ends a flow, and returns how many there were.
    fn kick_flow(&self, flow: u64) -> usize;

    /// Ends the flows of a network, and returns how many there were.
    fn kick_network(&self, network: IpNet) -> usize;

    /// Bans a network, for a time or until the relay ends, and returns how many flows that ended.
    fn ban(&self, network: IpNet, duration: Option<Duration>) -> Result<usize, String>;

    /// Lifts a ban; false if there is none of this network.
    fn unban(&self, network: IpNet) -> bool;

    /// The bans that were made while the relay runs.
    fn bans(&self) -> BanList;
}

/// Which flows to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum KickOrder {
    Flow(u64),
    #[serde(deserialize_with = "network")]
    Network(IpNet),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct BanOrder {
    #[serde(deserialize_with = "network")]
    network: IpNet,
    /// Without it until the relay ends.
    #[serde(default)]
    seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnbanOrder {
    #[serde(deserialize_with = "network")]
    network: IpNet,
}

/// The paths of the admin socket.
pub(crate) fn control_router(control: Arc<dyn Control>) -> Router {
    Router::new()
        .route("/clients", get(clients))
        .route("/bans", get(bans))
        .route("/kick", post(kick))
        .route("/ban", post(ban))
        .route("/unban", post(unban))
        .layer(DefaultBodyLimit::max(ORDER_MAX))
        .with_state(control)
}

async fn clients(State(control): State<Arc<dyn Control>>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let network = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "network");
    match network.map(|(_, network)| syntax::network(&network)).transpose() {
        Ok(network) => json(&control.clients(network)),
        Err(error) => refused(error),
    }
}

async fn bans(State(control): State<Arc<dyn Control>>) -> Response {
    json(&control.bans())
}

async fn kick(State(control): State<Arc<dyn Control>>, body: Bytes) -> Response {
    let ended = match order(&body) {
        Ok(KickOrder::Flow(flow)) => control.kick_flow(flow),
        Ok(KickOrder::Network(network)) => control.kick_network(network),
        Err(error) => return refused(error),
    };
    if ended == 0 {
        return refused("there is no such flow".to_owned());
    }
    json(&EndedFlows::new(ended))
}

async fn ban(State(control): State<Arc<dyn Control>>, body: Bytes) -> Response {
    let banned = order(&body)
        .and_then(|BanOrder { network, seconds }| control.ban(network, seconds.map(Duration::from_secs)));
    banned.map_or_else(refused, |ended| json(&EndedFlows::new(ended)))
}

async fn unban(State(control): State<Arc<dyn Control>>, body: Bytes) -> Response {
    match order(&body) {
        Ok(UnbanOrder { network }) if control.unban(network) => StatusCode::NO_CONTENT.into_response(),
        Ok(_) => refused(
            "there is no such ban: 'rakwire-relay bans' lists those that can be lifted; others are in the file of \
             admission.bans"
                .to_owned(),
        ),
        Err(error) => refused(error),
    }
}

fn json(answer: &impl Serialize) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    match serde_json::to_string(answer) {
        Ok(text) => (kind, format!("{text}\n")).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn order<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("the order cannot be read ({error})"))
}

fn refused(error: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (StatusCode::BAD_REQUEST, kind, format!("{error}\n")).into_response()
}

fn network<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<IpNet, D::Error> {
    syntax::network(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}
