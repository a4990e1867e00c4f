//! Bar charts as SVG files.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::report::number;

/// The height of a bar with its margin, in pixels.
const BAR: u32 = 26;
const WIDTH: u32 = 760;

/// A bar of a chart: a value with a name.
#[derive(Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) kind: BarKind,
}

/// The category of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarKind {
    /// A measurement in which the client, the server or both are rakwire.
    Ours,
    /// A measurement without rakwire.
    Others,
    /// A goal of rakwire.
    Goal,
}

impl BarKind {
    fn style(self) -> ShapeStyle {
        match self {
            Self::Ours => RGBColor(30, 110, 180).filled(),
            Self::Others => RGBColor(170, 170, 170).filled(),
            Self::Goal => RGBColor(110, 110, 110).stroke_width(1),
        }
    }
}

impl Bar {
    pub(crate) fn new(name: impl Into<String>, value: f64, kind: BarKind) -> Self {
        Self { name: name.into(), value, kind }
    }
}

/// Draws horizontal bars, one below the other, and writes the chart to `path`.
pub(crate) fn draw(title: &str, bars: &[Bar], path: &Path) -> Result<()> {
    let count = u32::try_from(bars.len())?;
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let root = SVGBackend::new(path, (WIDTH, 50 + count * BAR)).into_drawing_area();
    let drawn = |error: &dyn std::fmt::Display| anyhow!("{error}");
    root.fill(&WHITE).map_err(|error| drawn(&error))?;
    let text = |size| ("sans-serif", size).into_font();
    root.draw(&Text::new(title.to_owned(), (10, 10), text(18))).map_err(|error| drawn(&error))?;
    let (left, room) = (230, f64::from(WIDTH) - 330.0);
    for (at, Bar { name, value, kind }) in bars.iter().enumerate() {
        let top = 40 + i32::try_from(at)? * i32::try_from(BAR)?;
        let right = left + (room * value / most).round().max(1.0) as i32;
        let bar = Rectangle::new([(left, top), (right, top + 18)], kind.style());
        root.draw(&bar).map_err(|error| drawn(&error))?;
        root.draw(&Text::new(name.clone(), (10, top + 2), text(14))).map_err(|error| drawn(&error))?;
        root.draw(&Text::new(number(*value), (right + 6, top + 2), text(14)))
            .map_err(|error| drawn(&error))?;
    }
    root.present().map_err(|error| drawn(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_is_drawn_with_its_name_and_value() {
        let bars = [
            Bar::new("rakwire", 1_000.0, BarKind::Ours),
            Bar::new("other", 4_000.0, BarKind::Others),
            Bar::new("goal: at most", 2_048.0, BarKind::Goal),
        ];
        let path = std::env::temp_dir().join(format!("rakwire-bench-plot-{}.svg", std::process::id()));
        draw("idle_memory, bytes", &bars, &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        for part in ["rakwire", "1,000", "other", "4,000", "goal: at most", "2,048", "idle_memory, bytes"] {
            assert!(svg.contains(part), "{part:?} in\n{svg}");
        }
    }
}
