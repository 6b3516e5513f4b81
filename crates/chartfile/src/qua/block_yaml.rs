//! The YAML that Quaver writes: mappings and lists in blocks, with values of one line. Anything else is left to
//! the YAML library, which takes five times as long. A test compares both.

use std::borrow::Cow;
use std::iter::Peekable;

use super::yaml::{MAX_NODES, Node, is_null};
use crate::rox_file::MAX_NOTES;

/// The maximum indent: four levels.
const MAX_INDENT: usize = 8;

/// The root of a document; `None` if the text has something else in it.
pub(super) fn read_block_document(text: &str) -> Option<Node<'_>> {
    let lines = text.lines().map(|line| line.trim_end_matches([' ', '\r']));
    let entries = lines.filter(|line| !line.is_empty()).map(|line| {
        let entry = line.trim_start_matches(' ');
        Entry { indent: line.len() - entry.len(), text: entry }
    });
    let mut block = Block { entries: entries.peekable(), inner: None, count: 0 };
    let root = block.map(0)?;
    block.peek().is_none().then_some(root)
}

/// A line without its indent.
#[derive(Clone, Copy)]
struct Entry<'a> {
    indent: usize,
    text: &'a str,
}

impl Entry<'_> {
    fn is_item(self) -> bool {
        self.text.starts_with("- ")
    }
}

struct Block<'a, I: Iterator<Item = Entry<'a>>> {
    entries: Peekable<I>,
    /// What follows the dash of an item.
    inner: Option<Entry<'a>>,
    count: usize,
}

impl<'a, I: Iterator<Item = Entry<'a>>> Block<'a, I> {
    fn peek(&mut self) -> Option<Entry<'a>> {
        self.inner.or_else(|| self.entries.peek().copied())
    }

    fn next(&mut self) {
        if self.inner.take().is_none() {
            self.entries.next();
        }
    }

    /// The mapping that begins here; at least one field.
    fn map(&mut self, indent: usize) -> Option<Node<'a>> {
        let mut fields = Vec::new();
        while let Some(entry) = self.peek().filter(|entry| entry.indent == indent && !entry.is_item()) {
            self.next();
            let (name, value) = entry.text.split_once(':')?;
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return None;
            }
            let value = match value.strip_prefix(' ') {
                Some(value) => one_line_value(value.trim_start_matches(' '))?,
                None if value.is_empty() => self.block_value(indent)?,
                None => return None,
            };
            fields.push((name, value));
            self.count += 2;
        }
        let is_limited = indent <= MAX_INDENT && self.count <= MAX_NODES;
        (is_limited && !fields.is_empty()).then_some(Node::Map(fields))
    }

    /// The list or mapping below a name. Lists need no deeper indent.
    fn block_value(&mut self, indent: usize) -> Option<Node<'a>> {
        match self.peek() {
            Some(entry) if entry.is_item() && entry.indent >= indent => self.list(entry.indent),
            Some(entry) if entry.indent > indent => self.map(entry.indent),
            _ => Some(Node::Null),
        }
    }

    fn list(&mut self, indent: usize) -> Option<Node<'a>> {
        let mut list = Vec::new();
        while let Some(entry) = self.peek().filter(|entry| entry.indent == indent && entry.is_item()) {
            self.next();
            self.inner = Some(Entry { indent: indent + 2, text: &entry.text[2..] });
            list.push(self.map(indent + 2)?);
            if list.len() > MAX_NOTES {
                return None;
            }
        }
        Some(Node::List(list))
    }
}

/// An empty list, text in single quotes without others in it, or plain text without characters that mean
/// something.
fn one_line_value(value: &str) -> Option<Node<'_>> {
    let text = |text| Some(Node::Text(Cow::Borrowed(text)));
    if !value.chars().all(|character| matches!(character, ' '..='~' | '\u{a0}'..='\u{d7ff}')) {
        return None;
    }
    if let Some(quoted) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return text(quoted).filter(|_| !quoted.contains('\''));
    }
    let first = value.strip_prefix('-').unwrap_or(value).chars().next()?;
    let is_plain = !" -?:,[]{}#&*!|>'\"%@`".contains(first)
        && !value.contains(": ")
        && !value.contains(" #")
        && !value.ends_with(':');
    match value {
        "[]" => Some(Node::List(Vec::new())),
        _ if !is_plain => None,
        _ if is_null(value) => Some(Node::Null),
        _ => text(value),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::*;
    use crate::qua::yaml::read_document;

    const WRITTEN: &str = "AudioFile: a.mp3\r\nMapId: -1\r\nTitle: Über [a], b:c#d\r\nArtist: </3 | x\r\nSource: ''\r\nTags: \
        \r\nGenre:\r\nEditorLayers: []\r\nTimingPoints:\r\n- StartTime: .5\r\n  Bpm: 92.5\r\nHitObjects:\r\n- StartTime: \
        1\r\n  KeySounds:\r\n  - Sample: 1\r\n    Volume: 2\r\n  - Sample: 2\r\n  Lane: 1\r\n- Lane: 2\r\n  Deep:\r\n    \
        Deeper: 'a: b'\r\nLast: 1\r\n";

    #[test]
    fn files_of_the_game_are_read_here() {
        let root = read_block_document(WRITTEN).expect("nothing else");
        assert_eq!(Ok(root), read_document(WRITTEN));
    }

    #[test]
    fn other_yaml_is_left_to_the_library() {
        for text in [
            "",
            "- A: 1",
            "  A: 1",
            "A",
            "A:1",
            "A: \"b\"",
            "A: b: c",
            "A: b:",
            "A: b #c",
            "A: 'it''s'",
            "A: {B: 1}",
            "A: &a b",
            "A: *a",
            "A: !a b",
            "A: |\n  b",
            "A: - b",
            "A: -",
            "A: b\n  c",
            "A: b\n  C: 1",
            "A: b\n- C: 1",
            "A:\n- b",
            "A:\n-",
            "A:\n- B: 1\n C: 1",
            "A:\n- - B: 1",
            "A:\n-  B: 1\n   C: 1",
            "A:\tb",
            "\tA: b",
            "# comment",
            "---\nA: 1",
            "A: 1\n...",
            "A B: 1",
            "A: \u{1}",
            "A: \u{feff}",
            "A:\n         B: 1",
        ] {
            assert_eq!(read_block_document(text), None, "{text:?}");
        }
    }

    fn line() -> impl Strategy<Value = String> {
        let indent = select(vec!["", "", " ", "  ", "  ", "    "]);
        let dash = select(vec!["", "", "- ", "- ", "-", "-  "]);
        let name = select(vec!["A: ", "B: ", "C:", "D:", "E:  ", "F", "# "]);
        let value = select(vec![
            "", "", "1", "-5", ".5", "a b", "a:b", "a #", "''", "'x'", "[]", "{}", "-", "é", "~", "null",
            "*a", "\"", "x: y", "<a", "=", "a:", "-a", "--a", "?a", "a#b",
        ]);
        let end = select(vec!["\n", "\r\n", " \n", "\n\n"]);
        (indent, dash, name, value, end)
            .prop_map(|(indent, dash, name, value, end)| [indent, dash, name, value, end].concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn nodes_are_those_of_the_library(lines in prop::collection::vec(line(), 1..8)) {
            let text = lines.concat();
            if let Some(root) = read_block_document(&text) {
                prop_assert_eq!(Ok(root), read_document(&text), "{}", text);
            }
        }

        #[test]
        fn damaged_files_are_read_alike(
            at in any::<Index>(),
            with in select(vec!["", " ", "-", "'", "\n", "  ", ":", "a", "\t", "#"]),
        ) {
            let mut text = WRITTEN.to_owned();
            let start = at.index(text.len());
            if text.is_char_boundary(start) && text.is_char_boundary(start + 1) {
                text.replace_range(start..=start, with);
            }
            if let Some(root) = read_block_document(&text) {
                prop_assert_eq!(Ok(root), read_document(&text), "{}", text);
            }
        }
    }
}
