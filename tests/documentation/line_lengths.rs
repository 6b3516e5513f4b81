//! Comments and prose have at most 112 characters a line.

use super::{files, read};

const MAX_CHARACTERS: usize = 112;

#[test]
fn comment_lines_are_short() {
    let long = long_lines("*.rs", false);
    assert!(long.is_empty(), "comments above {MAX_CHARACTERS} characters: {long:#?}");
}

#[test]
fn markdown_lines_are_short() {
    let long = long_lines("*.md", true);
    assert!(long.is_empty(), "lines above {MAX_CHARACTERS} characters: {long:#?}");
}

/// The lines that are too long, as `path:number`: prose in Markdown files, comments in others.
fn long_lines(pattern: &str, is_markdown: bool) -> Vec<String> {
    let paths = files(&[pattern]);
    assert!(paths.len() > 5, "{paths:?}");
    let mut long = Vec::new();
    for path in paths {
        let mut is_code = false;
        for (number, line) in (1..).zip(read(&path).lines()) {
            let prose = if is_markdown { Some(line) } else { comment_text(line) };
            let Some(text) = prose.map(str::trim_start) else {
                is_code = false;
                continue;
            };
            let is_fence = text.starts_with("```");
            is_code ^= is_fence;
            let is_wrapped = !is_code && !is_fence && !text.starts_with('|') && !is_link_definition(text);
            if is_wrapped && without_addresses(line).chars().count() > MAX_CHARACTERS {
                long.push(format!("{path}:{number}"));
            }
        }
    }
    long
}

/// The text of a line that is a comment as a whole.
fn comment_text(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.strip_prefix(['/', '!']).unwrap_or(comment))
}

fn is_link_definition(text: &str) -> bool {
    text.starts_with('[') && text.contains("]: ")
}

/// The line without the targets of links and without URLs, which cannot be wrapped.
fn without_addresses(line: &str) -> String {
    let mut parts = line.split("](");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    shown.split(' ').filter(|word| !word.contains("://")).collect::<Vec<_>>().join(" ")
}
