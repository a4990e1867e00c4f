//! `check` and `config`.

use rakwire_relay::Relay;
use rakwire_relay::config::reference;

use super::{Failure, print_out};
use crate::args::{ConfigArgs, ExplainArgs};

pub(crate) fn check(args: &ConfigArgs) -> Result<(), Failure> {
    let loaded = args.load().map_err(Failure::misconfigured)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(error.to_string()))?;
    let checked = runtime.block_on(Relay::check(&loaded.config));
    // Dropping the runtime would wait for lookups that the resolver does not answer.
    runtime.shutdown_background();
    checked.map_err(|error| Failure::misconfigured(loaded.locate(&error)))?;
    let targets: Vec<&str> = loaded.config.targets.keys().map(|name| name.as_str()).collect();
    print_out(&format!("ok: listens on {}, offers {}\n", loaded.config.listen, targets.join(", ")))?;
    for exposed in loaded.exposed_files() {
        print_out(&format!("warning: {exposed}\n"))?;
    }
    let note = loaded.note().map_err(Failure::misconfigured)?;
    note.map_or(Ok(()), |note| print_out(&format!("note: {note}\n")))
}

pub(crate) fn print(args: &ExplainArgs) -> Result<(), Failure> {
    if args.reference {
        return print_out(&reference());
    }
    let loaded = args.config.read().map_err(Failure::misconfigured)?;
    print_out(&if args.explain { loaded.explain() } else { loaded.to_toml() })
}
