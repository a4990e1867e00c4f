//! The counters as Prometheus metrics.
//!
//! Nothing is recorded while datagrams pass: the counters are read when somebody asks for them.

use std::fmt;
use std::time::SystemTime;

use metrics::{counter, describe_counter, describe_gauge, gauge, with_local_recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::log::suppressed;
use crate::close::CloseKind;
use crate::counters::{DropReason, Snapshot};

/// What is not counted but true at the moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauges {
    pub(crate) max_clients: usize,
    pub(crate) connections: usize,
    pub(crate) max_connections: usize,
    pub(crate) is_ready: bool,
    pub(crate) is_draining: bool,
    /// When the certificate in use expires.
    pub(crate) certificate_expires: Option<SystemTime>,
}

/// See the module.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        with_local_recorder(&recorder, describe);
        Self { recorder, handle }
    }

    /// All metrics in the text format of Prometheus.
    pub(crate) fn render(&self, snapshot: &Snapshot, gauges: &Gauges) -> String {
        with_local_recorder(&self.recorder, || {
            record_traffic(snapshot);
            record_refusals(snapshot);
            record_gauges(gauges);
        });
        self.handle.render()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

fn describe() {
    describe_gauge!("rakwire_relay_build_info", "The version, as a label; always 1.");
    describe_gauge!("rakwire_relay_ready", "Whether new clients are accepted.");
    describe_gauge!("rakwire_relay_draining", "Whether the relay is about to end.");
    describe_gauge!("rakwire_relay_clients", "Connected clients.");
    describe_gauge!("rakwire_relay_clients_max", "The limit of connected clients.");
    describe_gauge!("rakwire_relay_connections", "Open TCP connections, those of clients included.");
    describe_gauge!("rakwire_relay_connections_max", "The limit of open TCP connections.");
    describe_gauge!(
        "rakwire_relay_certificate_expiry_timestamp_seconds",
        "When the TLS certificate in use expires."
    );
    describe_counter!("rakwire_relay_sessions_total", "Clients that were admitted.");
    describe_counter!("rakwire_relay_datagrams_total", "Relayed datagrams.");
    describe_counter!("rakwire_relay_bytes_total", "Payload of relayed datagrams, in bytes.");
    describe_counter!("rakwire_relay_drops_total", "Dropped datagrams.");
    describe_counter!("rakwire_relay_closes_total", "Clients that were closed or rejected by a close code.");
    describe_counter!(
        "rakwire_relay_refusals_total",
        "Connections and requests that were refused before they became a client."
    );
    describe_counter!(
        "rakwire_relay_server_unreachable_total",
        "Reports of the network that a game server is unreachable."
    );
    describe_counter!("rakwire_relay_log_lines_suppressed_total", "Lines that the limit of the log left out.");
}

fn record_traffic(snapshot: &Snapshot) {
    gauge!("rakwire_relay_clients").set(snapshot.clients as f64);
    counter!("rakwire_relay_sessions_total").absolute(snapshot.sessions);
    for (direction, traffic) in [("to_server", snapshot.to_server), ("to_client", snapshot.to_client)] {
        counter!("rakwire_relay_datagrams_total", "direction" => direction).absolute(traffic.datagrams);
        counter!("rakwire_relay_bytes_total", "direction" => direction).absolute(traffic.bytes);
    }
    for reason in DropReason::ALL {
        counter!("rakwire_relay_drops_total", "reason" => label(reason)).absolute(snapshot.drops(reason));
    }
    for kind in CloseKind::ALL {
        counter!("rakwire_relay_closes_total", "reason" => label(kind)).absolute(snapshot.closes(kind));
    }
    counter!("rakwire_relay_server_unreachable_total").absolute(snapshot.unreachable);
}

fn record_refusals(snapshot: &Snapshot) {
    let refusals = [
        ("origin", snapshot.origins_refused),
        ("connections_max", snapshot.connections_refused),
        ("header_timeout", snapshot.headers_timed_out),
    ];
    for (reason, count) in refusals {
        counter!("rakwire_relay_refusals_total", "reason" => reason).absolute(count);
    }
    counter!("rakwire_relay_log_lines_suppressed_total").absolute(suppressed());
}

fn record_gauges(gauges: &Gauges) {
    gauge!("rakwire_relay_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    gauge!("rakwire_relay_clients_max").set(gauges.max_clients as f64);
    gauge!("rakwire_relay_connections").set(gauges.connections as f64);
    gauge!("rakwire_relay_connections_max").set(gauges.max_connections as f64);
    gauge!("rakwire_relay_ready").set(f64::from(u8::from(gauges.is_ready)));
    gauge!("rakwire_relay_draining").set(f64::from(u8::from(gauges.is_draining)));
    let since_1970 = gauges.certificate_expires.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    if let Some(since_1970) = since_1970 {
        gauge!("rakwire_relay_certificate_expiry_timestamp_seconds").set(since_1970.as_secs_f64());
    }
}

/// The name of a reason as a label: `ServerQueueFull` is `server_queue_full`.
fn label(reason: impl fmt::Debug) -> String {
    let mut label = String::new();
    for character in format!("{reason:?}").chars() {
        if character.is_uppercase() && !label.is_empty() {
            label.push('_');
        }
        label.extend(character.to_lowercase());
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;

    #[test]
    fn counts_have_labels_and_are_there_from_the_start() {
        let counters = Counters::default();
        counters.client_connected();
        counters.sent_to_client(100);
        counters.dropped(DropReason::ClientQueueFull);
        let gauges = Gauges {
            max_clients: 10,
            connections: 2,
            max_connections: 84,
            is_ready: true,
            is_draining: false,
            certificate_expires: None,
        };
        let metrics = Metrics::new();
        let text = metrics.render(&counters.snapshot(), &gauges);
        for line in [
            "# TYPE rakwire_relay_drops_total counter",
            "rakwire_relay_drops_total{reason=\"client_queue_full\"} 1",
            "rakwire_relay_drops_total{reason=\"send_refused\"} 0",
            "rakwire_relay_closes_total{reason=\"shutting_down\"} 0",
            "rakwire_relay_bytes_total{direction=\"to_client\"} 100",
            "rakwire_relay_clients 1",
            "rakwire_relay_connections_max 84",
            "rakwire_relay_ready 1",
        ] {
            assert!(text.lines().any(|present| present == line), "{line} is missing:\n{text}");
        }
        counters.dropped(DropReason::ClientQueueFull);
        let later = metrics.render(&counters.snapshot(), &gauges);
        assert!(later.contains("rakwire_relay_drops_total{reason=\"client_queue_full\"} 2"), "{later}");
    }

    #[test]
    fn every_metric_is_described() {
        let metrics = Metrics::new();
        let gauges = Gauges {
            max_clients: 1,
            connections: 0,
            max_connections: 66,
            is_ready: false,
            is_draining: true,
            certificate_expires: Some(SystemTime::now()),
        };
        let text = metrics.render(&Counters::default().snapshot(), &gauges);
        let helped = text.lines().filter(|line| line.starts_with("# HELP ")).count();
        let typed = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
        assert_eq!(helped, typed, "{text}");
        assert!(typed >= 15, "{text}");
    }
}
