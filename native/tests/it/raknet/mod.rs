//! Endpoints of RakNet over loopback.

mod admission;
mod library;
mod secure;
mod simulation;
mod tokens;
