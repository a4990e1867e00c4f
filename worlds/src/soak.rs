//! A soak: one world for hours of virtual time, in which faults begin and players leave and return throughout.
//!
//! The time is divided into quarters. At the end of each quarter the faults stop, everything is delivered, and all
//! clients disconnect, as at the end of any world. The heap of the process must then be about as large as after the
//! first quarter.

use core::time::Duration;

use crate::plan::Plan;
use crate::plant::Plant;
use crate::random::Random;
use crate::usage::Usage;
use crate::world::{Outcome, Phase, World};
use crate::{Broken, Kept};

/// The number of parts of a soak. The memory use of each later part is compared with that of the first.
pub const QUARTERS: usize = 4;
/// The number of bytes by which the heap after a later quarter may exceed the heap after the first one.
///
/// Queues never shrink, so the heap grows with their maximum length.
const HEAP_SLACK: usize = 256 * 1_024;
/// The time for which a quarter continues after the last connection has closed, so that applications poll the last
/// events.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// The measurements of a quarter of a soak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quarter {
    /// The number of messages, connections, faults and virtual seconds.
    pub outcome: Outcome,
    /// The average number of blocks in use by all peers together.
    pub blocks: u64,
    /// The maximum number of blocks in use by all peers together.
    pub most_blocks: usize,
    /// The average number of connections of the server.
    pub connections: u64,
    /// The average number of flows of relay and front together.
    pub flows: u64,
    /// The heap of the process in bytes at the end of the quarter.
    pub heap: usize,
}

/// Runs a world for about `time`. `heap` returns the bytes that the process has allocated; `report` is called after each
/// quarter.
///
/// # Errors
/// The violated guarantee, with the quarter and the virtual time within it, or the memory that has grown.
pub fn soak(
    seed: u64,
    time: Duration,
    plant: Option<Plant>,
    heap: &dyn Fn() -> usize,
    report: &mut dyn FnMut(&Quarter),
) -> Result<Vec<Quarter>, Broken> {
    let mut random = Random::new(seed ^ 0x0050_A4ED);
    let mut world = World::new(Plan::soak(seed), plant);
    let mut quarters = Vec::new();
    for number in 1..=QUARTERS {
        world.plan.draw_chapters(&mut random, time / QUARTERS as u32);
        let outcome = world.live_through_quarter().map_err(|broken| {
            let millis = world.now.saturating_since(world.start).as_millis();
            format!("quarter {number}, after {millis} ms: {broken}")
        })?;
        let usage = core::mem::take(&mut world.usage);
        world.plan.faults = Vec::new();
        let quarter = quarter(outcome, usage, heap());
        report(&quarter);
        quarters.push(quarter);
    }
    check_flat(&quarters)?;
    Ok(quarters)
}

const fn quarter(outcome: Outcome, usage: Usage, heap: usize) -> Quarter {
    let [blocks, connections, flows] = usage.means();
    Quarter { outcome, blocks, most_blocks: usage.most_blocks, connections, flows, heap }
}

/// Checks that no later quarter used much more memory or many more flows than the first.
///
/// # Errors
/// The measurement that has grown.
pub fn check_flat(quarters: &[Quarter]) -> Kept {
    let Some((first, later)) = quarters.split_first() else { return Ok(()) };
    for quarter in later {
        let grown = [
            ("bytes of heap", quarter.heap, first.heap + HEAP_SLACK),
            ("blocks on average", quarter.blocks as usize, 2 * first.blocks as usize + 64),
            ("flows on average", quarter.flows as usize, 2 * first.flows as usize + 8),
        ];
        if let Some((what, now, most)) = grown.into_iter().find(|(_, now, most)| now > most) {
            return Err(format!(
                "{now} {what}, at most {most} expected after the first quarter: {quarter:?}"
            ));
        }
    }
    Ok(())
}

impl World {
    /// Runs the plan to its end and removes the records of its connections.
    fn live_through_quarter(&mut self) -> Result<Outcome, Broken> {
        (self.start, self.next_fault, self.phase) = (self.now, 0, Phase::Active);
        let outcome = self.live()?;
        self.run_until(self.now + LAST_EVENTS, |_| false)?;
        if !self.server_connections.is_empty() {
            return Err(format!(
                "{} connections of the server closed without an event",
                self.server_connections.len()
            ));
        }
        for client in self.clients.iter_mut().flatten() {
            if client.current.take().is_some() {
                return Err("a connection of a client closed without an event".to_owned());
            }
            // The relay has removed all flows.
            client.ticket = None;
        }
        self.first_attempt += self.attempts.len();
        self.attempts = Vec::new();
        Ok(outcome)
    }
}
