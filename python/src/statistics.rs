//! Converts counters to keyword arguments of the Python dataclasses.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rakwire_native::{ConnectionStats, EndpointStats};

/// Fills a dictionary with the named fields of a value.
macro_rules! fields {
    ($dict:ident, $from:expr, $($field:ident),+ $(,)?) => {
        $( $dict.set_item(pyo3::intern!($dict.py(), stringify!($field)), $from.$field)?; )+
    };
}

/// Returns the fields of EndpointStats.
pub(crate) fn of_endpoint<'py>(py: Python<'py>, stats: &EndpointStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    fields!(dict, stats.peer, datagrams_received, bytes_received, datagrams_sent, bytes_sent);
    fields!(
        dict,
        stats,
        connections,
        too_long,
        arrival_queue_full,
        receive_queue_full,
        backlog_full,
        unconnected_queue_full,
        refused_clients,
        send_failures,
        receive_failures,
        proxy_headers_refused,
    );
    let drops = PyDict::new(py);
    for (reason, count) in stats.peer.drops().filter(|(_, count)| *count > 0) {
        drops.set_item(format!("{reason:?}"), count)?;
    }
    dict.set_item("drops", drops)?;
    Ok(dict)
}

/// Returns the fields of ConnectionStats.
pub(crate) fn of_connection<'py>(py: Python<'py>, stats: &ConnectionStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    fields!(
        dict,
        stats,
        messages_sent,
        messages_received,
        datagrams_sent,
        datagrams_received,
        datagrams_lost,
        datagrams_late,
        datagrams_acknowledged,
        clock_difference,
        congestion_window,
        in_flight,
        mtu,
    );
    let totals = [
        ("bytes_pushed", stats.bytes_pushed),
        ("bytes_sent", stats.bytes_sent),
        ("bytes_resent", stats.bytes_resent),
        ("bytes_processed", stats.bytes_processed),
        ("bytes_ignored", stats.bytes_ignored),
        ("actual_bytes_sent", stats.actual_bytes_sent),
        ("actual_bytes_received", stats.actual_bytes_received),
    ];
    for (name, amount) in totals {
        dict.set_item(name, amount.total)?;
    }
    dict.set_item("waiting_messages", stats.waiting.iter().map(|waiting| waiting.messages).sum::<u32>())?;
    dict.set_item(
        "waiting_bytes",
        stats.waiting.iter().map(|waiting| u64::from(waiting.bytes)).sum::<u64>(),
    )?;
    dict.set_item("waiting_resends", stats.waiting_resends.messages)?;
    let times = [
        ("round_trip", stats.round_trip),
        ("last_ping", stats.last_ping),
        ("average_ping", stats.average_ping),
        ("lowest_ping", stats.lowest_ping),
    ];
    for (name, time) in times {
        dict.set_item(name, time.as_secs_f64())?;
    }
    dict.set_item("loss", stats.loss())?;
    dict.set_item("loss_last_second", stats.loss_last_second())?;
    Ok(dict)
}
