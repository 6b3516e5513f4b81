//! The names of metrics in expressions of Prometheus.

use std::collections::BTreeSet;

/// Words that are neither metrics nor followed by a parenthesis.
const OPERATORS: &[&str] = &["and", "or", "unless", "bool", "offset"];

/// Words before a list of labels.
const BEFORE_LABELS: &[&str] = &["by", "without", "on", "ignoring", "group_left", "group_right"];

/// Aggregations, which may have their labels before their argument.
const AGGREGATIONS: &[&str] = &["sum", "avg", "min", "max", "count", "topk", "bottomk", "quantile", "group"];

/// The metrics that an expression reads.
pub(crate) fn metrics(expression: &str) -> BTreeSet<String> {
    let plain = without_selectors(expression);
    let mut names = BTreeSet::new();
    let mut rest = plain.as_str();
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    while let Some(start) = rest.find(is_in_name) {
        let word_and_rest = &rest[start..];
        let end = word_and_rest.find(|c| !is_in_name(c)).unwrap_or(word_and_rest.len());
        let (word, after) = word_and_rest.split_at(end);
        rest = after;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        if BEFORE_LABELS.contains(&word) {
            rest = after.split_once(')').map_or("", |(_, rest)| rest);
        } else if !after.trim_start().starts_with('(')
            && !OPERATORS.contains(&word)
            && !AGGREGATIONS.contains(&word)
        {
            names.insert(word.to_owned());
        }
    }
    names
}

/// The expression without strings, matchers in braces and durations in brackets.
fn without_selectors(expression: &str) -> String {
    let mut plain = String::new();
    let (mut depth, mut is_string, mut is_escaped) = (0_u32, false, false);
    for c in expression.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_string => is_escaped = true,
            '"' => is_string = !is_string,
            _ if is_string => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}
