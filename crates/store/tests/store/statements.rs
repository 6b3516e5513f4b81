//! PostgreSQL prepares every static statement of the store against the migrated schema, so that an unknown
//! column or a syntax error fails here, even in a statement that no other test runs.
//!
//! The statements are read from the source: the argument of every `sqlx::query…` call, with its macros
//! expanded.

use std::collections::HashMap;
use std::path::Path;

use crate::support::Catalogue;

#[tokio::test]
async fn every_static_statement_can_be_prepared() {
    let source = Source::read();
    let statements = source.statements();
    assert!(statements.len() >= 37, "{} statements found", statements.len());
    let catalogue = Catalogue::create().await;
    for (file, statement) in statements {
        println!("{file}: {statement}");
        let _ = catalogue.database.psql(&format!("PREPARE statement AS {statement}"));
    }
}

/// The source files of the store, and the bodies of their macros.
struct Source {
    files: Vec<(String, String)>,
    macros: HashMap<String, String>,
}

impl Source {
    fn read() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let folders = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let folders = folders.filter(|path| path.is_dir()).chain([folder.clone()]);
        let paths = folders.flat_map(|folder| folder.read_dir().unwrap()).map(|entry| entry.unwrap().path());
        let files: Vec<(String, String)> = paths
            .filter(|path| path.is_file())
            .filter(|path| !path.to_str().unwrap().ends_with("_tests.rs"))
            .map(|path| (path.file_name().unwrap().to_str().unwrap().into(), read(&path)))
            .collect();
        let mut macros = HashMap::new();
        for (_, text) in &files {
            for definition in text.split("macro_rules! ").skip(1) {
                let (name, rest) = definition.split_once(" {").unwrap();
                let (_, body) = enclosed(rest).split_once("=> {").unwrap();
                macros.insert(name.to_owned(), enclosed(body).to_owned());
            }
        }
        Self { files, macros }
    }

    /// Every statement, with the name of its file.
    fn statements(&self) -> Vec<(&str, String)> {
        let mut statements = Vec::new();
        for (file, text) in &self.files {
            for call in text.split("sqlx::query").skip(1) {
                let (function, arguments) = call.split_once('(').unwrap();
                if matches!(function, "" | "_as" | "_scalar") {
                    statements.extend(self.evaluate(enclosed(arguments)).map(|sql| (&**file, sql)));
                }
            }
            // Constants, which are passed to `sqlx::query…` in variables.
            for constant in text.split(": &str = \"SELECT ").skip(1) {
                let (columns, _) = constant.split_once("\";").unwrap();
                statements.push((file, format!("SELECT {}", unescaped(columns))));
            }
        }
        statements
    }

    /// The value of a literal or of a macro. `None` for a variable.
    fn evaluate(&self, expression: &str) -> Option<String> {
        let expression = expression.trim().trim_end_matches(',');
        if let Some(literal) = expression.strip_prefix('"') {
            return Some(unescaped(literal.strip_suffix('"').unwrap()));
        }
        let (name, arguments) = expression.split_once("!(")?;
        let arguments = enclosed(arguments);
        match name.rsplit("::").next().unwrap() {
            "concat" => split_arguments(arguments).map(|part| self.evaluate(part)).collect(),
            name => self.evaluate(&self.macros[name].replace("$condition", arguments)),
        }
    }
}

fn read(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    // Without its unit tests.
    text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned()
}

/// The text up to the bracket that closes the one before it.
fn enclosed(text: &str) -> &str {
    let end = top_level(text).find(|(depth, _, _)| *depth < 0);
    &text[..end.unwrap().1]
}

/// The arguments of a call, without a trailing comma.
fn split_arguments(text: &str) -> impl Iterator<Item = &str> {
    let commas = top_level(text).filter(|(depth, _, character)| *depth == 0 && *character == ',');
    let ends: Vec<usize> = commas.map(|(_, position, _)| position).chain([text.len()]).collect();
    let starts = [0].into_iter().chain(ends.clone().into_iter().map(|end| end + 1));
    starts.zip(ends).map(|(start, end)| text[start..end].trim()).filter(|argument| !argument.is_empty())
}

/// The characters outside of string literals, each with the number of open brackets and its position.
fn top_level(text: &str) -> impl Iterator<Item = (i32, usize, char)> {
    let (mut depth, mut in_literal, mut escaped) = (0, false, false);
    text.char_indices().filter_map(move |(position, character)| {
        if in_literal {
            in_literal = escaped || character != '"';
            escaped = !escaped && character == '\\';
            return None;
        }
        match character {
            '"' => in_literal = true,
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ => (),
        }
        Some((depth, position, character))
    })
}

/// The value of a string literal.
fn unescaped(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let joined = lines.fold(first, |text, line| text + line.trim_start());
    joined.replace("\\\"", "\"").replace("\\\\", "\\")
}
