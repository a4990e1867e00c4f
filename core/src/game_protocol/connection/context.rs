//! What a connection borrows from its peer, and what it tells at its end.

use crate::endpoint;
use crate::game_protocol::types::GameProtocol;

/// What a connection borrows from its peer for the time of one call.
pub(crate) type Context<'x, 'a> = endpoint::Context<'x, 'a, GameProtocol>;

/// What the application is told at the end.
pub(super) type Ending = endpoint::Ending<GameProtocol>;
