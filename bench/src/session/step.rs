//! The steps of a session. A step measures one or more rows.

/// A group of rows that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Messages,
    BulkLarge,
    BulkSmall,
    PingPong,
    BusyPingPong,
    NoLoss,
    Loss1,
    Loss5,
    Loss15,
    Bursts,
    Core,
    Fairness,
    Clients,
    Shards,
    Idle,
}

impl Step {
    pub(crate) const ALL: [Self; 15] = [
        Self::Messages,
        Self::BulkLarge,
        Self::BulkSmall,
        Self::PingPong,
        Self::BusyPingPong,
        Self::NoLoss,
        Self::Loss1,
        Self::Loss5,
        Self::Loss15,
        Self::Bursts,
        Self::Core,
        Self::Fairness,
        Self::Clients,
        Self::Shards,
        Self::Idle,
    ];

    /// Returns the name of the step in messages, in reports and in the history.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages_100b",
            Self::BulkLarge => "bulk_10mb",
            Self::BulkSmall => "bulk_10kb",
            Self::PingPong => "pingpong_64b",
            Self::BusyPingPong => "pingpong_64b_busy",
            Self::NoLoss => "loss_0",
            Self::Loss1 => "loss_1",
            Self::Loss5 => "loss_5",
            Self::Loss15 => "loss_15",
            Self::Bursts => "loss_bursts",
            Self::Core => "core",
            Self::Fairness => "fair",
            Self::Clients => "clients_1000",
            Self::Shards => "shards",
            Self::Idle => "idle",
        }
    }

    /// Returns the usual duration with five runs on a machine with two cores, in seconds.
    ///
    /// Used for estimates until a session has measured the step.
    pub(super) const fn usual_seconds(self) -> f64 {
        match self {
            Self::Messages => 290.0,
            Self::BulkLarge => 85.0,
            Self::BulkSmall | Self::Core | Self::Fairness => 40.0,
            Self::PingPong => 110.0,
            Self::BusyPingPong => 20.0,
            Self::NoLoss => 190.0,
            Self::Loss1 => 245.0,
            Self::Loss5 => 430.0,
            Self::Loss15 | Self::Bursts => 70.0,
            Self::Clients => 55.0,
            Self::Shards => 240.0,
            Self::Idle => 65.0,
        }
    }

    /// Returns the number of rounds in a session with `runs` runs.
    pub(super) const fn rounds(self, runs: u32) -> u32 {
        match self {
            Self::Fairness | Self::Idle => 1,
            // The wake-up time of a core varies more between runs than the compared values.
            Self::PingPong if runs > 1 => 4 * runs,
            // The CPU times of the two compared servers differ little, so more rounds are needed.
            Self::Shards if runs > 1 => 3 * runs,
            Self::Messages
            | Self::BulkLarge
            | Self::BulkSmall
            | Self::PingPong
            | Self::BusyPingPong
            | Self::NoLoss
            | Self::Loss1
            | Self::Loss5
            | Self::Loss15
            | Self::Bursts
            | Self::Core
            | Self::Clients
            | Self::Shards => runs,
        }
    }

    /// Returns the names of the rows that the step measures, without the number at the end of some names.
    const fn rows(self) -> &'static [&'static str] {
        match self {
            Self::Messages => &["messages_100b", "udp_flood", "udp_flood_batched"],
            Self::BulkLarge => &["bulk_10mb"],
            Self::BulkSmall => &["bulk_10kb"],
            Self::PingPong => {
                &["pingpong_64b", "pingpong_64b_p99", "udp_pingpong_64b", "udp_pingpong_64b_p99"]
            }
            Self::BusyPingPong => &["pingpong_64b_busy", "udp_pingpong_64b_busy"],
            Self::NoLoss => &["loss_0", "loss_0_p99"],
            Self::Loss1 => &["loss_1", "loss_1_p99"],
            Self::Loss5 => &["loss_5", "loss_5_p99"],
            Self::Loss15 => &["loss_15", "loss_15_p99"],
            Self::Bursts => &["loss_bursts", "loss_bursts_p99"],
            Self::Core => &["core_100b", "core_100b_instructions", "core_connections", "core_queue"],
            Self::Fairness => &[
                "fair_delay_based",
                "fair_queueing",
                "fair_beside_new_reno_25ms",
                "fair_beside_new_reno_50ms",
                "fair_beside_new_reno_200ms",
                "fair_jitter_10ms",
                "fair_rtt_200ms",
                "fair_500mbit",
            ],
            Self::Clients => &[
                "clients_1000",
                "clients_1000_per_core",
                "udp_clients_1000_per_core",
                "clients_1000_tick_p99",
                "clients_1000_late_p99",
            ],
            Self::Shards => &[
                "shards_1",
                "shards_2",
                "shards_scaling",
                "shards_tick_1",
                "shards_tick_2",
                "shards_tick_scaling",
            ],
            Self::Idle => &["idle_memory", "idle_cpu", "idle_connections"],
        }
    }

    /// Returns true if the name of one of the rows contains an entry of `only`, or if `only` is empty.
    pub(super) fn is_selected(self, only: &[String]) -> bool {
        let selects = |part: &String| self.rows().iter().any(|row| row.contains(part.as_str()));
        only.is_empty() || only.iter().any(selects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_selected_by_part_of_a_row_name() {
        let selected = |part: &str| {
            let steps = Step::ALL.into_iter().filter(|step| step.is_selected(&[part.to_owned()]));
            steps.collect::<Vec<Step>>()
        };
        assert!(Step::ALL.iter().all(|step| step.is_selected(&[])));
        assert_eq!(selected("bulk"), [Step::BulkLarge, Step::BulkSmall]);
        assert_eq!(selected("core_100b"), [Step::Core]);
        assert_eq!(selected("loss_15"), [Step::Loss15]);
        assert_eq!(selected("pingpong_64b_busy"), [Step::BusyPingPong]);
        assert_eq!(selected("udp_flood"), [Step::Messages]);
        assert_eq!(selected("loss_7"), []);
    }
}
