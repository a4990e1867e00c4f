//! Endpoints of RakNet over loopback.

mod admission;
mod console;
mod guide;
mod library;
mod secure;
mod simulation;
mod tokens;
