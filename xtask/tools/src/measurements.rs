//! Committed tables of sizes and instruction counts, and their comparison with new measurements.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result, bail};

use xtask::log::Log;

/// The maximum growth of a number in percent; more is a failure.
const TOLERANCE: f64 = 2.0;

/// Measured numbers by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measurements {
    /// The version line of the compiler.
    pub(crate) rustc: String,
    pub(crate) rows: BTreeMap<String, u64>,
}

impl Measurements {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let rustc = text.lines().find_map(|line| line.strip_prefix("Compiler: "));
        let rustc = rustc.context("the table contains no compiler version")?.to_owned();
        let rows = text.lines().filter_map(|line| {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let (name, number) = (cells.next()?, cells.next()?);
            Some((name.trim_matches('`').to_owned(), number.replace(',', "").parse().ok()?))
        });
        Ok(Self { rustc, rows: rows.collect() })
    }

    pub(crate) fn write(&self, introduction: &str) -> String {
        let mut text = format!("{introduction}\nCompiler: {}\n\n| what | number |\n|---|---:|\n", self.rustc);
        for (name, number) in &self.rows {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "| `{name}` | {} |", grouped(*number));
        }
        text
    }

    /// Compares measurements with the committed ones. With a different compiler, growth is printed but is no failure.
    pub(crate) fn check(&self, measured: &Self, update: &str, log: &Log) -> Result<()> {
        let is_same_compiler = self.rustc == measured.rustc;
        let mut failures = Vec::new();
        for (name, now) in &measured.rows {
            let Some(before) = self.rows.get(name) else {
                failures.push(format!("{name} is not in the table"));
                continue;
            };
            let growth = 100.0 * (*now as f64 - *before as f64) / (*before).max(1) as f64;
            if growth.abs() >= 0.05 {
                let change = format!("{} -> {}", grouped(*before), grouped(*now));
                log.print(format_args!("{name}: {change} ({growth:+.1} %)"));
            }
            if growth > TOLERANCE {
                failures.push(format!("{name} grew by {growth:.1} %"));
            }
        }
        let gone = self.rows.keys().filter(|name| !measured.rows.contains_key(*name));
        failures.extend(gone.map(|name| format!("{name} was not measured")));
        if !is_same_compiler {
            let (now, before) = (&measured.rustc, &self.rustc);
            log.print(format_args!(
                "measured with {now}, but the table is for {before}: nothing is compared"
            ));
        } else if !failures.is_empty() {
            bail!("{}; if that is intended, run `{update}`", failures.join(", "));
        }
        Ok(())
    }
}

/// Formats a number with thousands separators.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rustc: &str, rows: &[(&str, u64)]) -> Measurements {
        let rows = rows.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        Measurements { rustc: rustc.to_owned(), rows }
    }

    #[test]
    fn a_written_table_parses_to_the_original() {
        let table = table("rustc 1.95.0", &[("flash", 1_234_567), ("ram", 12), ("stack", 999)]);
        let text = table.write("# Sizes\n");
        assert!(text.contains("| `flash` | 1,234,567 |"), "{text}");
        assert_eq!(Measurements::parse(&text).unwrap(), table);
        assert!(Measurements::parse("| a | 1 |").is_err());
    }

    #[test]
    fn growth_fails_and_shrinking_passes() {
        let old = table("a", &[("flash", 1_000)]);
        assert!(old.check(&table("a", &[("flash", 1_020)]), "", &Log::Terminal).is_ok());
        assert!(old.check(&table("a", &[("flash", 500)]), "", &Log::Terminal).is_ok());
        let error =
            old.check(&table("a", &[("flash", 1_021)]), "again", &Log::Terminal).unwrap_err().to_string();
        assert_eq!(error, "flash grew by 2.1 %; if that is intended, run `again`");
        assert!(old.check(&table("b", &[("flash", 2_000)]), "", &Log::Terminal).is_ok());
        assert!(old.check(&table("a", &[("flash", 1), ("ram", 1)]), "", &Log::Terminal).is_err());
        assert!(old.check(&table("a", &[]), "", &Log::Terminal).is_err());
    }
}
