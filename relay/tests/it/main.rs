//! The relay with real sockets over loopback.

// What allows `unwrap` in tests looks for this attribute; without it helpers would not count as tests.
#[cfg(test)]
mod admission;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod http;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod program;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod support;
