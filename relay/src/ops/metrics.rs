//! The counters as Prometheus metrics.
//!
//! Metrics cost nothing while datagrams pass: the counters are read on request.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use metrics::{counter, describe_counter, describe_gauge, gauge, with_local_recorder};
use metrics_exporter_prometheus::PrometheusBuilder;

use super::log::{lost, suppressed};
use crate::addresses::TargetName;
use crate::close::CloseKind;
use crate::counters::{Snapshot, TransportKind, label};
use crate::flow::{Direction, DropReason, Unreachable};
use crate::front::{FrontDropReason, FrontSnapshot};
use crate::webrtc::{WebRtcDropReason, WebRtcSnapshot};

/// Values that change in both directions, unlike counters.
#[derive(Debug, Clone)]
pub(crate) struct Gauges {
    pub(crate) max_clients: usize,
    pub(crate) connections: usize,
    pub(crate) max_connections: usize,
    pub(crate) is_ready: bool,
    pub(crate) is_draining: bool,
    /// The expiry of the certificate in use.
    pub(crate) certificate_expires: Option<SystemTime>,
    /// The health of the targets.
    pub(crate) targets: Vec<TargetHealth>,
    /// Bans imposed while the relay runs.
    pub(crate) operator_bans: usize,
    /// The rate limit of all clients together; zero is unlimited.
    pub(crate) total_bytes_per_second: usize,
}

/// The health of a target.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetHealth {
    pub(crate) name: TargetName,
    /// True if the target has answered within three seconds; `None` if it is not probed.
    pub(crate) is_up: Option<bool>,
    /// The latency of the target's last answer.
    pub(crate) latency: Option<Duration>,
    /// The state of each address of a target with several: true if it is up.
    pub(crate) addresses: Vec<(SocketAddr, bool)>,
}

/// Formats all metrics in the Prometheus text format. All metrics are registered anew on each call, so that those of
/// removed targets disappear.
pub(crate) fn render(
    snapshot: &Snapshot,
    front: &FrontSnapshot,
    webrtc: &WebRtcSnapshot,
    gauges: &Gauges,
) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    with_local_recorder(&recorder, || {
        describe_gauges();
        describe_front_counters();
        describe_relay_counters();
        record_traffic(snapshot);
        record_front(front);
        record_webrtc(webrtc);
        record_refusals(snapshot);
        record_gauges(gauges);
    });
    recorder.handle().render()
}

fn describe_gauges() {
    describe_gauge!("rakwire_relay_build_info", "The version, as a label; always 1.");
    describe_gauge!("rakwire_relay_ready", "Whether new clients are accepted.");
    describe_gauge!("rakwire_relay_draining", "Whether the relay is shutting down.");
    describe_gauge!("rakwire_relay_clients", "Connected clients.");
    describe_gauge!("rakwire_relay_clients_max", "The limit of connected clients.");
    describe_gauge!(
        "rakwire_relay_connections",
        "Open connections by TCP (including clients), by WebTransport and by data channels."
    );
    describe_gauge!("rakwire_relay_connections_max", "The limit of open connections.");
    describe_gauge!(
        "rakwire_relay_certificate_expiry_timestamp_seconds",
        "The expiry of the TLS certificate in use, in seconds since 1970."
    );
    describe_gauge!(
        "rakwire_relay_target_up",
        "Whether a RakNet game server has answered a ping of the relay in the last three seconds."
    );
    describe_gauge!(
        "rakwire_relay_target_address_up",
        "Whether an address of a target with several addresses counts as up. An address of a RakNet target \
         counts as up while it answers the relay's pings. Any other address counts as up, unless the network \
         reported in the last 30 s that its port is closed, or clients of three networks had no answer for 10 s."
    );
    describe_gauge!(
        "rakwire_relay_target_latency_seconds",
        "The time between the last ping of the relay that the game server answered and its pong."
    );
    describe_gauge!(
        "rakwire_relay_bytes_per_second_max",
        "The limit of payload bytes per second for all clients together in each direction; 0 means no limit."
    );
    describe_gauge!(
        "rakwire_relay_operator_bans",
        "Bans that the operator imposed through the admin socket."
    );
    describe_gauge!("rakwire_relay_flows_detached", "Flows whose client lost its connection and may resume.");
    describe_gauge!("rakwire_relay_front_clients", "Clients of the UDP front.");
    describe_gauge!(
        "rakwire_relay_transport_connections",
        "Open connections of clients by transport, including those without a flow."
    );
}

fn describe_front_counters() {
    describe_counter!("rakwire_relay_front_flows_total", "Flows of clients of the front since the start.");
    describe_counter!("rakwire_relay_front_datagrams_total", "Datagrams that the front relayed.");
    describe_counter!(
        "rakwire_relay_front_bytes_total",
        "Payload of datagrams that the front relayed, in bytes."
    );
    describe_counter!(
        "rakwire_relay_front_answers_total",
        "Pongs and challenges that the front sent on behalf of the server."
    );
    describe_counter!("rakwire_relay_front_drops_total", "Datagrams that the front dropped.");
    describe_counter!(
        "rakwire_relay_webrtc_checks_answered_total",
        "Connectivity checks of data channels that were answered."
    );
    describe_counter!(
        "rakwire_relay_webrtc_challenges_total",
        "Connectivity checks of data channels to whose source the relay sent a check of its own."
    );
    describe_counter!(
        "rakwire_relay_webrtc_sessions_total",
        "Data channel sessions by the stage that they reached."
    );
    describe_counter!("rakwire_relay_webrtc_drops_total", "Datagrams of data channels that were dropped.");
}

fn describe_relay_counters() {
    describe_counter!("rakwire_relay_flows_total", "Flows of clients since the start.");
    describe_counter!("rakwire_relay_flows_resumed_total", "Flows resumed by their client.");
    describe_counter!("rakwire_relay_datagrams_total", "Relayed datagrams.");
    describe_counter!("rakwire_relay_bytes_total", "Payload of relayed datagrams, in bytes.");
    describe_counter!("rakwire_relay_drops_total", "Dropped datagrams.");
    describe_counter!(
        "rakwire_relay_transport_connections_total",
        "Connections of clients by transport since the start."
    );
    describe_counter!(
        "rakwire_relay_closes_total",
        "Clients that were closed or rejected with a close code."
    );
    describe_counter!(
        "rakwire_relay_refusals_total",
        "Connections and requests that were refused before the client had a flow."
    );
    describe_counter!(
        "rakwire_relay_ended_by_operator_total",
        "Flows that the operator closed through the admin socket, by kicks and bans."
    );
    describe_counter!(
        "rakwire_relay_server_unreachable_total",
        "Reports of the network or this machine that a game server is unreachable."
    );
    describe_counter!(
        "rakwire_relay_announced_servers_total",
        "Servers that were announced, and servers whose announcement ended."
    );
    describe_counter!(
        "rakwire_relay_announcements_refused_total",
        "Announcements of servers that the relay rejected."
    );
    describe_counter!(
        "rakwire_relay_store_failures_total",
        "Failed reads of the store of servers; the log has the reason for the first failure."
    );
    describe_counter!(
        "rakwire_relay_log_lines_suppressed_total",
        "Log lines that were omitted because of log.lines_per_second."
    );
    describe_counter!(
        "rakwire_relay_log_lines_lost_total",
        "Log lines that could not be written, for example because the disk was full."
    );
}

fn record_traffic(snapshot: &Snapshot) {
    for (name, counts) in snapshot.targets() {
        let target = || name.as_str().to_owned();
        gauge!("rakwire_relay_clients", "target" => target()).set(counts.clients as f64);
        gauge!("rakwire_relay_flows_detached", "target" => target()).set(counts.detached as f64);
        counter!("rakwire_relay_flows_total", "target" => target()).absolute(counts.flows);
        counter!("rakwire_relay_flows_resumed_total", "target" => target()).absolute(counts.resumed);
        for (direction, traffic) in
            [(Direction::ToServer, counts.to_server), (Direction::ToClient, counts.to_client)]
        {
            let labels = [("target", target()), ("direction", label(direction))];
            counter!("rakwire_relay_datagrams_total", &labels).absolute(traffic.datagrams);
            counter!("rakwire_relay_bytes_total", &labels).absolute(traffic.bytes);
        }
        for reason in Unreachable::ALL {
            let labels = [("target", target()), ("reason", label(reason))];
            counter!("rakwire_relay_server_unreachable_total", &labels).absolute(counts.unreachable(reason));
        }
        for reason in DropReason::ALL {
            let direction = label(reason.direction());
            let labels =
                [("target", target()), ("direction", direction), ("reason", reason.name().to_owned())];
            counter!("rakwire_relay_drops_total", &labels).absolute(counts.drops(reason));
        }
    }
    for kind in TransportKind::ALL {
        let (counts, name) = (snapshot.transport(kind), || kind.to_string());
        gauge!("rakwire_relay_transport_connections", "transport" => name()).set(counts.open as f64);
        counter!("rakwire_relay_transport_connections_total", "transport" => name()).absolute(counts.opened);
    }
    for kind in CloseKind::ALL {
        counter!("rakwire_relay_closes_total", "reason" => label(kind)).absolute(snapshot.closes(kind));
    }
}

fn record_front(front: &FrontSnapshot) {
    gauge!("rakwire_relay_front_clients").set(front.flows as f64);
    counter!("rakwire_relay_front_flows_total").absolute(front.opened);
    counter!("rakwire_relay_front_answers_total").absolute(front.answers);
    for (direction, (datagrams, bytes)) in
        [(Direction::ToServer, front.to_server), (Direction::ToClient, front.to_client)]
    {
        counter!("rakwire_relay_front_datagrams_total", "direction" => label(direction)).absolute(datagrams);
        counter!("rakwire_relay_front_bytes_total", "direction" => label(direction)).absolute(bytes);
    }
    for reason in FrontDropReason::ALL {
        counter!("rakwire_relay_front_drops_total", "reason" => label(reason)).absolute(front.drops(reason));
    }
}

fn record_webrtc(webrtc: &WebRtcSnapshot) {
    counter!("rakwire_relay_webrtc_checks_answered_total").absolute(webrtc.answers);
    counter!("rakwire_relay_webrtc_challenges_total").absolute(webrtc.challenges);
    for (state, count) in [
        ("begun", webrtc.begun),
        ("secured", webrtc.secured),
        ("connected", webrtc.connected),
        ("failed", webrtc.failed),
    ] {
        counter!("rakwire_relay_webrtc_sessions_total", "state" => state).absolute(count);
    }
    for reason in WebRtcDropReason::ALL {
        counter!("rakwire_relay_webrtc_drops_total", "reason" => label(reason))
            .absolute(webrtc.drops(reason));
    }
}

fn record_refusals(snapshot: &Snapshot) {
    let refusals = [
        ("origin", snapshot.origins_refused),
        ("banned", snapshot.bans_refused),
        ("connection_limit", snapshot.connections_refused),
        ("request_limit", snapshot.requests_refused),
        ("header_timeout", snapshot.headers_timed_out),
        ("handshake_limit", snapshot.handshakes_refused),
        ("handshake", snapshot.handshakes_failed),
        ("handshake_timeout", snapshot.handshakes_timed_out),
        ("proxy_header", snapshot.proxy_headers_refused),
        ("stalled", snapshot.stalled),
    ];
    for (reason, count) in refusals {
        counter!("rakwire_relay_refusals_total", "reason" => reason).absolute(count);
    }
    for (order, count) in [("kick", snapshot.kicked), ("ban", snapshot.ended_by_bans)] {
        counter!("rakwire_relay_ended_by_operator_total", "order" => order).absolute(count);
    }
    for (change, count) in [("arrived", snapshot.servers_arrived), ("departed", snapshot.servers_departed)] {
        counter!("rakwire_relay_announced_servers_total", "change" => change).absolute(count);
    }
    counter!("rakwire_relay_announcements_refused_total").absolute(snapshot.announcements_refused);
    counter!("rakwire_relay_store_failures_total").absolute(snapshot.store_failures);
    counter!("rakwire_relay_log_lines_suppressed_total").absolute(suppressed());
    counter!("rakwire_relay_log_lines_lost_total").absolute(lost());
}

fn record_gauges(gauges: &Gauges) {
    gauge!("rakwire_relay_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    gauge!("rakwire_relay_clients_max").set(gauges.max_clients as f64);
    gauge!("rakwire_relay_connections").set(gauges.connections as f64);
    gauge!("rakwire_relay_connections_max").set(gauges.max_connections as f64);
    gauge!("rakwire_relay_bytes_per_second_max").set(gauges.total_bytes_per_second as f64);
    gauge!("rakwire_relay_operator_bans").set(gauges.operator_bans as f64);
    gauge!("rakwire_relay_ready").set(f64::from(u8::from(gauges.is_ready)));
    gauge!("rakwire_relay_draining").set(f64::from(u8::from(gauges.is_draining)));
    let since_1970 = gauges.certificate_expires.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    for TargetHealth { name, is_up, latency, addresses } in &gauges.targets {
        for (address, is_up) in addresses {
            let labels = [("target", name.to_string()), ("address", address.to_string())];
            gauge!("rakwire_relay_target_address_up", &labels).set(f64::from(u8::from(*is_up)));
        }
        let Some(is_up) = is_up else { continue };
        gauge!("rakwire_relay_target_up", "target" => name.to_string()).set(f64::from(u8::from(*is_up)));
        if let Some(latency) = latency {
            gauge!("rakwire_relay_target_latency_seconds", "target" => name.to_string())
                .set(latency.as_secs_f64());
        }
    }
    if let Some(since_1970) = since_1970 {
        gauge!("rakwire_relay_certificate_expiry_timestamp_seconds").set(since_1970.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::front::FrontCounters;
    use crate::webrtc::WebRtcCounters;

    fn text_of(counters: &Counters, front: &FrontCounters) -> String {
        let name = "game".parse().unwrap();
        let game = TargetHealth {
            name,
            is_up: Some(true),
            latency: Some(Duration::from_millis(2)),
            addresses: vec![("127.0.0.1:1".parse().unwrap(), false)],
        };
        let gauges = Gauges { targets: vec![game], ..GAUGES };
        render(&counters.snapshot(), &front.snapshot(), &WebRtcCounters::default().snapshot(), &gauges)
    }

    const GAUGES: Gauges = Gauges {
        max_clients: 10,
        connections: 2,
        max_connections: 84,
        is_ready: true,
        is_draining: false,
        certificate_expires: Some(SystemTime::UNIX_EPOCH),
        targets: Vec::new(),
        operator_bans: 0,
        total_bytes_per_second: 0,
    };

    /// Returns the counters of a relay with a target.
    fn counters() -> Counters {
        let counters = Counters::default();
        counters.target(&"game".parse().unwrap());
        counters
    }

    #[test]
    fn labelled_counters_exist_from_the_start() {
        let counters = counters();
        let front = FrontCounters::default();
        let text = text_of(&counters, &front);
        for line in [
            "# TYPE rakwire_relay_drops_total counter",
            "rakwire_relay_drops_total{target=\"game\",direction=\"to_client\",reason=\"queue_full\"} 0",
            "rakwire_relay_drops_total{target=\"game\",direction=\"to_server\",reason=\"send_refused\"} 0",
            "rakwire_relay_closes_total{reason=\"shutting_down\"} 0",
            "rakwire_relay_bytes_total{target=\"game\",direction=\"to_client\"} 0",
            "rakwire_relay_clients{target=\"game\"} 0",
            "rakwire_relay_connections_max 84",
            "rakwire_relay_ready 1",
            "rakwire_relay_target_up{target=\"game\"} 1",
            "rakwire_relay_target_address_up{target=\"game\",address=\"127.0.0.1:1\"} 0",
            "rakwire_relay_target_latency_seconds{target=\"game\"} 0.002",
            "rakwire_relay_transport_connections{transport=\"websocket\"} 0",
            "rakwire_relay_front_clients 0",
            "rakwire_relay_front_drops_total{reason=\"not_admitted\"} 0",
            "rakwire_relay_front_bytes_total{direction=\"to_server\"} 0",
            "rakwire_relay_webrtc_sessions_total{state=\"connected\"} 0",
            "rakwire_relay_webrtc_drops_total{reason=\"wrong_password\"} 0",
        ] {
            assert!(text.lines().any(|present| present == line), "{line} is missing:\n{text}");
        }
        counters.closed(CloseKind::ShuttingDown);
        front.dropped(FrontDropReason::NotAdmitted);
        counters.retain(|_| false);
        let later = text_of(&counters, &front);
        assert!(later.contains("rakwire_relay_closes_total{reason=\"shutting_down\"} 1"), "{later}");
        assert!(later.contains("rakwire_relay_front_drops_total{reason=\"not_admitted\"} 1"), "{later}");
        assert!(!later.contains("bytes_total{target="), "the removed target has no metrics: {later}");
    }

    #[test]
    fn every_metric_is_described() {
        let text = text_of(&counters(), &FrontCounters::default());
        let helped = text.lines().filter(|line| line.starts_with("# HELP ")).count();
        let typed = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
        assert_eq!(helped, typed, "{text}");
        assert!(typed >= 15, "{text}");
    }
}
