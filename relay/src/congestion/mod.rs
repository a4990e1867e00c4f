//! Congestion control of what the relay sends to pages.
//!
//! The protocol inside has its own, and tells random losses from congestion. A carrier that halves its window at each loss
//! would limit it, so QUIC has the delay-based window of RakNet here (`docs/congestion.md`).

mod epoch;
mod quic;

use epoch::Epoch;
pub(crate) use quic::QuicCongestionConfig;

#[cfg(test)]
mod tests;
