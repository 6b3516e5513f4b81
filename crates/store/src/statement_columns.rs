//! Generates the parts of a statement from one list of columns and their values, so that names and placeholders
//! match.
//!
//! Code that binds its parameters in a fixed order gets the same placeholders in every call. It may cache the
//! text of the statement, which takes longer to build than the values take to bind.

use std::fmt;

use sqlx::error::BoxDynError;
use sqlx::postgres::PgArguments;
use sqlx::{Arguments, Encode, Postgres, Type};

/// The parameters of a statement, numbered in the order in which they are bound.
#[derive(Default)]
pub(crate) struct Parameters {
    arguments: PgArguments,
    error: Option<BoxDynError>,
}

impl Parameters {
    /// Binds a value.
    pub(crate) fn bind<'q, T>(&mut self, value: T) -> Placeholder
    where
        T: Encode<'q, Postgres> + Type<Postgres>,
    {
        if let Err(error) = self.arguments.add(value) {
            self.error.get_or_insert(error);
        }
        Placeholder(self.arguments.len())
    }

    /// The bound values, or the error of the first that cannot be encoded.
    pub(crate) fn into_arguments(self) -> Result<PgArguments, sqlx::Error> {
        self.error.map_or(Ok(self.arguments), |error| Err(sqlx::Error::Encode(error)))
    }
}

/// The number of a bound value, displayed as `$7`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placeholder(usize);

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.0)
    }
}

/// Columns with their values.
#[derive(Default)]
pub(crate) struct Columns(Vec<Column>);

struct Column {
    name: &'static str,
    /// Converts the bound value to the type of the column.
    function: Option<&'static str>,
    placeholder: Placeholder,
}

impl Column {
    fn value(&self) -> String {
        match self.function {
            Some(function) => format!("{function}({})", self.placeholder),
            None => self.placeholder.to_string(),
        }
    }
}

impl Columns {
    /// Adds a column.
    pub(crate) fn add(&mut self, name: &'static str, placeholder: Placeholder) {
        self.0.push(Column { name, function: None, placeholder });
    }

    /// Adds a column whose value is the result of a function.
    pub(crate) fn add_call(&mut self, name: &'static str, function: &'static str, placeholder: Placeholder) {
        self.0.push(Column { name, function: Some(function), placeholder });
    }

    /// The names, for `INSERT INTO table (…)`.
    pub(crate) fn names(&self) -> String {
        self.join(|column| column.name.to_owned())
    }

    /// The values, in the order of the names.
    pub(crate) fn values(&self) -> String {
        self.join(Column::value)
    }

    /// `name = value, …`, for `UPDATE table SET …`.
    pub(crate) fn assignments(&self) -> String {
        self.join(|column| format!("{} = {}", column.name, column.value()))
    }

    /// `name = excluded.name, …`, for `ON CONFLICT … DO UPDATE SET …`.
    pub(crate) fn excluded_assignments(&self) -> String {
        self.join(|Column { name, .. }| format!("{name} = excluded.{name}"))
    }

    fn join(&self, part: impl Fn(&Column) -> String) -> String {
        self.0.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_placeholders_have_the_same_order() {
        let mut parameters = Parameters::default();
        let mut columns = Columns::default();
        columns.add("title", parameters.bind("x"));
        columns.add_call("words", "array_to_tsvector", parameters.bind(vec!["x"]));
        assert_eq!(columns.names(), "title, words");
        assert_eq!(columns.values(), "$1, array_to_tsvector($2)");
        assert_eq!(columns.assignments(), "title = $1, words = array_to_tsvector($2)");
        assert_eq!(columns.excluded_assignments(), "title = excluded.title, words = excluded.words");
        assert_eq!(parameters.into_arguments().unwrap().len(), 2);
    }
}
