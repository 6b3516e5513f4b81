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

/// Columns with the values of several rows: each parameter is an array with an element per row. A statement
/// reads the rows with `unnest` as `given`.
#[derive(Default)]
pub(crate) struct Columns(Vec<Column>);

#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    /// The type to which the elements are converted, which is an array itself: in PostgreSQL, all rows of a
    /// two-dimensional array have the same length.
    cast: Option<&'static str>,
    placeholder: Placeholder,
}

impl Column {
    fn value(&self) -> String {
        let Self { name, cast, .. } = self;
        cast.map_or_else(|| format!("given.{name}"), |cast| format!("given.{name}::{cast}"))
    }
}

impl Columns {
    /// All columns of these.
    pub(crate) fn concat<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        Self(parts.into_iter().flat_map(|part| &part.0).copied().collect())
    }

    /// A single column.
    pub(crate) fn single(name: &'static str, placeholder: Placeholder) -> Self {
        Self(vec![Column { name, cast: None, placeholder }])
    }

    /// Adds a column.
    pub(crate) fn add(&mut self, name: &'static str, placeholder: Placeholder) {
        self.0.push(Column { name, cast: None, placeholder });
    }

    /// Adds a column whose values are text of this type, such as that of [`array_literal`].
    pub(crate) fn add_cast(&mut self, name: &'static str, cast: &'static str, placeholder: Placeholder) {
        self.0.push(Column { name, cast: Some(cast), placeholder });
    }

    /// The names, for `INSERT INTO table (…)`.
    pub(crate) fn names(&self) -> String {
        self.join(|column| column.name.to_owned())
    }

    /// `unnest($1, …) AS given (name, …)`, for `FROM`.
    pub(crate) fn given(&self) -> String {
        format!("unnest({}) AS given ({})", self.join(|column| column.placeholder.to_string()), self.names())
    }

    /// The values, in the order of the names, for `SELECT`.
    pub(crate) fn values(&self) -> String {
        self.join(Column::value)
    }

    /// `name = given.name, …`, for `UPDATE table SET … FROM`.
    pub(crate) fn assignments(&self) -> String {
        self.join(|column| format!("{} = {}", column.name, column.value()))
    }

    /// `(table.name, …) IS DISTINCT FROM (given.name, …)`, for `WHERE`.
    pub(crate) fn differ_from(&self, table: &str) -> String {
        let stored = self.join(|Column { name, .. }| format!("{table}.{name}"));
        format!("({stored}) IS DISTINCT FROM ({})", self.values())
    }

    /// `name = excluded.name, …`, for `ON CONFLICT … DO UPDATE SET …`.
    pub(crate) fn excluded_assignments(&self) -> String {
        self.join(|Column { name, .. }| format!("{name} = excluded.{name}"))
    }

    fn join(&self, part: impl Fn(&Column) -> String) -> String {
        self.0.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

/// The text of an array.
pub(crate) fn array_literal<T: AsRef<str>>(elements: impl IntoIterator<Item = T>) -> String {
    let mut literal = String::from("{");
    for element in elements {
        if literal.len() > 1 {
            literal.push(',');
        }
        literal.push('"');
        for character in element.as_ref().chars() {
            if matches!(character, '"' | '\\') {
                literal.push('\\');
            }
            literal.push(character);
        }
        literal.push('"');
    }
    literal.push('}');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_placeholders_have_the_same_order() {
        let mut parameters = Parameters::default();
        let mut columns = Columns::default();
        columns.add("title", parameters.bind(vec!["x"]));
        columns.add_cast("tags", "text[]", parameters.bind(vec![array_literal(["x"])]));
        assert_eq!(columns.names(), "title, tags");
        assert_eq!(columns.given(), "unnest($1, $2) AS given (title, tags)");
        assert_eq!(columns.values(), "given.title, given.tags::text[]");
        assert_eq!(columns.assignments(), "title = given.title, tags = given.tags::text[]");
        assert_eq!(columns.excluded_assignments(), "title = excluded.title, tags = excluded.tags");
        assert_eq!(parameters.into_arguments().unwrap().len(), 2);
    }

    #[test]
    fn array_literals_are_quoted() {
        assert_eq!(array_literal::<&str>([]), "{}");
        assert_eq!(array_literal(["a", "", "NULL", "b \"c\" \\,}"]), r#"{"a","","NULL","b \"c\" \\,}"}"#);
    }
}
