//! The Game Protocol.

mod connection;
mod hostile;
mod lossy;
mod readable;
