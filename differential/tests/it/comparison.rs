//! Tests the comparison of traces without running a library.

use rakwire_differential::compare::{Comparison, Rule, compare};
use rakwire_differential::script::{Script, parse};
use rakwire_differential::trace::{Entry, Message, Trace};

fn script(steps: &str) -> Script {
    parse(&format!("script test\n{steps}")).expect("a script").remove(0)
}

const CLEAN: &str = "a start 8 8\nb start 1 0\n";
const LOSSY: &str = "network loss 0.1\na start 8 8\nb start 1 0\n";
const CLOSING: &str = "a start 8 8\nb start 1 0\nb close @a notify\n";

fn message(reliability: u8, channel: u8, number: u32) -> Entry {
    Entry::Message(Message { from: "b".to_owned(), reliability, channel, number, size: 50 })
}

fn connection(event: &str) -> Entry {
    Entry::Connection { event: event.to_owned(), with: "b".to_owned() }
}

fn receipt(number: i64, is_acknowledged: bool) -> Entry {
    Entry::Receipt { with: "b".to_owned(), number, is_acknowledged }
}

/// Returns a trace in which `a` has an incoming connection, followed by these entries.
fn trace(entries: &[Entry]) -> Trace {
    let mut all = vec![connection("incoming")];
    all.extend_from_slice(entries);
    Trace { names: ["a", "b", "c"].map(str::to_owned).to_vec(), peers: vec![all, Vec::new(), Vec::new()] }
}

fn compared(steps: &str, one: &[Entry], two: &[Entry]) -> Comparison {
    compare(&script(steps), &trace(one), &trace(two))
}

#[track_caller]
fn permitted(steps: &str, one: &[Entry], two: &[Entry], rule: Rule) {
    let comparison = compared(steps, one, two);
    assert!(comparison.differences.is_empty(), "{:?}", comparison.differences);
    assert_eq!(comparison.applied.get(&rule), Some(&1), "{:?}", comparison.applied);
}

#[track_caller]
fn found(steps: &str, one: &[Entry], two: &[Entry]) {
    assert!(!compared(steps, one, two).differences.is_empty());
}

#[test]
fn equal_traces_have_no_differences() {
    let entries = [message(3, 0, 1), message(0, 0, 2), receipt(1, true), connection("disconnected")];
    assert_eq!(compared(CLEAN, &entries, &entries), Comparison::default());
}

#[test]
fn missing_or_reordered_ordered_messages_are_a_difference() {
    let all = [message(3, 0, 1), message(3, 0, 2), message(3, 0, 3)];
    found(CLEAN, &all, &all[..2]);
    found(LOSSY, &all, &all[..2]);
    found(LOSSY, &all, &[message(3, 0, 2), message(3, 0, 1), message(3, 0, 3)]);
    found(CLEAN, &all[..2], &all);
}

#[test]
fn order_is_compared_within_a_channel_across_receipt_variants() {
    let one = [message(3, 0, 1), message(3, 1, 2)];
    assert_eq!(compared(CLEAN, &one, &[message(3, 1, 2), message(3, 0, 1)]), Comparison::default());
    found(CLEAN, &[message(3, 0, 1), message(7, 0, 2)], &[message(7, 0, 2), message(3, 0, 1)]);
}

#[test]
fn ordered_messages_may_be_cut_off_by_a_close_but_have_no_gap() {
    let all = [message(3, 0, 1), message(3, 0, 2), message(3, 0, 3)];
    permitted(CLOSING, &all, &all[..1], Rule::CutOff);
    found(CLOSING, &all, &[message(3, 0, 1), message(3, 0, 3)]);
}

#[test]
fn messages_awaited_by_the_script_must_not_be_cut_off() {
    let waited = |close: &str| format!("{CLEAN}b send @a 3 0 1 50 3\nwait a messages 3\n{close}\n");
    let all = [message(3, 0, 1), message(3, 0, 2), message(3, 0, 3)];
    found(&waited("b close @a notify"), &all, &all[..2]);
    found(&waited("a shutdown 100"), &all, &all[..2]);
    let unwaited = format!("{CLEAN}b send @a 3 0 1 50 3\nb close @a notify\n");
    permitted(&unwaited, &all, &all[..2], Rule::CutOff);
    found(&format!("{CLEAN}c start 1 0\nb send @a 3 0 1 50 3\nc close @a notify\n"), &all, &all[..2]);
}

#[test]
fn a_close_may_cut_off_unordered_messages_in_only_one_trace() {
    let one = [message(2, 0, 1), message(2, 0, 2), message(2, 0, 3)];
    permitted(CLOSING, &one, &one[1..], Rule::CutOff);
    found(CLOSING, &one[..2], &one[1..]);
    let unreliable = [message(0, 0, 1), message(0, 0, 2), message(0, 0, 3)];
    permitted(CLOSING, &unreliable[..1], &unreliable, Rule::CutOff);
    found(CLOSING, &unreliable[..2], &unreliable[1..]);
}

#[test]
fn reliable_messages_may_be_reordered_but_not_lost_or_duplicated() {
    let one = [message(2, 0, 1), message(2, 0, 2)];
    permitted(CLEAN, &one, &[message(2, 0, 2), message(2, 0, 1)], Rule::Unordered);
    found(LOSSY, &one, &one[..1]);
    found(LOSSY, &one, &[message(2, 0, 1), message(2, 0, 2), message(2, 0, 2)]);
}

#[test]
fn unreliable_messages_may_be_lost_only_on_a_lossy_path() {
    let one = [message(0, 0, 1), message(0, 0, 2)];
    found(CLEAN, &one, &one[..1]);
    permitted(LOSSY, &one, &one[..1], Rule::Path);
    found(LOSSY, &one, &[message(0, 0, 1), message(0, 0, 1)]);
}

#[test]
fn sequenced_messages_may_be_overtaken_on_a_lossy_path_but_not_reordered() {
    let one = [message(4, 0, 1), message(4, 0, 2), message(4, 0, 3)];
    permitted(LOSSY, &one, &[message(4, 0, 3)], Rule::Overtaken);
    found(LOSSY, &one, &one[..2]);
    found(CLEAN, &one, &[message(4, 0, 3)]);
    found(LOSSY, &[message(1, 0, 1), message(1, 0, 2)], &[message(1, 0, 2), message(1, 0, 1)]);
}

#[test]
fn receipts_may_be_reordered_and_a_lossy_path_may_change_unreliable_outcomes() {
    let sends = |reliability: u8| format!("{LOSSY}a send @b {reliability} 0 1 50 2\n");
    let one = [receipt(1, true), receipt(2, true)];
    let two = [receipt(1, true), receipt(2, false)];
    permitted(CLEAN, &one, &[receipt(2, true), receipt(1, true)], Rule::ReceiptOrder);
    found(CLEAN, &one, &two);
    permitted(&sends(5), &one, &two, Rule::Path);
    found(&sends(5), &one, &one[..1]);
    found(&sends(6), &one, &two);
    found(&sends(7), &one, &two);
}

#[test]
fn an_acknowledged_message_must_be_in_the_trace_of_the_remote() {
    let script = script(&format!("{CLEAN}a send @b 6 0 1 50 2\nsettle\n"));
    let arrived = |number| {
        Entry::Message(Message { from: "a".to_owned(), reliability: 6, channel: 0, number, size: 50 })
    };
    let with = |messages: &[Entry]| {
        let mut trace = trace(&[receipt(1, true), receipt(2, true)]);
        trace.peers[1].push(Entry::Connection { event: "accepted".to_owned(), with: "a".to_owned() });
        trace.peers[1].extend_from_slice(messages);
        trace
    };
    let (all, one) = (with(&[arrived(1), arrived(2)]), with(&[arrived(1)]));
    assert_eq!(compare(&script, &all, &all), Comparison::default());
    let broken = compare(&script, &one, &one).differences;
    assert!(broken.iter().any(|difference| difference.stream == "promise of receipts of b"), "{broken:?}");
}

#[test]
fn changed_texts_of_unconnected_messages_are_reported_on_a_lossy_path() {
    let steps = format!("{LOSSY}b pong one\na ping @b\nb out-of-band @a word\n");
    let text = |text: &str| Entry::Unconnected(text.to_owned());
    let all = [text("pong from b one"), text("out-of-band from b word")];
    permitted(&steps, &all, &all[..1], Rule::Path);
    permitted(&steps, &all, &[all[0].clone(), all[0].clone()], Rule::Path);
    found(&steps, &all, &[text("pong from b two"), all[1].clone()]);
    found(&steps, &all, &[all[0].clone(), text("out-of-band from b other")]);
    found(&steps, &all[..1], &[text("advertisement from b word")]);
}

#[test]
fn connection_events_and_results_must_be_equal_on_every_path() {
    found(LOSSY, &[connection("disconnected")], &[connection("lost")]);
    found(LOSSY, &[connection("disconnected")], &[]);
    let call = |text: &str| Entry::Call(text.to_owned());
    found(LOSSY, &[call("list = 1 b")], &[call("list = 0")]);
    let waits = [call("wait: no lost b"), call("state @b = connected")];
    let failed = compared(CLEAN, &[call("list = 1 b"), call("state @b = not-connected")], &waits);
    assert_eq!(failed.differences.len(), 1, "differences after a failed wait must not be reported");
}

#[test]
fn a_failed_wait_of_the_reference_is_reported_as_an_error_of_the_script() {
    let failed = [Entry::Call("wait: no lost b".to_owned())];
    found(CLEAN, &failed, &failed);
}

#[test]
fn messages_outside_a_connection_and_damaged_bytes_break_the_guarantees() {
    let late = [connection("disconnected"), message(3, 0, 1)];
    found(CLOSING, &late, &late);
    let damaged = [Entry::Bytes { with: "b".to_owned(), text: "damaged".to_owned() }];
    found(CLEAN, &damaged, &damaged);
}

#[test]
fn sequenced_messages_are_overtaken_on_a_clean_path_only_by_priorities_or_splits() {
    let sends = |first: &str, second: &str| format!("{CLEAN}b send @a {first} 20\nb send @a {second} 20\n");
    let (one, two) = ([message(4, 0, 1), message(4, 0, 2)], [message(4, 0, 2)]);
    found(&sends("4 0 1 50", "4 0 1 50"), &one, &two);
    permitted(&sends("4 0 3 50", "4 0 0 50"), &one, &two, Rule::Overtaken);
    permitted(&sends("4 0 1 5000", "4 0 1 50"), &one, &two, Rule::Overtaken);
    found(&sends("4 7 3 50", "4 0 0 50"), &one, &two);
    found(&sends("4 0 3 50", "4 0 0 50"), &one, &one[..1]);
    permitted(&sends("4 0 3 50", "1 0 0 50"), &one, &one[..1], Rule::Overtaken);
    permitted(&sends("4 0 3 50", "3 0 0 50"), &one, &one[..1], Rule::Overtaken);
    found(&sends("1 0 3 50", "4 0 0 50"), &one, &one[..1]);
    found(&sends("3 0 3 50", "4 0 0 50"), &one, &one[..1]);
}
