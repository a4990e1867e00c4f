//! The textual description of a simulated network.

use std::str::FromStr;
use std::time::Duration;

use rakwire::sim::Conditions;

/// A bad network between an endpoint and its socket, with the same conditions in both directions and for all addresses.
///
/// It is parsed from text such as `loss=5%,latency=50ms,jitter=10ms,duplicate=1%,reorder=2%,seed=7`; all parts are
/// optional. Probabilities are percentages or numbers from 0 to 1. Times have a unit (`us`, `ms` or `s`) and apply to one
/// direction. The same seed has the same effect on the same datagrams.
///
/// ```
/// use rakwire_native::Simulation;
///
/// let simulation: Simulation = "loss=5%,latency=50ms,seed=7".parse()?;
/// assert_eq!((simulation.conditions.loss, simulation.seed), (0.05, 7));
/// assert!("loss=101%".parse::<Simulation>().is_err());
/// # Ok::<(), rakwire_native::SimulationSyntaxError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Simulation {
    /// The conditions in each direction.
    pub conditions: Conditions,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// A syntax error in a [`Simulation`].
///
/// ```
/// use rakwire_native::Simulation;
///
/// let error = "loss=5%,rain=5%".parse::<Simulation>().unwrap_err();
/// assert!(error.to_string().starts_with("\"rain=5%\""));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part:?}: {problem}")]
pub struct SimulationSyntaxError {
    part: String,
    problem: &'static str,
}

const FORM: &str = "write loss, duplicate, reorder, latency, jitter or seed, and a value after =";

impl FromStr for Simulation {
    type Err = SimulationSyntaxError;

    fn from_str(text: &str) -> Result<Self, SimulationSyntaxError> {
        let mut simulation = Self::default();
        for part in text.split(',').map(str::trim) {
            let set = part.split_once('=').ok_or(FORM).and_then(|(key, value)| simulation.set(key, value));
            set.map_err(|problem| SimulationSyntaxError { part: part.to_owned(), problem })?;
        }
        Ok(simulation)
    }
}

impl Simulation {
    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        let conditions = &mut self.conditions;
        match key {
            "loss" => conditions.loss = probability(value)?,
            "duplicate" => conditions.duplication = probability(value)?,
            "reorder" => conditions.reordering = probability(value)?,
            "latency" => conditions.latency = time(value)?,
            "jitter" => conditions.jitter = time(value)?,
            "seed" => self.seed = value.parse().map_err(|_| "a seed is a whole number")?,
            _ => return Err(FORM),
        }
        Ok(())
    }
}

/// Parses a probability, such as 5% or 0.05.
fn probability(text: &str) -> Result<f64, &'static str> {
    const PROBLEM: &str = "a probability is a number from 0% to 100%, or from 0 to 1";
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    let probability = number.parse::<f64>().map_err(|_| PROBLEM)? / whole;
    if (0.0..=1.0).contains(&probability) { Ok(probability) } else { Err(PROBLEM) }
}

/// Parses a time of at most a minute, such as 50ms.
fn time(text: &str) -> Result<Duration, &'static str> {
    const PROBLEM: &str = "a time is a number with us, ms or s, at most a minute";
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let found = units.iter().find_map(|(unit, length)| Some((text.strip_suffix(unit)?, length)));
    let (number, unit) = found.ok_or(PROBLEM)?;
    let seconds = number.parse::<f64>().map_err(|_| PROBLEM)? * unit;
    if (0.0..=60.0).contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(PROBLEM) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_are_parsed() {
        let text = "loss=5%, latency=50ms,jitter=500us,duplicate=1%,reorder=0.02,seed=9";
        let Simulation { conditions, seed } = text.parse().expect("a simulation");
        assert_eq!((conditions.loss, conditions.duplication, conditions.reordering), (0.05, 0.01, 0.02));
        assert_eq!(conditions.latency, Duration::from_millis(50));
        assert_eq!((conditions.jitter, seed), (Duration::from_micros(500), 9));
        assert_eq!("latency=2s".parse::<Simulation>().map(|read| read.conditions.latency.as_secs()), Ok(2));
    }

    #[test]
    fn errors_are_one_line() {
        for text in [
            "",
            "loss",
            "loss=",
            "loss=-1%",
            "loss=101%",
            "loss=NaN",
            "latency=50",
            "latency=1h",
            "latency=61s",
            "jitter=-1ms",
            "seed=x",
            "rain=1%",
            "loss=1%,,seed=1",
        ] {
            let error = text.parse::<Simulation>().expect_err(text);
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
    }
}
