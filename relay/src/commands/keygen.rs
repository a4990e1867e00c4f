//! `keygen`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rakwire_relay::token::SigningKey;
use rakwire_udp::private_file;

use super::{Failure, print_out};
use crate::args::{Algorithm, KeygenArgs};

pub(crate) fn keygen(args: &KeygenArgs) -> Result<(), Failure> {
    let made = match args.algorithm {
        Algorithm::Ed25519 => SigningKey::ed25519(),
        Algorithm::HmacSha256 => SigningKey::hmac_sha256(),
    };
    let key = made.map_err(|error| Failure::Failed(error.to_string()))?;
    write_new(&args.out, private_file::create_new(&args.out), &key.to_text())?;
    let for_relay = match key.public_text() {
        Some(public) => {
            let path = public_path(&args.out);
            write_new(&path, private_file::create_new_public(&path), &public)?;
            path
        }
        None => args.out.clone(),
    };
    print_out(&format!(
        "{} signs tokens; give the relay --token-key {}\n",
        args.out.display(),
        for_relay.display()
    ))
}

fn public_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

/// Writes a file that does not exist yet: a key is not lost by a second call.
fn write_new(path: &Path, made: io::Result<File>, text: &str) -> Result<(), Failure> {
    made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let path = path.display();
        Failure::Misconfigured(if error.kind() == io::ErrorKind::AlreadyExists {
            format!("'{path}' exists: choose another --out, or remove the old key")
        } else {
            format!("cannot write '{path}' ({error})")
        })
    })
}
