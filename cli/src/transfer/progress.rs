//! The progress line of a transfer.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// A line on standard error, if that is a terminal. It vanishes in the end.
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    pub(crate) fn new() -> Self {
        let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let template = "[{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    pub(crate) fn show(&self, bytes: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(bytes);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
