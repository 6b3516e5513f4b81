//! Reads YAML into objects as Quaver does, with `YamlDotNet` 5.1.0: a value is read for the type of its field,
//! whether it is quoted or not, the last of several equal fields counts, and unknown fields are skipped.
//!
//! Quaver.API e73fb5db, `Qua.Deserializer`; aaubry/YamlDotNet v5.1.0, `ScalarNodeDeserializer`,
//! `NullNodeDeserializer`, `ObjectNodeDeserializer`, `CollectionNodeDeserializer`, `AliasValueDeserializer`.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, StrInput};

use super::block_yaml::BlockYaml;
use crate::Refusal;
use crate::dotnet::{self, NumberFormat};
use crate::rox_file::MAX_NOTES;

/// The maximum number of events of nodes with an anchor and of aliases together. Each is held in memory.
const MAX_REPEATED_EVENTS: usize = 500_000;

/// The maximum length of a list: that of the notes of a chart.
const MAX_LIST_ENTRIES: usize = MAX_NOTES;

/// The maximum nesting depth. Charts have five levels.
const MAX_DEPTH: usize = 100;

/// `YamlFormatter.NumberFormat`.
const FORMAT: NumberFormat = NumberFormat { group_separator: b'_', infinity: ".inf", not_a_number: ".nan" };

/// An object whose fields are read one by one.
pub(super) trait Object: Default {
    /// Reads the field with this name, or [skips](Reader::skip) it.
    fn read_field(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<(), Refusal>;
}

/// Reads the nodes of a document.
pub(super) struct Reader<'a> {
    source: Source<'a>,
    /// The events before those of the source, the next one last.
    repeated: Vec<Event<'a>>,
    /// The events of the nodes with an anchor.
    anchors: HashMap<usize, Vec<Event<'a>>>,
    repeated_count: usize,
    /// The name of the field that is read, for errors.
    field: Cow<'a, str>,
}

/// Where events come from.
enum Source<'a> {
    Block(BlockYaml<'a>),
    Library(Box<Parser<'a, StrInput<'a>>>),
    /// The text has to be read by the library, from the start.
    Other,
}

/// Reads the only document of a file.
pub(super) fn read_document<T: Object>(text: &str) -> Result<T, Refusal> {
    let mut reader = Reader::new(Source::Block(BlockYaml::new(text)));
    let result = reader.document();
    if !matches!(reader.source, Source::Other) {
        return result;
    }
    let mut options = Options::default();
    (options.flow_nesting_limit, options.block_nesting_limit) = (MAX_DEPTH, MAX_DEPTH);
    let parser = Parser::new_from_str_with_options(text, options);
    Reader::new(Source::Library(Box::new(parser))).document()
}

impl<'a> Reader<'a> {
    fn new(source: Source<'a>) -> Self {
        let field = Cow::Borrowed("document");
        Self { source, repeated: Vec::new(), anchors: HashMap::new(), repeated_count: 0, field }
    }

    fn document<T: Object>(&mut self) -> Result<T, Refusal> {
        let (Event::StreamStart, Event::DocumentStart(..)) = (self.next()?, self.next()?) else {
            return Err(Refusal::undecodable("the file is empty"));
        };
        let object = self.object()?;
        let (Event::DocumentEnd, Event::StreamEnd) = (self.next()?, self.next()?) else {
            return Err(Refusal::undecodable("the file has several documents"));
        };
        Ok(object)
    }

    fn next(&mut self) -> Result<Event<'a>, Refusal> {
        if let Some(event) = self.repeated.pop() {
            return Ok(event);
        }
        if let Source::Block(block) = &mut self.source {
            if let Some(event) = block.next_event() {
                return Ok(event);
            }
            self.source = Source::Other;
        }
        let event = match &mut self.source {
            Source::Library(parser) => parser.next_event(),
            _ => None,
        };
        match event {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(Refusal::undecodable(&error.to_string())),
            None => Err(Refusal::undecodable("the document ends early")),
        }
    }

    /// The first event of a node. An alias is replaced by its node, and a node with an anchor is recorded.
    fn node(&mut self) -> Result<Event<'a>, Refusal> {
        loop {
            let event = self.next()?;
            let events = match (&event, event.anchor_id()) {
                (Event::Alias(id), _) => {
                    let events = self.anchors.get(id);
                    events.ok_or_else(|| self.invalid("an alias of a node that was read"))?.clone()
                }
                (_, Some(id)) => {
                    let events = self.whole_node(without_anchor(event))?;
                    self.anchors.insert(id, events.clone());
                    events
                }
                _ => return Ok(event),
            };
            self.count_repeated(events.len())?;
            self.repeated.extend(events.into_iter().rev());
        }
    }

    fn whole_node(&mut self, first: Event<'a>) -> Result<Vec<Event<'a>>, Refusal> {
        let mut depth = nesting(&first);
        let mut events = vec![first];
        while depth > 0 {
            self.count_repeated(1)?;
            let event = self.next()?;
            depth += nesting(&event);
            events.push(event);
        }
        Ok(events)
    }

    fn count_repeated(&mut self, count: usize) -> Result<(), Refusal> {
        self.repeated_count += count;
        if self.repeated_count > MAX_REPEATED_EVENTS {
            return Err(Refusal::LimitExceeded { what: "YAML aliases" });
        }
        Ok(())
    }

    /// Skips the value of a field.
    pub(super) fn skip(&mut self) -> Result<(), Refusal> {
        let mut depth = nesting(&self.next()?);
        while depth > 0 {
            depth += nesting(&self.next()?);
        }
        Ok(())
    }

    /// An object, or `None` for null.
    pub(super) fn optional_object<T: Object>(&mut self, tag: Option<&str>) -> Result<Option<T>, Refusal> {
        let node = self.node()?;
        if is_null(&node) {
            return Ok(None);
        }
        let has_tag =
            node.tag().map(|known| format!("{}{}", known.handle(), known.suffix())).as_deref() == tag;
        if !has_tag || !matches!(node, Event::MappingStart(..)) {
            return Err(self.invalid("an object"));
        }
        let mut object = T::default();
        loop {
            match self.next()? {
                Event::MappingEnd => return Ok(Some(object)),
                Event::Scalar(name, ..) => {
                    self.field = name.clone();
                    object.read_field(&name, self)?;
                }
                _ => return Err(self.invalid("the name of a field")),
            }
        }
    }

    /// An object. The game needs it.
    pub(super) fn object<T: Object>(&mut self) -> Result<T, Refusal> {
        self.optional_object(None)?.ok_or_else(|| self.invalid("an object"))
    }

    /// A list, or `None` for null.
    pub(super) fn optional_list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, Refusal>,
    ) -> Result<Option<Vec<T>>, Refusal> {
        let node = self.node()?;
        if is_null(&node) {
            return Ok(None);
        }
        let Event::SequenceStart(_, _, None) = node else { return Err(self.invalid("a list")) };
        let mut list = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Some(list)),
                _ if list.len() == MAX_LIST_ENTRIES => {
                    return Err(Refusal::LimitExceeded { what: "YAML list entries" });
                }
                event => self.repeated.push(event),
            }
            list.push(item(self)?);
        }
    }

    /// A list of objects. The game needs both.
    pub(super) fn list<T: Object>(&mut self) -> Result<Vec<T>, Refusal> {
        self.optional_list(Self::object)?.ok_or_else(|| self.invalid("a list"))
    }

    /// Reads the values of a mapping, whose keys may be any text.
    pub(super) fn values<T>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<T, Refusal>,
    ) -> Result<(), Refusal> {
        let Event::MappingStart(_, _, None) = self.node()? else { return Err(self.invalid("a mapping")) };
        loop {
            match self.next()? {
                Event::MappingEnd => return Ok(()),
                event => self.repeated.push(event),
            }
            self.scalar()?.ok_or_else(|| self.invalid("a key"))?;
            read(self)?;
        }
    }

    /// The text of a scalar, or `None` for null.
    pub(super) fn scalar(&mut self) -> Result<Option<Cow<'a, str>>, Refusal> {
        match self.node()? {
            node if is_null(&node) => Ok(None),
            Event::Scalar(value, _, _, None) => Ok(Some(value)),
            _ => Err(self.invalid("a single value")),
        }
    }

    /// A scalar as `read` understands it; the default for null.
    fn value<T: Default>(&mut self, expected: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Refusal> {
        match self.scalar()? {
            Some(text) => read(&text).ok_or_else(|| self.invalid(expected)),
            None => Ok(T::default()),
        }
    }

    pub(super) fn text(&mut self) -> Result<String, Refusal> {
        self.value("text", |text| Some(text.to_owned()))
    }

    pub(super) fn int(&mut self) -> Result<i32, Refusal> {
        self.value("an integer", integer)
    }

    pub(super) fn float(&mut self) -> Result<f32, Refusal> {
        self.value("a number", |text| dotnet::single(text.as_bytes(), &FORMAT))
    }

    pub(super) fn boolean(&mut self) -> Result<bool, Refusal> {
        self.value("true or false", |text| match text.to_ascii_lowercase().as_str() {
            "true" | "y" | "yes" | "on" => Some(true),
            "false" | "n" | "no" | "off" => Some(false),
            _ => None,
        })
    }

    /// A value of an enumeration, by name or number.
    pub(super) fn enumeration(&mut self, names: &[(&str, i32)]) -> Result<i32, Refusal> {
        self.value("a known name", |text| dotnet::enumeration(text.as_bytes(), names, true))
    }

    fn invalid(&self, expected: &str) -> Refusal {
        Refusal::undecodable(&format!("{}: {expected} was expected", self.field))
    }
}

/// How many levels an event opens.
fn nesting(event: &Event<'_>) -> i32 {
    match event {
        Event::SequenceStart(..) | Event::MappingStart(..) => 1,
        Event::SequenceEnd | Event::MappingEnd => -1,
        _ => 0,
    }
}

fn without_anchor(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Scalar(value, style, _, tag) => Event::Scalar(value, style, 0, tag),
        Event::SequenceStart(style, _, tag) => Event::SequenceStart(style, 0, tag),
        Event::MappingStart(style, _, tag) => Event::MappingStart(style, 0, tag),
        other => other,
    }
}

fn is_null(node: &Event<'_>) -> bool {
    let Event::Scalar(value, ScalarStyle::Plain, _, None) = node else { return false };
    matches!(&**value, "" | "~" | "null" | "Null" | "NULL")
}

/// `ScalarNodeDeserializer.DeserializeIntegerHelper`: a decimal number or one of base 60, such as `1:30`; after
/// a zero an octal one, after `0x` and `0b` a hexadecimal and a binary one. Underscores do not count.
fn integer(text: &str) -> Option<i32> {
    if let ([b'1'..=b'9', ..], value @ Some(_)) = (text.as_bytes(), dotnet::int(text.as_bytes())) {
        return value;
    }
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = unsigned.replace('_', "");
    let in_radix = |digits: &str, radix| {
        Some(digits)
            .filter(|digits| !digits.starts_with('+'))
            .and_then(|digits| u64::from_str_radix(digits, radix).ok())
    };
    let magnitude = match unsigned.as_bytes() {
        [b'0'] => 0,
        [b'0', b'b', ..] => in_radix(&digits[2..], 2)?,
        [b'0', b'x', ..] => in_radix(&digits[2..], 16)?,
        [b'0', ..] => in_radix(&digits[1..], 8)?,
        _ => digits.split(':').try_fold(0_u64, |sum, part| {
            Some(sum.wrapping_mul(60).wrapping_add(dotnet::unsigned(part.as_bytes())?))
        })?,
    };
    let value = i64::try_from(magnitude).ok()?;
    i32::try_from(if is_negative { -value } else { value }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that `YamlDotNet` 5.1.0 gives for these texts.
    #[test]
    fn integers_are_those_of_yaml_dot_net() {
        for (text, expected) in [
            ("1000", Some(1000)),
            ("+5", Some(5)),
            ("-5", Some(-5)),
            ("0", Some(0)),
            ("0100", Some(64)),
            ("0x10", Some(16)),
            ("-0x10", Some(-16)),
            ("0b101", Some(5)),
            ("1_000", Some(1000)),
            ("1:30", Some(90)),
            (" 12 ", Some(12)),
            ("-2147483648", Some(i32::MIN)),
            ("2147483648", None),
            ("99999999999999999999", None),
            ("1000.5", None),
            ("1e3", None),
            (".inf", None),
            ("1,000", None),
            ("0o17", None),
            ("08", None),
            ("0x", None),
            ("0x+1", None),
            ("0_", None),
            ("--1", None),
            ("", None),
        ] {
            assert_eq!(integer(text), expected, "{text:?}");
        }
    }

    #[derive(Debug, Default, PartialEq)]
    struct Node {
        number: i32,
        single: f32,
        is_set: bool,
        text: String,
        list: Vec<Node>,
    }

    impl Object for Node {
        fn read_field(&mut self, name: &str, reader: &mut Reader<'_>) -> Result<(), Refusal> {
            match name {
                "Number" => self.number = reader.int()?,
                "Single" => self.single = reader.float()?,
                "IsSet" => self.is_set = reader.boolean()?,
                "Text" => self.text = reader.text()?,
                "List" => self.list = reader.list()?,
                _ => reader.skip()?,
            }
            Ok(())
        }
    }

    fn node(number: i32) -> Node {
        Node { number, ..Node::default() }
    }

    #[test]
    fn values_are_read_for_the_type_of_their_field() {
        for (yaml, expected) in [
            ("Number: '7'", node(7)),
            ("\"Number\": \"0x7\"\nUnknown: [a, {b: !c d}]", node(7)),
            ("Number: 1\nNumber: 7", node(7)),
            ("{Number: 7}", node(7)),
            ("Number:\t7 # comment", node(7)),
            ("---\nNumber: 7\n...", node(7)),
            ("Number: ~", node(0)),
            ("Number:", node(0)),
            ("Single: 1_000.5", Node { single: 1000.5, ..Node::default() }),
            ("Single: -.INF", Node { single: f32::NEG_INFINITY, ..Node::default() }),
            ("IsSet: Yes", Node { is_set: true, ..Node::default() }),
            ("IsSet: Off", Node::default()),
            ("Text: 0x10", Node { text: "0x10".into(), ..Node::default() }),
            ("Text: 'null'", Node { text: "null".into(), ..Node::default() }),
            ("Text: a\n  b", Node { text: "a b".into(), ..Node::default() }),
            ("List: [{Number: 1}, {}]", Node { list: vec![node(1), node(0)], ..Node::default() }),
            ("List:\n- &a\n  Number: 1\n- *a", Node { list: vec![node(1), node(1)], ..Node::default() }),
            ("Number: &a 1\nText: *a", Node { number: 1, text: "1".into(), ..Node::default() }),
        ] {
            assert_eq!(read_document(yaml), Ok(expected), "{yaml}");
        }
    }

    #[test]
    fn what_the_game_cannot_read_is_refused() {
        for (yaml, expected) in [
            ("Number: 1.5", "Number: an integer was expected"),
            ("Number: ''", "Number: an integer was expected"),
            ("Number: [1]", "Number: a single value was expected"),
            ("Number: !a 1", "Number: a single value was expected"),
            ("Single: inf", "Single: a number was expected"),
            ("IsSet: 1", "IsSet: true or false was expected"),
            ("List: 1", "List: a list was expected"),
            ("List:", "List: a list was expected"),
            ("List: [~]", "List: an object was expected"),
            ("List: {}", "List: a list was expected"),
            ("Unknown: &a 1\nNumber: *a", "Number: an alias of a node that was read was expected"),
            ("? [a]\n: 1", "document: the name of a field was expected"),
            ("- Number: 1", "document: an object was expected"),
            ("text", "document: an object was expected"),
            ("!a\nNumber: 1", "document: an object was expected"),
            ("", "the file is empty"),
            ("# only a comment", "the file is empty"),
            ("---\nNumber: 1\n---\nNumber: 2", "the file has several documents"),
            ("Number: 1: 2", "mapping values are not allowed in this context"),
        ] {
            let refusal = read_document::<Node>(yaml).expect_err(yaml).to_string();
            assert!(refusal.starts_with(&format!("cannot be decoded: {expected}")), "{yaml}: {refusal}");
        }
    }

    #[test]
    fn aliases_are_limited() {
        let level = |level| format!("&{level} {{List: [{}]}},", format!("*{},", level - 1).repeat(9));
        let levels: String = (1..10).map(level).collect();
        let repeated = format!("List: &a [{}]\nList: *a", "{},".repeat(MAX_REPEATED_EVENTS / 4));
        for yaml in [format!("List: [&0 {{}},{levels}]"), repeated] {
            let refusal = read_document::<Node>(&yaml).expect_err("too many events");
            assert_eq!(refusal, Refusal::LimitExceeded { what: "YAML aliases" });
        }
    }
}
