//! The smoke test of the demo: headless Chromium plays whole games.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::{Output, describe};
use crate::shell::Shell;

const DRIVER: &str = "web/tests/smoke.mjs";
const FOLDER: &str = "target/demo";
const LIMIT: Duration = Duration::from_secs(1_500);
/// What games are played by: the protocols, and replication over one of them.
pub const WAYS: [&str; 3] = ["game", "raknet", "replication"];
/// What the median of the round trips of each connection over loopback has to be less than.
const ROUND_TRIP_MS: f64 = 50.0;
/// What the lock of the winner's page says: nothing of the Game Protocol, and of a secure connection whether the link names the
/// server.
const LOCKS: [(&str, &str); 3] = [
    ("game", ""),
    ("raknet", "Secure: the server of this link"),
    ("replication", "Encrypted, to any server"),
];
/// Hits that a player survives not.
const HEALTH: u64 = 3;

/// Lets two pages play against each other at this address, once by each of these ways. Leaves pictures, and returns the driver's
/// line of JSON. The other address has the counters of the relay.
pub fn fight(shell: &Shell, url: &str, metrics: &str, ways: &[&str]) -> Result<String> {
    let option = format!("--ways={}", ways.join(","));
    let line = drive(shell, [url, metrics], &[&option], |value| check_fight(value, ways))?;
    let pictures = fs::read_dir(shell.path(FOLDER)).map_or(0, Iterator::count);
    if pictures < 2 * ways.len() {
        bail!("{DRIVER} left {pictures} pictures");
    }
    shell.note(format_args!("pictures: {FOLDER}"));
    shell.note(round_trips(&line, ways)?);
    Ok(line)
}

/// A page joins a game with bots at this address, and sees them.
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
    fs::create_dir_all(&folder).with_context(|| format!("{FOLDER} cannot be made"))?;
    let folder = folder.to_str().context("the path of this repository is not valid UTF-8")?;
    let args = [DRIVER, url, metrics, folder].into_iter().chain(more.iter().copied());
    let output = shell.cmd("node", args).limit(LIMIT).output()?;
    outcome(&output, check)
}

/// The line of JSON, if both it and the exit code say that all went well.
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
    match value.get("players").and_then(Value::as_u64) {
        Some(2..) => Ok(()),
        seen => bail!("a newcomer sees {} players", seen.unwrap_or(0)),
    }
}

/// Checks the lock of the page, and for each protocol: positions before and after a move, the holder's id, the damage and both ends.
fn check_fight(value: &Value, ways: &[&str]) -> Result<()> {
    for &way in ways {
        let game = value.get(way).with_context(|| format!("there was no game by {way}"))?;
        check_game(game).with_context(|| format!("the game by {way}"))?;
        let world = game.get("world").and_then(Value::as_str).unwrap_or_default();
        if world.contains("Replication") != (way == "replication") {
            bail!("the page says {world:?} of the game by {way}");
        }
    }
    for (way, expected) in LOCKS.into_iter().filter(|(way, _)| ways.contains(way)) {
        let lock = value.get(way).and_then(|game| game.get("lock")).and_then(Value::as_str);
        if !lock.is_some_and(|lock| lock.contains(expected) && lock.is_empty() == expected.is_empty()) {
            bail!("the lock of the game by {way} says {lock:?}, not {expected:?}");
        }
    }
    match value.get("queue_full_drops").and_then(Value::as_u64) {
        Some(0) => Ok(()),
        Some(count) => bail!("the relay dropped {count} datagrams because a queue was full"),
        None => bail!("it does not say how many datagrams found a full queue at the relay"),
    }
}

/// How long a round trip of the connections took.
fn round_trips(line: &str, ways: &[&str]) -> Result<String> {
    let value: Value = serde_json::from_str(line)?;
    let of = |way: &str| {
        let pages = pages(value.get(way).unwrap_or(&Value::Null))?;
        let trips = pages.iter().map(|page| Ok(round_trip(page)?.to_string())).collect::<Result<Vec<_>>>()?;
        Ok(format!("{way} {}", trips.join(" and ")))
    };
    let ways = ways.iter().map(|way| of(way)).collect::<Result<Vec<_>>>()?;
    Ok(format!("round trips of the pages in ms, median: {}", ways.join(", ")))
}

/// What the pages of a game measured.
fn pages(game: &Value) -> Result<&Vec<Value>> {
    game.get("pages").and_then(Value::as_array).context("it does not say what the pages measured")
}

/// The median of the round trips of a page's connection, in milliseconds.
fn round_trip(page: &Value) -> Result<f64> {
    let trip = || page.get("round_trip_ms")?.get("connection")?.get("p50")?.as_f64();
    trip().context("it does not say how long round trips took")
}

fn check_game(game: &Value) -> Result<()> {
    check_walk(game).context("by the keyboard")?;
    check_walk(game.get("touch").unwrap_or(&Value::Null)).context("by a finger")?;
    if game.get("holder").and_then(Value::as_u64).is_none() {
        bail!("nobody held anything");
    }
    let damage = game.get("damage").and_then(Value::as_u64).unwrap_or(0);
    if damage != HEALTH {
        bail!("{damage} damage was done, not {HEALTH}");
    }
    for state in ["won", "lost"] {
        let shown = game.get(state).and_then(|screen| screen.get("state")).and_then(Value::as_str);
        if shown != Some(state) {
            bail!("no screen says {state}");
        }
    }
    check_drops(game)?;
    check_round_trips(game)
}

/// Checks the round trips of both pages, which are slow over loopback only if a page or the relay lets datagrams wait.
fn check_round_trips(game: &Value) -> Result<()> {
    for page in pages(game)? {
        let trip = round_trip(page)?;
        if trip >= ROUND_TRIP_MS {
            bail!("a round trip took {trip} ms at the median, and not less than {ROUND_TRIP_MS}");
        }
    }
    Ok(())
}

/// Checks that both pages say what the relay dropped.
fn check_drops(game: &Value) -> Result<()> {
    for page in pages(game)? {
        let drops = page.get("relay_drops").context("it does not say what the relay dropped")?;
        for direction in ["toClient", "toServer"] {
            let is_told = drops.get(direction).is_some_and(Value::is_object);
            if !is_told {
                bail!("it does not say what the relay dropped {direction}");
            }
        }
    }
    Ok(())
}

/// Checks that a player has moved.
fn check_walk(walk: &Value) -> Result<()> {
    let at = |name: &str, axis: &str| walk.get(name)?.get(axis)?.as_f64();
    let along = |axis| Some(at("after", axis)? - at("before", axis)?);
    let (x, y) = along("x").zip(along("y")).context("it does not say who moved where")?;
    if x.hypot(y) < 1.0 {
        bail!("nobody moved");
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
    fn round_trips_are_told() {
        let said = round_trips(&good().to_string(), &WAYS).unwrap();
        assert!(said.contains("game 4.5, raknet 4.5, replication 4.5"), "{said}");
        let mut line = good();
        line["raknet"]["pages"] = json!([{}]);
        assert!(round_trips(&line.to_string(), &WAYS).is_err());
    }

    #[test]
    fn each_value_of_a_line_counts() {
        let changes = [
            ("/raknet/after", json!({"x": 0.1, "y": 0.1}), "by the keyboard: nobody moved"),
            ("/raknet/touch", Value::Null, "by a finger: it does not say who moved where"),
            ("/raknet/holder", Value::Null, "nobody held anything"),
            ("/raknet/damage", json!(2), "2 damage was done, not 3"),
            ("/raknet/won/state", json!("playing"), "no screen says won"),
            ("/raknet/pages/0/relay_drops/toServer", Value::Null, "what the relay dropped toServer"),
            ("/raknet/pages/0/round_trip_ms/connection/p50", json!(50.0), "a round trip took 50 ms"),
            ("/game/lock", json!("Encrypted, to any server"), "the lock of the game by game says"),
            ("/raknet/lock", json!(""), "the lock of the game by raknet says"),
            ("/raknet/world", json!("Replication: 1/s"), "of the game by raknet"),
            ("/queue_full_drops", json!(2), "the relay dropped 2 datagrams"),
            ("/replication", Value::Null, "the game by replication"),
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
    fn the_last_line_counts_and_so_does_the_exit_code() {
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
