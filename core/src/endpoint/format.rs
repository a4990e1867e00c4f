//! What the types of a protocol must be able to do for the logs of microcontrollers (feature `defmt`).

/// What defmt can print, if it is built in.
#[cfg(feature = "defmt")]
pub(crate) trait Format: defmt::Format {}
#[cfg(feature = "defmt")]
impl<T: defmt::Format> Format for T {}

/// What defmt could print, if it were built in.
#[cfg(not(feature = "defmt"))]
pub(crate) trait Format {}
#[cfg(not(feature = "defmt"))]
impl<T> Format for T {}
