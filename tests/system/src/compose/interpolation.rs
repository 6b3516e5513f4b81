//! Variables in compose files: `${NAME}`, `${NAME:-default}`, `${NAME:?message}`, `$$`.

use std::collections::BTreeMap;

use serde_json::Value;

/// Replaces the variables in all strings of a document. Panics at a variable that is required and not set.
pub(super) fn interpolate(document: &mut Value, variables: &BTreeMap<String, String>) {
    match document {
        Value::String(text) => *text = interpolate_text(text, variables),
        Value::Array(values) => values.iter_mut().for_each(|value| interpolate(value, variables)),
        Value::Object(values) => values.values_mut().for_each(|value| interpolate(value, variables)),
        _ => {}
    }
}

fn interpolate_text(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut output = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        output.push_str(before);
        rest = if let Some(after) = after.strip_prefix('$') {
            output.push('$');
            after
        } else {
            let (expression, after) = expression(after);
            output.push_str(&value_of(expression, variables));
            after
        };
    }
    output + rest
}

/// The expression at the start of a text, without braces, and what follows it.
fn expression(text: &str) -> (&str, &str) {
    if let Some(braced) = text.strip_prefix('{') {
        return braced.split_once('}').unwrap_or_else(|| panic!("no end of the variable in {text}"));
    }
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.split_at(text.find(|character| !is_name(character)).unwrap_or(text.len()))
}

fn value_of(expression: &str, variables: &BTreeMap<String, String>) -> String {
    let (name, alternative) =
        expression.find([':', '-', '?']).map_or((expression, ""), |end| expression.split_at(end));
    // With a colon an empty variable counts as unset.
    let value = variables.get(name).filter(|value| !(alternative.starts_with(':') && value.is_empty()));
    let alternative = alternative.trim_start_matches(':');
    match (value, alternative.split_at_checked(1)) {
        (Some(value), _) => value.clone(),
        (None, Some(("-", default))) => default.to_owned(),
        (None, Some((_, message))) => panic!("{name} is required: {message}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_like_compose_does() {
        let variables = [("A", "1"), ("EMPTY", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let variables = BTreeMap::from(variables);
        for (text, expected) in [
            ("plain", "plain"),
            ("${A}/$A-", "1/1-"),
            ("${B:-2}${A:-2}", "21"),
            ("${EMPTY:-2}|${EMPTY-2}", "2|"),
            ("${B}|$$A", "|$A"),
            ("${A:?needed}", "1"),
        ] {
            assert_eq!(interpolate_text(text, &variables), expected, "{text}");
        }
    }

    #[test]
    #[should_panic(expected = "B is required: set it")]
    fn required_variable_must_be_set() {
        interpolate_text("${B:?set it}", &BTreeMap::new());
    }
}
