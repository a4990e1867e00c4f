//! The smoke test of the demo: headless Chromium plays complete games.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::files;
use crate::process::{Output, describe};
use crate::shell::Shell;

const DRIVER: &str = "web/tests/smoke.mjs";
const FOLDER: &str = "target/demo";
const LIMIT: Duration = Duration::from_secs(1_500);
/// The variants of a game: the protocols, and replication over one of them.
pub const WAYS: [&str; 3] = ["game", "raknet", "replication"];
/// Upper limit of each connection's median round-trip time over loopback.
const ROUND_TRIP_MS: f64 = 50.0;
/// The text of the lock on the winner's page: empty for the Game Protocol, and for a secure connection it depends on
/// the key in the link.
const LOCKS: [(&str, &str); 3] = [
    ("game", ""),
    ("raknet", "Secure: the server of this link"),
    ("replication", "Encrypted, to any server"),
];
/// The number of hits after which a player dies.
const HEALTH: u64 = 3;

/// Lets two pages play against each other at `url`, once with each variant. Saves screenshots, and returns the driver's
/// line of JSON. `metrics` is the address of the relay's counters.
pub fn fight(shell: &Shell, url: &str, metrics: &str, ways: &[&str]) -> Result<String> {
    let option = format!("--ways={}", ways.join(","));
    let line = drive(shell, [url, metrics], &[&option], |value| check_fight(value, ways))?;
    let pictures = files::names(&shell.path(FOLDER))?.len();
    if pictures < 2 * ways.len() {
        bail!("{DRIVER} left {pictures} pictures");
    }
    shell.note(format_args!("pictures: {FOLDER}"));
    shell.note(round_trips(&line, ways)?);
    Ok(line)
}

/// Lets a page join a game with bots at this address, and checks that it sees them.
pub fn look(shell: &Shell, url: &str, metrics: &str) -> Result<String> {
    drive(shell, [url, metrics], &["--look"], check_look)
}

fn drive(
    shell: &Shell,
    [url, metrics]: [&str; 2],
    more: &[&str],
    check: impl Fn(&Value) -> Result<()>,
) -> Result<String> {
    let folder = shell.path(FOLDER);
    files::create_folder(&folder)?;
    let args = [DRIVER, url, metrics, files::text(&folder)?].into_iter().chain(more.iter().copied());
    let output = shell.cmd("node", args).limit(LIMIT).output()?;
    outcome(&output, check)
}

/// Returns the line of JSON, if both the line and the exit code report success.
fn outcome(output: &Output, check: impl Fn(&Value) -> Result<()>) -> Result<String> {
    let line = output.stdout.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !output.status.success() {
        bail!("the page failed in the browser ({}): {line}", describe(output.status));
    }
    let value = serde_json::from_str(line).context("not a line of JSON");
    value.and_then(|value| check(&value)).with_context(|| format!("{DRIVER} printed {line:?}"))?;
    Ok(line.to_owned())
}

fn check_look(value: &Value) -> Result<()> {
    match value["players"].as_u64() {
        Some(2..) => Ok(()),
        seen => bail!("a new player sees {} players", seen.unwrap_or(0)),
    }
}

/// Checks the lock of the page, and for each variant: positions before and after a move, the holder's id, the damage
/// and both ends.
fn check_fight(value: &Value, ways: &[&str]) -> Result<()> {
    for &way in ways {
        let game = &value[way];
        check_game(game).with_context(|| format!("the game with {way}"))?;
        let world = game["world"].as_str().unwrap_or_default();
        if world.contains("Replication") != (way == "replication") {
            bail!("the page shows {world:?} for the game with {way}");
        }
    }
    for (way, expected) in LOCKS.into_iter().filter(|(way, _)| ways.contains(way)) {
        let lock = value[way]["lock"].as_str();
        if !lock.is_some_and(|lock| lock.contains(expected) && lock.is_empty() == expected.is_empty()) {
            bail!("the lock of the game with {way} shows {lock:?}, not {expected:?}");
        }
    }
    match value["queue_full_drops"].as_u64() {
        Some(0) => Ok(()),
        Some(count) => bail!("the relay dropped {count} datagrams because a queue was full"),
        None => bail!("the number of datagrams dropped by full queues of the relay is missing"),
    }
}

/// Returns the round-trip times of the connections in words.
fn round_trips(line: &str, ways: &[&str]) -> Result<String> {
    let value: Value = serde_json::from_str(line)?;
    let of = |way: &str| {
        let trips = pages(&value[way])?
            .iter()
            .map(|page| Ok(round_trip(page)?.to_string()))
            .collect::<Result<Vec<_>>>()?;
        Ok(format!("{way} {}", trips.join(" and ")))
    };
    let ways = ways.iter().map(|way| of(way)).collect::<Result<Vec<_>>>()?;
    Ok(format!("round-trip times of the pages in ms, median: {}", ways.join(", ")))
}

/// Returns the measurements of the pages of a game.
fn pages(game: &Value) -> Result<&Vec<Value>> {
    game["pages"].as_array().context("the measurements of the pages are missing")
}

/// Returns the median round-trip time of a page's connection in milliseconds.
fn round_trip(page: &Value) -> Result<f64> {
    page["round_trip_ms"]["connection"]["p50"].as_f64().context("the round-trip times are missing")
}

fn check_game(game: &Value) -> Result<()> {
    check_walk(game).context("with the keyboard")?;
    check_walk(&game["touch"]).context("by touch")?;
    if game["holder"].as_u64().is_none() {
        bail!("no player held anything");
    }
    let damage = game["damage"].as_u64().unwrap_or(0);
    if damage != HEALTH {
        bail!("the damage was {damage}, not {HEALTH}");
    }
    for state in ["won", "lost"] {
        if game[state]["state"] != state {
            bail!("no page shows {state}");
        }
    }
    for page in pages(game)? {
        if let Some(direction) =
            ["toClient", "toServer"].into_iter().find(|direction| !page["relay_drops"][direction].is_object())
        {
            bail!("the relay's drops are missing: {direction}");
        }
        let trip = round_trip(page)?;
        // Over loopback it is long only if a page or the relay delays datagrams.
        if trip >= ROUND_TRIP_MS {
            bail!("the median round-trip time was {trip} ms, not below {ROUND_TRIP_MS}");
        }
    }
    Ok(())
}

/// Checks that a player has moved.
fn check_walk(walk: &Value) -> Result<()> {
    let at = |name: &str, axis: &str| walk[name][axis].as_f64();
    let along = |axis| Some(at("after", axis)? - at("before", axis)?);
    let (x, y) = along("x").zip(along("y")).context("the positions before and after a move are missing")?;
    if x.hypot(y) < 1.0 {
        bail!("no player moved");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::process::Cmd;

    fn good() -> Value {
        let game = json!({
            "before": {"x": 0.0, "y": 0.0}, "after": {"x": 0.0, "y": -1.5}, "holder": 301, "damage": 3,
            "world": "5 ms · Snapshots: 30/s, 9.0 kB/s",
            "touch": {"before": {"x": 0.0, "y": 0.0}, "after": {"x": 2.0, "y": 0.0}},
            "won": {"state": "won"}, "lost": {"state": "lost"},
            "pages": [{"relay_drops": {"toClient": {"tooOld": 1}, "toServer": {}}, "round_trip_ms": {"connection": {"p50": 4.5}}}],
        });
        let mut line = json!({"game": game.clone(), "raknet": game.clone(), "replication": game});
        line["replication"]["world"] = json!("5 ms · Replication: 30/s, 2.0 kB/s");
        line["queue_full_drops"] = json!(0);
        line["game"]["lock"] = json!("");
        line["raknet"]["lock"] = json!("Secure: the server of this link");
        line["replication"]["lock"] = json!("Encrypted, to any server");
        line
    }

    fn check_all(value: &Value) -> Result<()> {
        check_fight(value, &WAYS)
    }

    #[test]
    fn a_good_line_passes() {
        check_all(&good()).unwrap();
        check_look(&json!({"players": 5})).unwrap();
    }

    #[test]
    fn round_trip_times_are_reported() {
        let said = round_trips(&good().to_string(), &WAYS).unwrap();
        assert!(said.contains("game 4.5, raknet 4.5, replication 4.5"), "{said}");
        let mut line = good();
        line["raknet"]["pages"] = json!([{}]);
        assert!(round_trips(&line.to_string(), &WAYS).is_err());
    }

    #[test]
    fn each_value_of_a_line_is_checked() {
        let changes = [
            ("/raknet/after", json!({"x": 0.1, "y": 0.1}), "with the keyboard: no player moved"),
            ("/raknet/touch", Value::Null, "by touch: the positions before and after a move are missing"),
            ("/raknet/holder", Value::Null, "no player held anything"),
            ("/raknet/damage", json!(2), "the damage was 2, not 3"),
            ("/raknet/won/state", json!("playing"), "no page shows won"),
            ("/raknet/pages/0/relay_drops/toServer", Value::Null, "the relay's drops are missing: toServer"),
            (
                "/raknet/pages/0/round_trip_ms/connection/p50",
                json!(50.0),
                "the median round-trip time was 50 ms",
            ),
            ("/game/lock", json!("Encrypted, to any server"), "the lock of the game with game shows"),
            ("/raknet/lock", json!(""), "the lock of the game with raknet shows"),
            ("/raknet/world", json!("Replication: 1/s"), "for the game with raknet"),
            ("/queue_full_drops", json!(2), "the relay dropped 2 datagrams"),
            ("/replication", Value::Null, "the game with replication"),
        ];
        for (place, value, reason) in changes {
            let mut line = good();
            *line.pointer_mut(place).unwrap() = value;
            let error = format!("{:#}", check_all(&line).unwrap_err());
            assert!(error.contains(reason), "{place}: {error}");
        }
        assert!(check_look(&json!({"players": 1})).is_err());
    }

    #[test]
    fn the_last_line_and_the_exit_code_decide() {
        let print = |more: &str| {
            Cmd::new("sh", ["-c", &format!("echo talk; echo '{}'; echo{more}", good())]).output()
        };
        assert_eq!(outcome(&print("").unwrap(), check_all).unwrap(), good().to_string());
        assert!(
            outcome(&print("; exit 1").unwrap(), check_all).unwrap_err().to_string().contains("exit code 1")
        );
        let nonsense = Cmd::new("sh", ["-c", "echo talk"]).output().unwrap();
        assert!(format!("{:#}", outcome(&nonsense, check_all).unwrap_err()).contains("not a line of JSON"));
    }
}
