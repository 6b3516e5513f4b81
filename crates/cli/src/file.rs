//! Settings whose value is in a file, such as a mounted secret.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::path::Path;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::{Arg, Command};

use crate::secret::invalid_value;

/// Maximum size of such a file, so that a wrong path, such as that of a device, does not fill the memory.
const MAX_BYTES: u64 = 1024 * 1024;

/// Parses an argument that is the path of a file by what the file contains. One newline at the end is not part
/// of it.
///
/// Errors print the argument, its environment variable, the path, and the error of `T`, which must not contain
/// the value.
#[derive(Debug, Clone, Copy)]
pub struct FileParser<T>(PhantomData<fn() -> T>);

impl<T> FileParser<T> {
    /// A parser of `T` by its [`FromStr`].
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for FileParser<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> TypedValueParser for FileParser<T>
where
    T: FromStr<Err: std::error::Error> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let path = Path::new(value);
        let invalid = |reason: &dyn std::error::Error| {
            invalid_value(command, argument, &format!("{}: {reason}", path.display()))
        };
        let text = read(path).map_err(|error| invalid(&error))?;
        text.parse().map_err(|error: T::Err| invalid(&error))
    }
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
    use clap::Parser;
    use clap::error::ErrorKind;

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
        #[arg(long, env = "TEST_TOKEN_FILE", value_parser = FileParser::<Token>::new())]
        token_file: Token,
    }

    fn parse(path: &OsStr) -> Result<String, clap::Error> {
        let arguments = [OsStr::new("program"), OsStr::new("--token-file"), path];
        Program::try_parse_from(arguments).map(|program| program.token_file.0)
    }

    fn parse_content(content: &[u8]) -> Result<String, clap::Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, content).unwrap();
        parse(path.as_os_str())
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
            assert_eq!(parse_content(content.as_bytes()).unwrap(), expected, "{content:?}");
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
            let text = parse(OsStr::new(path)).unwrap_err().to_string();
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
