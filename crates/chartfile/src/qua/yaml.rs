//! Reads YAML as Quaver does, with `YamlDotNet` 5.1.0: a value is read for the type of its field, whether it is
//! quoted or not, the last of several equal fields counts, and unknown fields do not matter.
//!
//! Quaver.API e73fb5db, `Qua.Deserializer`; aaubry/YamlDotNet v5.1.0, `ScalarNodeDeserializer`,
//! `NullNodeDeserializer`, `ObjectNodeDeserializer`, `CollectionNodeDeserializer`, `AliasValueDeserializer`.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, StrInput};

use crate::Refusal;
use crate::dotnet::{self, NumberFormat};
use crate::rox_file::MAX_NOTES;

/// The maximum number of nodes, copies for anchors and aliases included. A chart of 100,000 notes has a
/// million.
pub(super) const MAX_NODES: usize = 3_000_000;

/// The maximum nesting depth. Charts have five levels.
const MAX_DEPTH: usize = 100;

/// `YamlFormatter.NumberFormat`.
const FORMAT: NumberFormat = NumberFormat { group_separator: b'_', infinity: ".inf", not_a_number: ".nan" };

/// A value. Those with a tag are not read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node<'a> {
    Null,
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Map(Vec<(&'a str, Node<'a>)>),
    Tagged,
}

/// The root of the only document of a text.
pub(super) fn read_document(text: &str) -> Result<Node<'_>, Refusal> {
    let mut options = Options::default();
    (options.flow_nesting_limit, options.block_nesting_limit) = (MAX_DEPTH, MAX_DEPTH);
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { parser, anchors: HashMap::new(), count: 0 };
    let (Event::StreamStart, Event::DocumentStart(..)) = (reader.next()?, reader.next()?) else {
        return Err(Refusal::undecodable("the file is empty"));
    };
    let root = reader.node()?;
    let (Event::DocumentEnd, Event::StreamEnd) = (reader.next()?, reader.next()?) else {
        return Err(Refusal::undecodable("the file has several documents"));
    };
    Ok(root)
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node<'a>>,
    count: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, Refusal> {
        match self.parser.next_event() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(Refusal::undecodable(&error.to_string())),
            None => Err(Refusal::undecodable("the document ends early")),
        }
    }

    fn node(&mut self) -> Result<Node<'a>, Refusal> {
        let event = self.next()?;
        self.node_of(event)
    }

    fn node_of(&mut self, event: Event<'a>) -> Result<Node<'a>, Refusal> {
        self.count(1)?;
        let (anchor, has_tag) = (event.anchor_id(), event.tag().is_some());
        let node = match event {
            Event::Scalar(value, ScalarStyle::Plain, ..) if is_null(&value) => Node::Null,
            Event::Scalar(value, ..) => Node::Text(value),
            Event::SequenceStart(..) => self.list()?,
            Event::MappingStart(..) => self.map()?,
            Event::Alias(id) => {
                // Nodes within themselves are not there yet.
                let node = self.anchors.get(&id).cloned();
                let node = node.ok_or_else(|| Refusal::undecodable("an alias of a node around it"))?;
                self.count(node.count())?;
                node
            }
            _ => return Err(Refusal::undecodable("a value was expected")),
        };
        let node = if has_tag { Node::Tagged } else { node };
        if let Some(id) = anchor {
            self.count(node.count())?;
            self.anchors.insert(id, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self) -> Result<Node<'a>, Refusal> {
        let mut list = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Node::List(list)),
                _ if list.len() >= MAX_NOTES => {
                    return Err(Refusal::DecodingLimit { what: "YAML list entries" });
                }
                event => list.push(self.node_of(event)?),
            }
        }
    }

    fn map(&mut self) -> Result<Node<'a>, Refusal> {
        let mut fields = Vec::new();
        loop {
            match self.next()? {
                Event::MappingEnd => return Ok(Node::Map(fields)),
                // A name with escapes is none that the game knows.
                Event::Scalar(Cow::Owned(_), ..) => drop(self.node()?),
                Event::Scalar(Cow::Borrowed(name), ..) => fields.push((name, self.node()?)),
                _ => return Err(Refusal::undecodable("the name of a field was expected")),
            }
        }
    }

    fn count(&mut self, count: usize) -> Result<(), Refusal> {
        self.count += count;
        if self.count > MAX_NODES { Err(Refusal::DecodingLimit { what: "YAML nodes" }) } else { Ok(()) }
    }
}

/// Whether a plain scalar is null. The library has `~` for no text.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

impl<'a> Node<'a> {
    fn count(&self) -> usize {
        match self {
            Self::List(list) => 1 + list.iter().map(Self::count).sum::<usize>(),
            Self::Map(fields) => 1 + fields.iter().map(|(_, node)| node.count()).sum::<usize>(),
            _ => 1,
        }
    }

    /// A field of an object; `None` if there is none with this name.
    fn field(&self, name: &str) -> Result<Option<&Self>, Refusal> {
        match self {
            Self::Map(fields) => {
                Ok(fields.iter().rev().find(|(known, _)| *known == name).map(|(_, node)| node))
            }
            _ => Err(Refusal::undecodable("an object was expected")),
        }
    }

    /// A list, which may be missing. The game does not play a file with null in its place.
    pub(super) fn list(&self, name: &str) -> Result<&[Self], Refusal> {
        match self.field(name)? {
            None => Ok(&[]),
            Some(Self::List(list)) => Ok(list),
            Some(_) => Err(unexpected(name, "a list")),
        }
    }

    /// A list, which may also be null.
    pub(super) fn optional_list(&self, name: &str) -> Result<&[Self], Refusal> {
        match self.field(name)? {
            Some(Self::Null) => Ok(&[]),
            _ => self.list(name),
        }
    }

    /// A value as `read` understands it; the default for null, or if it is missing.
    fn value<T: Default>(
        &'a self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a str) -> Option<T>,
    ) -> Result<T, Refusal> {
        match self.field(name)? {
            None | Some(Self::Null) => Ok(T::default()),
            Some(Self::Text(text)) => read(text).ok_or_else(|| unexpected(name, expected)),
            Some(_) => Err(unexpected(name, expected)),
        }
    }

    pub(super) fn text(&'a self, name: &str) -> Result<&'a str, Refusal> {
        self.value(name, "text", Some)
    }

    pub(super) fn int(&self, name: &str) -> Result<i32, Refusal> {
        self.value(name, "an integer", integer)
    }

    pub(super) fn float(&self, name: &str) -> Result<f32, Refusal> {
        self.value(name, "a number", |text| dotnet::single(text.as_bytes(), &FORMAT))
    }

    pub(super) fn boolean(&self, name: &str) -> Result<bool, Refusal> {
        self.value(name, "true or false", |text| match text.to_ascii_lowercase().as_str() {
            "true" | "y" | "yes" | "on" => Some(true),
            "false" | "n" | "no" | "off" => Some(false),
            _ => None,
        })
    }

    /// A value of an enumeration, by name or number.
    pub(super) fn enumeration(&self, name: &str, names: &[(&str, i32)]) -> Result<i32, Refusal> {
        self.value(name, "a known name", |text| dotnet::enumeration(text.as_bytes(), names, true))
    }
}

fn unexpected(name: &str, expected: &str) -> Refusal {
    Refusal::undecodable(&format!("{name}: {expected} was expected"))
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
            ("-0100", Some(-64)),
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

    /// The fields of a document, as text: number, single, flag, text and the length of the list.
    fn fields(yaml: &str) -> Result<String, Refusal> {
        let root = read_document(yaml)?;
        let numbers: Vec<i32> = root.list("L")?.iter().map(|node| node.int("N")).collect::<Result<_, _>>()?;
        let (number, single, flag, text) =
            (root.int("N")?, root.float("F")?, root.boolean("B")?, root.text("T")?);
        Ok(format!("{number} {single} {flag} {text:?} {numbers:?}"))
    }

    #[test]
    fn values_are_read_for_the_type_of_their_field() {
        for (yaml, expected) in [
            ("N: '7'", "7 0 false \"\" []"),
            ("\"N\": \"0x7\"\nUnknown: [a, {b: !c d}]", "7 0 false \"\" []"),
            ("N: 1\nN: 7", "7 0 false \"\" []"),
            ("{N: 7}", "7 0 false \"\" []"),
            ("N:\t7 # comment", "7 0 false \"\" []"),
            ("---\nN: 7\n...", "7 0 false \"\" []"),
            ("N: ~\nF: null\nB:\nT: NULL", "0 0 false \"\" []"),
            ("F: 1_000.5", "0 1000.5 false \"\" []"),
            ("F: -.INF", "0 -inf false \"\" []"),
            ("B: Yes", "0 0 true \"\" []"),
            ("B: Off", "0 0 false \"\" []"),
            ("T: 0x10", "0 0 false \"0x10\" []"),
            ("T: 'null'", "0 0 false \"null\" []"),
            ("T: a\n  b", "0 0 false \"a b\" []"),
            ("L: [{N: 1}, {}]", "0 0 false \"\" [1, 0]"),
            ("L:\n- &a\n  N: 1\n- *a", "0 0 false \"\" [1, 1]"),
            ("N: &a 1\nT: *a", "1 0 false \"1\" []"),
        ] {
            assert_eq!(fields(yaml).as_deref(), Ok(expected), "{yaml}");
        }
    }

    #[test]
    fn what_the_game_cannot_read_is_refused() {
        for (yaml, expected) in [
            ("N: 1.5", "N: an integer was expected"),
            ("N: ''", "N: an integer was expected"),
            ("N: [1]", "N: an integer was expected"),
            ("N: !a 1", "N: an integer was expected"),
            ("F: inf", "F: a number was expected"),
            ("B: 1", "B: true or false was expected"),
            ("L: 1", "L: a list was expected"),
            ("L:", "L: a list was expected"),
            ("L: {}", "L: a list was expected"),
            ("L: [~]", "an object was expected"),
            ("- N: 1", "an object was expected"),
            ("!a\nN: 1", "an object was expected"),
            ("text", "an object was expected"),
            ("---", "an object was expected"),
            ("? [a]\n: 1", "the name of a field was expected"),
            ("L: &a [*a]", "an alias of a node around it"),
            ("", "the file is empty"),
            ("# only a comment", "the file is empty"),
            ("---\nN: 1\n---\nN: 2", "the file has several documents"),
            ("N: 1: 2", "mapping values are not allowed in this context"),
        ] {
            let refusal = fields(yaml).expect_err(yaml).to_string();
            assert!(refusal.starts_with(&format!("cannot be decoded: {expected}")), "{yaml}: {refusal}");
        }
    }

    #[test]
    fn nodes_and_their_copies_are_limited() {
        let level = |level| format!("&{level} [{}],", format!("*{},", level - 1).repeat(9));
        let levels: Vec<String> = (1..10).map(level).collect();
        let levels = levels.concat();
        let anchors = "&a [".repeat(90) + &"a,".repeat(MAX_NODES / 90);
        for yaml in [format!("L: [&0 [],{levels}]"), anchors + &"]".repeat(90)] {
            assert_eq!(fields(&yaml), Err(Refusal::DecodingLimit { what: "YAML nodes" }));
        }
    }
}
