//! Arguments with secrets, in the value itself or in a file, such as a mounted one.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::path::Path;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};

/// Maximum size of a file, so that a wrong path, such as that of a device, does not fill the memory.
const MAX_BYTES: u64 = 1024 * 1024;

/// Parses an argument that may contain a secret, such as a URL with a password, or that is the path of a file
/// with one.
///
/// Clap's own parsers print a value that they reject. This one prints the argument, its environment variable,
/// the path of the file, and the error of `T`, which must not contain the value.
#[derive(Debug, Clone, Copy)]
pub struct SecretParser<T> {
    is_path: bool,
    value: PhantomData<fn() -> T>,
}

impl<T> SecretParser<T> {
    /// A parser of values of `T` by its [`FromStr`].
    #[must_use]
    pub const fn new() -> Self {
        Self { is_path: false, value: PhantomData }
    }

    /// A parser of paths, of files that contain a value. One newline at the end is not part of it.
    #[must_use]
    pub const fn in_file() -> Self {
        Self { is_path: true, value: PhantomData }
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
        let parsed = if self.is_path {
            let path = Path::new(value);
            let parsed = read(path).map_err(|error| error.to_string()).and_then(|text| parse(&text));
            parsed.map_err(|reason| format!("{}: {reason}", path.display()))
        } else {
            value.to_str().ok_or_else(|| "not UTF-8".to_owned()).and_then(parse)
        };
        parsed.map_err(|reason| invalid_value(command, argument, &reason))
    }
}

fn parse<T: FromStr<Err: Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// The error that a value is invalid, which does not contain the value.
fn invalid_value(command: &Command, argument: Option<&Arg>, reason: &str) -> clap::Error {
    let message = format!("invalid value{}: {reason}\n", argument.map(name_of).unwrap_or_default());
    clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
}

fn name_of(argument: &Arg) -> String {
    let variable = argument.get_env().map(|name| format!(" ({})", name.display()));
    format!(" for '{argument}'{}", variable.unwrap_or_default())
}

/// A file does not contain the value of a setting.
#[derive(Debug, thiserror::Error)]
enum UnusableFile {
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("is empty")]
    Empty,
    #[error("is larger than 1 MiB")]
    TooLarge,
    #[error("is not UTF-8")]
    NotUtf8,
}

fn read(path: &Path) -> Result<String, UnusableFile> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(UnusableFile::TooLarge);
    }
    let text = String::from_utf8(bytes).map_err(|_| UnusableFile::NotUtf8)?;
    let line = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if line.is_empty() { Err(UnusableFile::Empty) } else { Ok(line.to_owned()) }
}

/// Several values in one file, separated by commas like those of an environment variable.
#[derive(Debug, Clone)]
pub struct CommaSeparated<T>(pub Vec<T>);

impl<T: FromStr> FromStr for CommaSeparated<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use clap::Parser;

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Token(String);

    #[derive(Debug, thiserror::Error)]
    #[error("expected a token")]
    struct InvalidToken;

    impl FromStr for Token {
        type Err = InvalidToken;

        fn from_str(text: &str) -> Result<Self, InvalidToken> {
            text.starts_with("token-").then(|| Self(text.to_owned())).ok_or(InvalidToken)
        }
    }

    #[derive(Debug, Parser)]
    struct Program {
        #[arg(long, env = "TEST_TOKEN", value_parser = SecretParser::<Token>::new())]
        token: Option<Token>,
        #[arg(long, env = "TEST_TOKEN_FILE", value_parser = SecretParser::<Token>::in_file())]
        token_file: Option<Token>,
    }

    fn parse(argument: &str, value: &OsStr) -> Result<Token, clap::Error> {
        let program = Program::try_parse_from([OsStr::new("program"), OsStr::new(argument), value])?;
        Ok(program.token.or(program.token_file).unwrap())
    }

    fn parse_content(content: &[u8]) -> Result<Token, clap::Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, content).unwrap();
        parse("--token-file", path.as_os_str())
    }

    #[test]
    fn errors_name_the_argument_and_do_not_repeat_the_value() {
        assert!(parse("--token", OsStr::new("token-1")).is_ok());
        for bad in [OsStr::new("hunter2"), OsStr::from_bytes(b"hunter2\xff")] {
            let error = parse("--token", bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation);
            let text = format!("{error} {error:?}");
            assert!(!text.contains("hunter2") && !text.contains("104, 117"), "{text}");
            assert!(text.contains("--token <TOKEN>") && text.contains("(TEST_TOKEN)"), "{text}");
        }
    }

    #[test]
    fn one_newline_at_the_end_is_dropped() {
        for (content, expected) in [
            ("token-1", "token-1"),
            ("token-1\n", "token-1"),
            ("token-1\r\n", "token-1"),
            ("token-1\n\n", "token-1\n"),
            ("token-1 ", "token-1 "),
        ] {
            assert_eq!(parse_content(content.as_bytes()).unwrap().0, expected, "{content:?}");
        }
    }

    #[test]
    fn errors_name_setting_and_path_without_content() {
        let too_large = [b"hunter2".as_slice(), &vec![b'x'; 1024 * 1024]].concat();
        for (content, reason) in [
            (b"".as_slice(), "is empty"),
            (b"\n", "is empty"),
            (b"hunter2", "expected a token"),
            (b"hunter2\xff", "is not UTF-8"),
            (&too_large, "is larger than 1 MiB"),
        ] {
            let error = parse_content(content).unwrap_err();
            assert_eq!((error.kind(), error.exit_code()), (ErrorKind::ValueValidation, 2));
            let text = format!("{error} {error:?}");
            assert!(!text.contains("hunter2"), "{text}");
            for part in ["--token-file <TOKEN_FILE>", "(TEST_TOKEN_FILE)", "/token: ", reason] {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
    }

    #[test]
    fn unreadable_files_are_errors() {
        for path in ["/nonexistent/token", "/"] {
            let text = parse("--token-file", OsStr::new(path)).unwrap_err().to_string();
            assert!(text.contains(&format!("{path}: cannot be read: ")), "{text}");
        }
    }

    #[test]
    fn list_is_separated_by_commas() {
        let list = "token-1,token-2".parse::<CommaSeparated<Token>>().unwrap();
        assert_eq!(list.0, [Token("token-1".into()), Token("token-2".into())]);
        assert!("token-1,".parse::<CommaSeparated<Token>>().is_err());
    }
}
