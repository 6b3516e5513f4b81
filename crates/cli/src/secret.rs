//! Arguments with secrets.

use std::error::Error;
use std::ffi::OsStr;
use std::marker::PhantomData;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};

/// Parses an argument that may contain a secret, such as a URL with a password.
///
/// Clap's own parsers print a value that they reject. This one prints the argument, its environment variable
/// and the error of `T`, which must not contain the value.
#[derive(Debug, Clone, Copy)]
pub struct SecretParser<T>(PhantomData<fn() -> T>);

impl<T> SecretParser<T> {
    /// A parser of `T` by its [`FromStr`].
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for SecretParser<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> TypedValueParser for SecretParser<T>
where
    T: FromStr<Err: Error> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let parsed = value.to_str().ok_or_else(|| "not UTF-8".to_owned());
        parsed
            .and_then(|text| text.parse().map_err(|error: T::Err| error.to_string()))
            .map_err(|reason| invalid_value(command, argument, &reason))
    }
}

/// The error that a value is invalid, which does not contain the value.
pub(crate) fn invalid_value(command: &Command, argument: Option<&Arg>, reason: &str) -> clap::Error {
    let message = format!("invalid value{}: {reason}\n", argument.map(name_of).unwrap_or_default());
    clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
}

fn name_of(argument: &Arg) -> String {
    let variable = argument.get_env().map(|name| format!(" ({})", name.display()));
    format!(" for '{argument}'{}", variable.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use clap::Parser;

    use super::*;

    #[derive(Debug, Clone)]
    struct Token;

    #[derive(Debug, thiserror::Error)]
    #[error("expected a token")]
    struct InvalidToken;

    impl FromStr for Token {
        type Err = InvalidToken;

        fn from_str(text: &str) -> Result<Self, InvalidToken> {
            text.starts_with("token-").then_some(Self).ok_or(InvalidToken)
        }
    }

    #[derive(Debug, Parser)]
    struct Program {
        #[arg(long, env = "TEST_TOKEN", value_parser = SecretParser::<Token>::new())]
        token: Token,
    }

    #[test]
    fn errors_name_the_argument_and_do_not_repeat_the_value() {
        assert!(Program::try_parse_from(["program", "--token", "token-1"]).is_ok());
        for bad in [OsStr::new("hunter2"), OsStr::from_bytes(b"hunter2\xff")] {
            let error =
                Program::try_parse_from([OsStr::new("program"), OsStr::new("--token"), bad]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation);
            let text = format!("{error} {error:?}");
            assert!(!text.contains("hunter2") && !text.contains("104, 117"), "{text}");
            assert!(text.contains("--token <TOKEN>") && text.contains("(TEST_TOKEN)"), "{text}");
        }
    }
}
