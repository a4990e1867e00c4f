//! Endpoints of the Game Protocol over loopback.

mod connection;
