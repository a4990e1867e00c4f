//! Converts between the clocks of embassy-time and of the core.

/// Returns the current time.
pub(crate) fn now() -> rakwire::Instant {
    rakwire::Instant::from_micros(embassy_time::Instant::now().as_micros())
}

/// Returns the timer deadline for this time, rounded up to a tick.
pub(crate) const fn timer(at: rakwire::Instant) -> embassy_time::Instant {
    let before = embassy_time::Instant::from_micros(at.as_micros());
    let early = before.as_micros() < at.as_micros();
    embassy_time::Instant::from_ticks(before.as_ticks() + early as u64)
}
