//! `DATABASE_URL` on the command line.

use std::ffi::OsStr;

use chart_index_store::{DatabaseUrl, InvalidDatabaseUrl};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

/// Parses a database URL. Clap's own parsers repeat a value that they refuse, and this one may hold a password.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseUrlParser;

impl TypedValueParser for DatabaseUrlParser {
    type Value = DatabaseUrl;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<DatabaseUrl, Error> {
        value.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
            let name = argument.map_or_else(|| "DATABASE_URL".to_owned(), ToString::to_string);
            let message = format!("invalid value for '{name}': {InvalidDatabaseUrl}\n");
            Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}
