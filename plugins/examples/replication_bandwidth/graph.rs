//! A stacked area graph as SVG.

use std::fmt::Write;
use std::time::Duration;

use super::PARTS;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 100.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;
const COLOURS: [&str; PARTS.len()] = [
    "#1e6eb4", "#5a9bd4", "#2a9d8f", "#8ab17d", "#e9c46a", "#f4a261", "#e76f51", "#b5838d", "#6d597a",
    "#aaaaaa",
];

/// Draws the bytes per second of each part in each tick, from left to right.
pub(super) fn draw(ticks: &[[f64; PARTS.len()]], tick: Duration) -> String {
    let most = ticks.iter().map(|parts| parts.iter().sum::<f64>()).fold(1.0, f64::max);
    let step = (WIDTH - LEFT - RIGHT) / (ticks.len().max(2) - 1) as f64;
    let room = HEIGHT - TOP - BOTTOM;
    let y = |bytes: f64| HEIGHT - BOTTOM - room * bytes / most;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"14\">bytes a second to a client, by field</text>\n"
    );
    let mut floor = vec![0.0; ticks.len()];
    for (part, (name, colour)) in PARTS.into_iter().zip(COLOURS).enumerate() {
        let lower: Vec<f64> = floor.clone();
        for (floor, parts) in floor.iter_mut().zip(ticks) {
            *floor += parts[part];
        }
        let x = |at: usize| LEFT + step * at as f64;
        let upper = floor.iter().enumerate().map(|(at, bytes)| format!("{:.1},{:.1}", x(at), y(*bytes)));
        let lower =
            lower.iter().enumerate().rev().map(|(at, bytes)| format!("{:.1},{:.1}", x(at), y(*bytes)));
        let points: Vec<String> = upper.chain(lower).collect();
        // Writing to a `String` cannot fail.
        let _ = writeln!(svg, "<polygon fill=\"{colour}\" points=\"{}\"/>", points.join(" "));
        let (row, legend) = (HEIGHT - BOTTOM - 18.0 * part as f64, WIDTH - RIGHT + 12.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{legend}\" y=\"{}\" width=\"11\" height=\"11\" fill=\"{colour}\"/>",
            row - 10.0
        );
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{row}\">{name}</text>", legend + 17.0);
    }
    for quarter in 0..=4 {
        let bytes = most * f64::from(quarter) / 4.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{bytes:.0}</text>",
            LEFT - 6.0,
            y(bytes) + 4.0
        );
    }
    let seconds = tick.as_secs_f64() * ticks.len() as f64;
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\">0 s</text>", HEIGHT - 18.0);
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{seconds:.0} s</text>",
        WIDTH - RIGHT,
        HEIGHT - 18.0
    );
    svg.push_str("</svg>\n");
    svg
}
