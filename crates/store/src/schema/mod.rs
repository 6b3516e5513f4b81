//! What statements have in common: columns, rows and values.

pub(crate) mod chart_row;
pub(crate) mod column_values;
pub(crate) mod derived_columns;
pub(crate) mod member_rows;
pub(crate) mod sql_text;
pub(crate) mod statement_columns;
pub(crate) mod stored_files;
pub(crate) mod stored_times;
pub(crate) mod text_search;
