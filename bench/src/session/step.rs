//! The steps of a session: rows that are measured together.

/// Rows that are measured together.
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

    /// The name of its only row, or with what the names of all its rows begin.
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

    /// How many seconds it takes with five runs on a machine with two cores, if no session has shown it.
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
            Self::Clients | Self::Shards => 55.0,
            Self::Idle => 65.0,
        }
    }

    /// How often it measures in a session with this many runs.
    pub(super) const fn rounds(self, runs: u32) -> u32 {
        if matches!(self, Self::Fairness | Self::Idle) { 1 } else { runs }
    }

    /// Whether one of its rows is selected; no selection means all.
    pub(super) fn is_selected(self, only: &[String]) -> bool {
        let name = self.name();
        only.is_empty() || only.iter().any(|part| name.contains(part.as_str()) || part.starts_with(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_selected_by_a_part_of_its_name_and_with_its_step() {
        let only = |part: &str| [part.to_owned()];
        assert!(Step::BulkLarge.is_selected(&[]) && Step::BulkLarge.is_selected(&only("bulk")));
        assert!(Step::Core.is_selected(&only("core_100b")) && !Step::Idle.is_selected(&only("core_100b")));
    }

    #[test]
    fn a_session_is_expected_to_take_half_an_hour() {
        let seconds: f64 = Step::ALL.iter().map(|step| step.usual_seconds()).sum();
        assert!(seconds < 31.0 * 60.0, "{seconds} s");
    }
}
