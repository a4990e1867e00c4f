//! `completions` and `man`.

use clap::CommandFactory;

use super::{Failure, print_out};
use crate::args::{Cli, CompletionsArgs};

const NAME: &str = "rakwire-relay";

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut text);
    print_out(&String::from_utf8_lossy(&text))
}

pub(crate) fn manual() -> Result<(), Failure> {
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(Cli::command().name(NAME));
    page.render(&mut text).map_err(|error| Failure::Failed(error.to_string()))?;
    print_out(&String::from_utf8_lossy(&text))
}
