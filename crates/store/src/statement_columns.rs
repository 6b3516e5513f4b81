//! Generates the parts of a statement from one list of columns with their values, so that names and placeholders cannot
//! get out of step.

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
    /// Binds a value. Returns its placeholder, such as `$7`.
    pub(crate) fn bind<'q, T>(&mut self, value: T) -> String
    where
        T: Encode<'q, Postgres> + Type<Postgres>,
    {
        if let Err(error) = self.arguments.add(value) {
            self.error.get_or_insert(error);
        }
        format!("${}", self.arguments.len())
    }

    /// The bound values, or the error of the first that cannot be encoded.
    pub(crate) fn into_arguments(self) -> Result<PgArguments, sqlx::Error> {
        self.error.map_or(Ok(self.arguments), |error| Err(sqlx::Error::Encode(error)))
    }
}

/// Columns and the expressions of their values.
#[derive(Default)]
pub(crate) struct Columns {
    names: Vec<&'static str>,
    values: Vec<String>,
}

impl Columns {
    /// Adds a column. The value is a placeholder or another expression.
    pub(crate) fn add(&mut self, name: &'static str, value: String) {
        self.names.push(name);
        self.values.push(value);
    }

    /// The names, for `INSERT INTO table (…)`.
    pub(crate) fn names(&self) -> String {
        self.names.join(", ")
    }

    /// The values, in the order of the names.
    pub(crate) fn values(&self) -> String {
        self.values.join(", ")
    }

    /// `name = value, …`, for `UPDATE table SET …`.
    pub(crate) fn assignments(&self) -> String {
        let columns = self.names.iter().zip(&self.values);
        columns.map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
    }

    /// `name = excluded.name, …`, for `ON CONFLICT … DO UPDATE SET …`.
    pub(crate) fn excluded_assignments(&self) -> String {
        let assignments = self.names.iter().map(|name| format!("{name} = excluded.{name}"));
        assignments.collect::<Vec<_>>().join(", ")
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
        columns.add("words", format!("array_to_tsvector({})", parameters.bind(vec!["x"])));
        assert_eq!(columns.names(), "title, words");
        assert_eq!(columns.values(), "$1, array_to_tsvector($2)");
        assert_eq!(columns.assignments(), "title = $1, words = array_to_tsvector($2)");
        assert_eq!(columns.excluded_assignments(), "title = excluded.title, words = excluded.words");
        assert_eq!(parameters.into_arguments().unwrap().len(), 2);
    }
}
