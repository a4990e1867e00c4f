//! The clock of embassy-time, as the core counts time.

/// Now, in microseconds since the start of the machine.
pub(crate) fn now() -> rakwire::Instant {
    rakwire::Instant::from_micros(embassy_time::Instant::now().as_micros())
}

/// The same point in time for a timer, which never fires before it.
pub(crate) const fn timer(at: rakwire::Instant) -> embassy_time::Instant {
    let before = embassy_time::Instant::from_micros(at.as_micros());
    let early = before.as_micros() < at.as_micros();
    embassy_time::Instant::from_ticks(before.as_ticks() + early as u64)
}
