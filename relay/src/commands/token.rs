//! `token`.

use std::fs;
use std::time::SystemTime;

use rakwire_relay::token::{Claims, SigningKey};

use super::{Failure, print_out};
use crate::args::TokenArgs;

pub(crate) fn token(args: &TokenArgs) -> Result<(), Failure> {
    let unusable =
        |reason: &dyn std::fmt::Display| Failure::Misconfigured(format!("{}: {reason}", args.key.display()));
    let text = fs::read_to_string(&args.key).map_err(|error| unusable(&error))?;
    let key = SigningKey::from_text(&text).map_err(|error| unusable(&error))?;
    let mut claims =
        Claims::new(&args.target, SystemTime::now() + args.expires).map_err(Failure::misconfigured)?;
    claims.addr = args.address;
    claims.origin.clone_from(&args.origin);
    if let Some(id) = &args.id {
        claims.jti.clone_from(id);
    }
    let token = key.sign(&claims).map_err(Failure::misconfigured)?;
    print_out(&format!("{token}\n"))
}
