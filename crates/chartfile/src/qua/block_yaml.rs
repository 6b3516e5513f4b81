//! Events of the YAML that Quaver writes: mappings and lists in blocks, with values of one line. Anything else is
//! left to the YAML library, which takes ten times as long. A test compares both.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::str::Lines;

use granit_parser::{Event, ScalarStyle, StructureStyle};

/// The maximum nesting depth here.
const MAX_LEVELS: usize = 8;

/// Reads line by line.
pub(super) struct BlockYaml<'a> {
    lines: Lines<'a>,
    /// The open mappings and lists, from the root on.
    levels: Vec<Level>,
    /// Whether the last line was a key without a value.
    is_open: bool,
    events: VecDeque<Event<'a>>,
}

#[derive(Clone, Copy, PartialEq)]
struct Level {
    indent: usize,
    is_list: bool,
}

const ROOT: Level = Level { indent: 0, is_list: false };

impl<'a> BlockYaml<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let start = [Event::StreamStart, Event::DocumentStart(false, None)];
        Self { lines: text.lines(), levels: Vec::new(), is_open: false, events: start.into() }
    }

    /// The next event; `None` if the text has something else in it.
    pub(super) fn next_event(&mut self) -> Option<Event<'a>> {
        while self.events.is_empty() {
            match self.lines.next() {
                Some(line) => self.read_line(line.trim_end_matches([' ', '\r']))?,
                None => self.read_end()?,
            }
        }
        self.events.pop_front()
    }

    fn read_end(&mut self) -> Option<()> {
        self.fill_open_key();
        let _has_entries = self.levels.first()?;
        while let Some(level) = self.levels.pop() {
            self.events.push_back(end_of(level));
        }
        self.events.extend([Event::DocumentEnd, Event::StreamEnd]);
        Some(())
    }

    fn read_line(&mut self, line: &'a str) -> Option<()> {
        let entry = line.trim_start_matches(' ');
        if entry.is_empty() {
            return Some(());
        }
        let indent = line.len() - entry.len();
        let (indent, entry) = match entry.strip_prefix("- ") {
            Some(item) => {
                self.begin(Level { indent, is_list: true })?;
                self.push(Level { indent: indent + 2, is_list: false })?;
                (indent + 2, item)
            }
            None => (indent, entry),
        };
        self.begin(Level { indent, is_list: false })?;
        let (key, value) = entry.split_once(':')?;
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        self.events.push_back(scalar(key, ScalarStyle::Plain));
        match value.strip_prefix(' ').map(|value| value.trim_start_matches(' ')) {
            None if value.is_empty() => self.is_open = true,
            None => return None,
            Some("[]") => self.events.extend([list_start(), Event::SequenceEnd]),
            Some(value) => self.events.push_back(one_line_scalar(value)?),
        }
        Some(())
    }

    /// Begins an entry of a mapping or a list: opens it below a key without a value, or closes what is below it.
    fn begin(&mut self, level: Level) -> Option<()> {
        if self.levels.is_empty() && level == ROOT {
            return self.push(level);
        }
        let top = *self.levels.last()?;
        let is_below = level.indent > top.indent || level.is_list && level.indent == top.indent;
        if self.is_open && is_below {
            self.is_open = false;
            return self.push(level);
        }
        self.fill_open_key();
        while *self.levels.last()? != level {
            let above = self.levels.pop()?;
            if above.indent < level.indent {
                return None;
            }
            self.events.push_back(end_of(above));
        }
        Some(())
    }

    fn push(&mut self, level: Level) -> Option<()> {
        self.events.push_back(if level.is_list { list_start() } else { mapping_start() });
        self.levels.push(level);
        (self.levels.len() <= MAX_LEVELS).then_some(())
    }

    fn fill_open_key(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.events.push_back(scalar("", ScalarStyle::Plain));
        }
    }
}

const fn mapping_start<'a>() -> Event<'a> {
    Event::MappingStart(StructureStyle::Block, 0, None)
}

const fn list_start<'a>() -> Event<'a> {
    Event::SequenceStart(StructureStyle::Block, 0, None)
}

const fn end_of<'a>(level: Level) -> Event<'a> {
    if level.is_list { Event::SequenceEnd } else { Event::MappingEnd }
}

const fn scalar(value: &str, style: ScalarStyle) -> Event<'_> {
    Event::Scalar(Cow::Borrowed(value), style, 0, None)
}

/// A value in single quotes without others in it, or a plain one without characters that mean something.
fn one_line_scalar(value: &str) -> Option<Event<'_>> {
    if !value.chars().all(|character| matches!(character, ' '..='~' | '\u{a0}'..='\u{d7ff}')) {
        return None;
    }
    if let Some(quoted) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return (!quoted.contains('\'')).then(|| scalar(quoted, ScalarStyle::SingleQuoted));
    }
    let unsigned = value.strip_prefix('-').unwrap_or(value);
    let starts_plain = unsigned.starts_with(|first| !" ~-?:,[]{}#&*!|>'\"%@`".contains(first));
    let is_plain = starts_plain && !value.contains(": ") && !value.contains(" #") && !value.ends_with(':');
    is_plain.then(|| scalar(value, ScalarStyle::Plain))
}

#[cfg(test)]
mod tests {
    use granit_parser::Parser;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// All events; `None` if the text has something else in it.
    fn block_events(text: &str) -> Option<Vec<Event<'_>>> {
        let mut block = BlockYaml::new(text);
        let mut events = vec![block.next_event()?];
        while *events.last()? != Event::StreamEnd {
            events.push(block.next_event()?);
        }
        Some(events)
    }

    /// The events of the library, with its own text for an empty value, and without the style of a list.
    fn library_events(text: &str) -> Option<Vec<Event<'_>>> {
        let events = Parser::new_from_str(text).map(|event| {
            Some(match event.ok()?.0 {
                Event::Scalar(value, ScalarStyle::Plain, 0, None) if value == "~" => {
                    scalar("", ScalarStyle::Plain)
                }
                Event::SequenceStart(_, 0, None) => list_start(),
                event => event,
            })
        });
        events.collect()
    }

    const WRITTEN: &str = "AudioFile: a.mp3\r\nMapId: -1\r\nTitle: Über [a], b:c#d\r\nArtist: </3 | x\r\nSource: ''\r\nTags: \r\nGenre:\r\n\
        EditorLayers: []\r\nTimingPoints:\r\n- StartTime: .5\r\n  Bpm: 92.5\r\nHitObjects:\r\n- StartTime: 1\r\n  \
        KeySounds:\r\n  - Sample: 1\r\n    Volume: 2\r\n  - Sample: 2\r\n  Lane: 1\r\n- Lane: 2\r\n  Deep:\r\n    \
        Deeper: 'a: b'\r\nLast: 1\r\n";

    #[test]
    fn files_of_the_game_are_read_here() {
        let events = block_events(WRITTEN).expect("nothing else");
        assert_eq!(Some(events), library_events(WRITTEN));
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
            "A: it's: 1",
            "A: 'it''s'",
            "A: {B: 1}",
            "A: &a b",
            "A: *a",
            "A: !a b",
            "A: |\\n  b",
            "A: - b",
            "A: -",
            "A: b\\n  c",
            "A: b\\n  C: 1",
            "A: b\\n- C: 1",
            "A:\\n- b",
            "A:\\n- B: 1\\n C: 1",
            "A:\\n- - B: 1",
            "A:\\n-  B: 1\\n   C: 1",
            "A:\\tb",
            "\\tA: b",
            "# comment",
            "---\\nA: 1",
            "A: 1\\n...",
            "A B: 1",
            "A: \\u{1}",
            "A: \\u{feff}",
        ] {
            let text = text
                .replace("\\n", "\n")
                .replace("\\t", "\t")
                .replace("\\u{1}", "\u{1}")
                .replace("\\u{feff}", "\u{feff}");
            assert_eq!(block_events(&text), None, "{text:?}");
        }
    }

    fn line() -> impl Strategy<Value = String> {
        let indent = select(vec!["", "", " ", "  ", "  ", "    "]);
        let dash = select(vec!["", "", "- ", "- ", "-", "-  "]);
        let key = select(vec!["A: ", "B: ", "C:", "D:", "E:  ", "F", "# "]);
        let value = select(vec![
            "", "", "1", "-5", ".5", "a b", "a:b", "a #", "''", "'x'", "[]", "{}", "-", "é", "~", "*a", "<a",
            "=", "a:", "-a", "--a", "?a", "a#b", "\"", "x: y",
        ]);
        let end = select(vec!["\n", "\r\n", " \n", "\n\n"]);
        (indent, dash, key, value, end)
            .prop_map(|(indent, dash, key, value, end)| format!("{indent}{dash}{key}{value}{end}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn events_are_those_of_the_library(lines in prop::collection::vec(line(), 1..8)) {
            let text = lines.concat();
            if let Some(events) = block_events(&text) {
                prop_assert_eq!(Some(events), library_events(&text), "{}", text);
            }
        }

        #[test]
        fn damaged_files_are_read_alike(at in any::<prop::sample::Index>(), with in select(vec!["", " ", "-", "'", "\n", "  ", ":", "a", "\t", "#"])) {
            let mut text = WRITTEN.to_owned();
            let start = at.index(text.len());
            if text.is_char_boundary(start) && text.is_char_boundary(start + 1) {
                text.replace_range(start..=start, with);
            }
            if let Some(events) = block_events(&text) {
                prop_assert_eq!(Some(events), library_events(&text), "{}", text);
            }
        }
    }
}
