//! The progress line of a transfer.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress line on standard error, if standard error is a terminal. It is removed on drop.
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    pub(crate) fn new() -> Self {
        let is_seen = io::stderr().is_terminal();
        Self::on(if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() })
    }

    fn on(target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), target);
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

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::*;

    #[test]
    fn the_progress_line_shows_transferred_and_total_bytes() {
        let terminal = InMemoryTerm::new(2, 80);
        let line = ProgressLine::on(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        line.show(512, 2_048);
        let shown = terminal.contents();
        assert!(shown.starts_with("[") && shown.contains("] 512 B of 2.00 KiB, "), "{shown}");
        let parts = ['█', '░'].map(|part| shown.matches(part).count());
        assert_eq!(parts, [7, 23], "a quarter of 30: {shown}");
        drop(line);
        assert_eq!(terminal.contents(), "", "the line is removed when it is dropped");
    }
}
