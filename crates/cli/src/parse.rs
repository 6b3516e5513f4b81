//! Parses the command line of a program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Command, Parser};

use crate::manual;

/// Parses the arguments and environment variables of this process. An empty variable counts as unset: Compose
/// and Kubernetes pass a setting without a value as an empty string.
///
/// With the arguments `--generate FOLDER` it writes the manual pages and the completions of shells into this
/// folder, and ends the process.
///
/// # Errors
///
/// They are invalid, or `check` finds that one is missing or that some contradict each other.
pub fn parse<P: Parser, E: Display>(check: impl FnOnce(&P) -> Result<(), E>) -> Result<P, clap::Error> {
    let arguments: Vec<OsString> = env::args_os().collect();
    if let [_, option, folder] = &*arguments
        && option == "--generate"
    {
        let written = manual::write(P::command(), Path::new(folder));
        written.map_err(|error| {
            P::command().error(ErrorKind::Io, format!("cannot write the manual: {error}"))
        })?;
        std::process::exit(0);
    }
    let is_empty = |name: &OsStr| env::var_os(name).is_some_and(|value| value.is_empty());
    let mut command = without_variables(P::command(), &is_empty);
    let parsed = command.try_get_matches_from_mut(arguments);
    let parsed = parsed.and_then(|mut matches| {
        P::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    });
    parsed.and_then(|program| match check(&program) {
        Ok(()) => Ok(program),
        Err(error) => Err(command.error(ErrorKind::ValueValidation, format!("{error:#}"))),
    })
}

/// The command, whose arguments are not read from the variables that are left out.
fn without_variables(command: Command, is_left_out: &dyn Fn(&OsStr) -> bool) -> Command {
    let command = command.mut_args(|argument| {
        if argument.get_env().is_some_and(is_left_out) { argument.env(None::<&str>) } else { argument }
    });
    command.mut_subcommands(|subcommand| without_variables(subcommand, is_left_out))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Subcommand};

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[arg(long, env = "TEST_A", global = true)]
        a: Option<u8>,
        #[arg(long, env = "TEST_B")]
        b: Option<u8>,
        #[command(subcommand)]
        command: Sub,
    }

    #[derive(Debug, Subcommand)]
    enum Sub {
        Run {
            #[arg(long, env = "TEST_C")]
            c: Option<u8>,
            #[arg(long, env = "TEST_D")]
            d: Option<u8>,
        },
    }

    #[test]
    fn variables_of_all_commands_are_left_out() {
        let is_left_out = |name: &OsStr| name == "TEST_A" || name == "TEST_C";
        let command = without_variables(Program::command(), &is_left_out);
        let variables = |command: &Command| {
            command.get_arguments().filter_map(|argument| argument.get_env()).collect::<Vec<_>>().len()
        };
        assert_eq!(variables(&command), 1);
        assert_eq!(command.get_subcommands().map(variables).collect::<Vec<_>>(), [1]);
    }
}
