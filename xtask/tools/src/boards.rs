//! Builds the single-file examples of boards as their users do, and converts those for boards with a USB drive to UF2.

use std::fs;

use anyhow::{Context, Result, bail};
use elf2flash_core::boards::{BoardInfo, RP2040, RP2350};
use elf2flash_core::{NoProgress, elf2uf2};

use xtask::firmware::{self, EMULATED, ESP32C3, NUCLEO, PICO, PICO_2_W, PICO_W};
use xtask::shell::Shell;
use xtask::targets::{RISCV, THUMB, THUMB_M4, THUMB_M33};

/// The line after which all examples have the same text.
const SAME: &str = "// From here on the file is the same for every board.\n";

/// An example.
struct Example {
    folder: &'static str,
    target: &'static str,
    binary: &'static str,
    source: &'static str,
    /// The chip, if it accepts UF2 files over USB.
    chip: Option<&'static dyn BoardInfo>,
}

const PICO_1_CHIP: Option<&dyn BoardInfo> = Some(&RP2040);
const PICO_2_CHIP: Option<&dyn BoardInfo> = Some(&RP2350);

#[rustfmt::skip]
const EXAMPLES: [Example; 6] = [
    Example { folder: EMULATED, target: THUMB_M4, binary: "quickstart", source: "src/bin/quickstart.rs", chip: None },
    Example { folder: NUCLEO, target: THUMB_M4, binary: "nucleo-quickstart", source: "src/bin/quickstart.rs", chip: None },
    Example { folder: PICO, target: THUMB_M33, binary: "pico2-quickstart", source: "src/bin/quickstart.rs", chip: PICO_2_CHIP },
    Example { folder: PICO_W, target: THUMB, binary: "pico-w", source: "src/main.rs", chip: PICO_1_CHIP },
    Example { folder: PICO_2_W, target: THUMB_M33, binary: "pico2-w", source: "src/main.rs", chip: PICO_2_CHIP },
    Example { folder: ESP32C3, target: RISCV, binary: "esp32c3", source: "src/main.rs", chip: None },
];

/// The stage of `cargo xtask nightly`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let mut same = None;
    for example in &EXAMPLES {
        let path = format!("{}/{}", example.folder, example.source);
        let text = shell.read(&path)?;
        let (_, rest) = text.split_once(SAME).with_context(|| format!("{path} has no line {SAME:?}"))?;
        let (first, expected) = same.get_or_insert_with(|| (path.clone(), rest.to_owned()));
        if rest != expected {
            bail!("{path} differs from {first} after the line {SAME:?}");
        }
    }
    for example in &EXAMPLES {
        let built = firmware::build(shell, example.folder, example.target, &["--bin", example.binary])?;
        let program = firmware::built(&built, example.target, example.binary)?;
        if let Some(chip) = example.chip {
            // Converts the program like `elf2flash`, the tool that the firmware's README recommends.
            let mut file = Vec::new();
            elf2uf2(fs::read(&program)?, &mut file, chip, NoProgress)
                .with_context(|| format!("{} cannot be converted to UF2", example.binary))?;
            fs::write(program.with_extension("uf2"), &file)?;
            shell.print(format_args!("{} is a UF2 file of {} bytes", example.binary, file.len()));
        }
    }
    shell.print(format_args!("{} examples build, and are identical after the setup", EXAMPLES.len()));
    Ok(())
}
