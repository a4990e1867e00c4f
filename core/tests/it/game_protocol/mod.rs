//! The Game Protocol.

mod carrier;
mod connection;
mod hostile;
mod lossy;
mod places;
mod readable;
