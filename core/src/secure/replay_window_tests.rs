//! Counters, held against slow definitions.

use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const SPAN: u64 = 1 << COUNTER_BITS;

/// Around each place where something may go wrong, all low bits of the counters nearby and of those at the edge of what can
/// be told apart.
#[test]
fn counters_come_back_from_their_low_bits() {
    let places = [0, 1, SPAN / 2, SPAN, 3 * SPAN / 2, 2 * SPAN, 1 << 32, COUNTER_END - SPAN, COUNTER_END - 1];
    for expected in places.into_iter().flat_map(|place: u64| place.saturating_sub(3)..=place + 3) {
        let nearest = expected.saturating_sub(SPAN / 2 - 1)..=(expected + SPAN / 2).min(COUNTER_END - 1);
        let edges = [nearest.start(), nearest.end()].map(|edge| edge.saturating_sub(40)..=*edge + 40);
        let near = expected.saturating_sub(4096)..=expected + 4096;
        for counter in edges.into_iter().chain([near]).flatten().filter(|counter| nearest.contains(counter)) {
            assert_eq!(reconstruct(expected, counter & COUNTER_MASK), counter, "{expected} expected");
        }
    }
}

/// Every value of the low bits, for a few expected counters, against the definition.
#[test]
fn the_closest_counter_is_taken_for_all_low_bits() {
    for expected in [0, 5, SPAN - 1, SPAN + 7, 9 * SPAN + SPAN / 2] {
        for low in 0..SPAN {
            let found = reconstruct(expected, low);
            assert_eq!(found & COUNTER_MASK, low);
            let distance = found.abs_diff(expected);
            assert!(distance <= SPAN / 2 || found < SPAN, "{found} is not the closest to {expected}");
            let others = [found.checked_sub(SPAN), Some(found + SPAN)];
            assert!(others.into_iter().flatten().all(|other| other.abs_diff(expected) >= distance));
        }
    }
}

/// A window that remembers everything.
#[derive(Default)]
struct Model {
    seen: BTreeSet<u64>,
}

impl Model {
    fn is_new(&self, counter: u64) -> bool {
        let next = self.seen.last().map_or(0, |last| last + 1);
        counter + WINDOW >= next && !self.seen.contains(&counter)
    }
}

fn check(counters: impl IntoIterator<Item = u64>) {
    let (mut window, mut model) = (ReplayWindow::new(), Model::default());
    for counter in counters {
        assert_eq!(window.is_new(counter), model.is_new(counter), "{counter}");
        if model.is_new(counter) {
            window.mark(counter);
            model.seen.insert(counter);
            assert!(!window.is_new(counter));
        }
        assert_eq!(window.next(), model.seen.last().map_or(0, |last| last + 1));
    }
}

/// Every sequence of five counters from a set that has the neighbours and the edges of the window in it.
#[test]
fn every_short_sequence_agrees_with_a_window_that_forgets_nothing() {
    let places = [0, 1, 31, 32, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW, 3 * WINDOW + 5];
    let count = places.len();
    for index in 0..count.pow(5) {
        check((0..5).map(|digit| places[index / count.pow(digit) % count]));
    }
}

#[test]
fn every_age_is_known_up_to_the_window() {
    let top = 5 * WINDOW + 77;
    let mut window = ReplayWindow::new();
    (0..=top).filter(|counter| counter % 3 == 0).for_each(|counter| window.mark(counter));
    let next = window.next();
    for counter in 0..next + 10 {
        let expected = counter >= next || (counter + WINDOW >= next && counter % 3 != 0);
        assert_eq!(window.is_new(counter), expected, "{counter}");
    }
}

proptest! {
    #[test]
    fn any_sequence_agrees_with_a_window_that_forgets_nothing(
        steps in prop::collection::vec((0_u64..3 * WINDOW, any::<bool>()), 1..200),
    ) {
        let mut at = 0_u64;
        let counters: Vec<u64> = steps
            .into_iter()
            .map(|(step, is_ahead)| {
                let counter = if is_ahead { at + step % 70 } else { (at + 8).saturating_sub(step) };
                at = at.max(counter);
                counter
            })
            .collect();
        check(counters);
    }
}
