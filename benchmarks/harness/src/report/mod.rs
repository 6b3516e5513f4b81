//! What is reported: a table in the terminal.

mod terminal;

pub(crate) use terminal::comparison_table;
