//! The results of a measurement, as a table and as JSON.

use std::fmt::Write;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::json;

/// The reported percentiles.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9), ("max", 100.0)];

/// The number of unreliable messages sent, and how many of them arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Losses {
    pub(super) sent: u64,
    pub(super) arrived: u64,
}

impl Losses {
    fn percent(self) -> f64 {
        if self.sent == 0 { 0.0 } else { (self.sent - self.arrived) as f64 * 100.0 / self.sent as f64 }
    }
}

/// The messages that arrived, and the time from the first send to the report of their count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Throughput {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) took: Duration,
}

impl Throughput {
    fn messages_per_second(self) -> f64 {
        self.messages as f64 / self.took.as_secs_f64()
    }

    fn megabytes_per_second(self) -> f64 {
        self.bytes as f64 / 1e6 / self.took.as_secs_f64()
    }
}

/// The MTU of the connection in bytes, including IP and UDP headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mtu {
    /// The MTU before the measurements; `None` if the connection was closed.
    before: Option<u16>,
    after: Option<u16>,
}

impl Mtu {
    pub(super) const fn new(before: Option<u16>, after: Option<u16>) -> Self {
        Self { before, after }
    }

    fn text(self) -> String {
        match (self.before, self.after) {
            (Some(before), Some(after)) if before != after => format!("{before} to {after}"),
            (_, Some(mtu)) | (Some(mtu), None) => mtu.to_string(),
            (None, None) => "unknown".to_owned(),
        }
    }
}

/// All results.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    /// Round-trip times in microseconds.
    pub(super) round_trips: Histogram<u64>,
    pub(super) losses: Losses,
    pub(super) throughput: Throughput,
    pub(super) datagrams_lost: u64,
    pub(super) mtu: Mtu,
}

impl Summary {
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<22} {value:>14}");
        };
        line("round trips", self.round_trips.len().to_string());
        for (name, percent) in PERCENTILES {
            let millis = self.round_trips.value_at_percentile(percent) as f64 / 1e3;
            line(&format!("  {name}"), format!("{millis:.3} ms"));
        }
        line("unreliable lost", format!("{:.2} %", self.losses.percent()));
        line("throughput", format!("{:.2} MB/s", self.throughput.megabytes_per_second()));
        line("", format!("{:.0} messages/s", self.throughput.messages_per_second()));
        line("datagrams lost", self.datagrams_lost.to_string());
        line("MTU", self.mtu.text());
        text
    }

    pub(super) fn json(&self) -> String {
        let percentiles = PERCENTILES
            .map(|(name, percent)| (name.to_owned(), json!(self.round_trips.value_at_percentile(percent))));
        let value = json!({
            "round_trip_us": serde_json::Map::from_iter(percentiles),
            "round_trips": self.round_trips.len(),
            "unreliable": { "sent": self.losses.sent, "arrived": self.losses.arrived, "lost_percent": self.losses.percent() },
            "throughput": {
                "messages": self.throughput.messages,
                "bytes": self.throughput.bytes,
                "seconds": self.throughput.took.as_secs_f64(),
                "messages_per_second": self.throughput.messages_per_second(),
                "megabytes_per_second": self.throughput.megabytes_per_second(),
            },
            "datagrams_lost": self.datagrams_lost,
            "mtu": { "before": self.mtu.before, "after": self.mtu.after },
        });
        format!("{value:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        let mut round_trips = Histogram::new_with_max(1_000_000, 3).unwrap();
        for micros in 1..=1_000 {
            round_trips.record(micros).unwrap();
        }
        let throughput = Throughput { messages: 1_000, bytes: 4_000_000, took: Duration::from_secs(2) };
        let mtu = Mtu::new(Some(1_492), Some(1_200));
        Summary {
            round_trips,
            losses: Losses { sent: 200, arrived: 190 },
            throughput,
            datagrams_lost: 3,
            mtu,
        }
    }

    #[test]
    fn the_table_has_all_results() {
        let table = summary().table();
        for part in ["0.500 ms", "0.990 ms", "5.00 %", "2.00 MB/s", "500 messages/s", "1492 to 1200"] {
            assert!(table.contains(part), "{part:?} in\n{table}");
        }
    }

    #[test]
    fn the_json_has_all_results() {
        let value: serde_json::Value = serde_json::from_str(&summary().json()).unwrap();
        assert_eq!(value["round_trip_us"]["p99"], 990);
        assert_eq!(value["unreliable"]["lost_percent"], 5.0);
        assert_eq!(value["throughput"]["messages_per_second"], 500.0);
        assert_eq!((&value["mtu"]["before"], &value["mtu"]["after"]), (&1_492.into(), &1_200.into()));
    }
}
