//! `list`.

use rakwire_relay::directory::ServerList;
use rakwire_relay::{FetchError, fetch_server_list};

use super::{Failure, print_out};
use crate::args::ListArgs;

pub(crate) fn list(args: &ListArgs) -> Result<(), Failure> {
    let failed = |error: FetchError| {
        if matches!(error, FetchError::Url) {
            Failure::misconfigured(error)
        } else {
            Failure::Failed(format!("{}: {error}", args.relay))
        }
    };
    let text = fetch_server_list(&args.relay).map_err(failed)?;
    let list: ServerList = serde_json::from_str(&text).map_err(|_| failed(FetchError::Unexpected))?;
    if args.json { print_out(&format!("{}\n", text.trim_end())) } else { print_out(&list.to_table()) }
}
