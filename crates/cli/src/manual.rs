//! The manual pages of a program and the completions of shells, from its command line.

use std::path::Path;
use std::{fs, io};

use clap::{Command, ValueEnum};
use clap_complete::Shell;

/// Writes a manual page for each command, and completions for each shell, into a folder.
pub(crate) fn write(command: Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let name = command.get_name().to_owned();
    for shell in Shell::value_variants() {
        clap_complete::generate_to(*shell, &mut command.clone(), &name, folder)?;
    }
    clap_mangen::generate_to(command, folder)
}
