//! Splits a typed query into words, quoted words and filters.

use crate::Pattern;

/// A part of a typed query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// As it was typed.
    pub(super) raw: &'a str,
    pub(super) content: Content<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// A word, or what is between quotes.
    Text(&'a str),
    /// A known name, an operator and any value.
    Filter(Filter<'a>),
    /// A word that looks like a filter: an unknown name, an operator and a value.
    UnknownFilter,
    /// A word that looks like an exclusion: `-` before it, and no name.
    ExcludedWord,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Filter<'a> {
    /// Whether there is a `-` before the name.
    pub(super) is_excluded: bool,
    pub(super) name: Name,
    pub(super) operator: Operator,
    /// Without its quotes; may be empty.
    pub(super) value: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Keys,
    Rating,
    LongNotes,
    Notes,
    Bpm,
    Length,
    Density,
    Title,
    Artist,
    Creator,
    Source,
    Tag,
    Pattern(Pattern),
}

/// The names of filters other than patterns, each with its aliases: what players of the games call it.
pub(super) const NAMES: [(Name, &str, &[&str]); 12] = [
    (Name::Keys, "keys", &["key", "k"]),
    (Name::Rating, "rating", &["stars", "star", "sr", "difficulty", "diff"]),
    (Name::LongNotes, "ln", &["lns", "ln%"]),
    (Name::Notes, "notes", &["note", "objects"]),
    (Name::Bpm, "bpm", &["tempo"]),
    (Name::Length, "length", &["duration", "time"]),
    (Name::Density, "density", &["nps"]),
    (Name::Title, "title", &["song"]),
    (Name::Artist, "artist", &[]),
    (Name::Creator, "creator", &["mapper", "charter", "author"]),
    (Name::Source, "source", &[]),
    (Name::Tag, "tag", &["tags"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `=` or `:`.
    Equal,
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Name {
    fn parse(name: &str) -> Option<Self> {
        let named = NAMES.into_iter().flat_map(|(value, known, aliases)| {
            [known].into_iter().chain(aliases.iter().copied()).map(move |known| (known, value))
        });
        let patterns = Pattern::ALL.iter().map(|pattern| (pattern.as_str(), Self::Pattern(*pattern)));
        let mut all = named.chain(patterns);
        all.find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value))
    }

    /// What the filter accepts, with an example.
    pub(super) const fn accepts(self) -> &'static str {
        match self {
            Self::Keys => "key counts from 4 to 7, as in keys=4,7 or keys>=6",
            Self::Rating => "ratings, as in rating>5 or rating=4-5.5",
            Self::LongNotes => "percentages, as in ln<20 or ln=40-60",
            Self::Notes => "numbers, as in notes>=500 or notes=500-900",
            Self::Bpm => "numbers, as in bpm>=170 or bpm=170-180",
            Self::Length => "seconds or minutes, as in length<100 or length=1:40-2:00",
            Self::Density => "numbers, as in density<12 or density=8-10.5",
            Self::Title => "words, as in title:harbour or title:\"two words\"",
            Self::Artist => "words, as in artist:camellia or artist:\"two words\"",
            Self::Creator => "part of a name, as in creator:ann or creator:\"two words\"",
            Self::Source => "alphaSet or betaPack, as in source:betaPack",
            Self::Tag => "a whole tag, as in tag:anime or tag:\"two words\"",
            Self::Pattern(_) => "percentages from 1 to 100 with > or >=, as in stream>=50",
        }
    }
}

/// The parts of a typed query, in their order.
pub(super) fn split(query: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = query;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                return None;
            }
            let token = next(rest);
            rest = &rest[token.raw.len()..];
            // Quotes around nothing are no word.
            if token.content != Content::Text("") {
                return Some(token);
            }
        }
    })
}

/// The first token of a text that begins with one.
fn next(text: &str) -> Token<'_> {
    if let Some(quoted) = quoted(text) {
        return Token { raw: &text[..quoted.len() + 2], content: Content::Text(quoted.trim()) };
    }
    let word = &text[..text.find(char::is_whitespace).unwrap_or(text.len())];
    filter(text, word).unwrap_or_else(|| Token { raw: word, content: word_content(word) })
}

/// A word that is no filter by its name.
fn word_content(word: &str) -> Content<'_> {
    if let Some(value) = key_count(word) {
        let (name, operator) = (Name::Keys, Operator::Equal);
        return Content::Filter(Filter { is_excluded: false, name, operator, value });
    }
    let (is_excluded, rest) = word.strip_prefix('-').map_or((false, word), |rest| (true, rest));
    let (name, value) = rest.find(OPERATORS).map_or((rest, ""), |at| rest.split_at(at));
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_name && !value.trim_start_matches(OPERATORS).is_empty() && !value.starts_with("://") {
        Content::UnknownFilter
    } else if is_excluded && rest.starts_with(char::is_alphanumeric) {
        Content::ExcludedWord
    } else {
        Content::Text(word)
    }
}

/// The number in a word such as `7k`.
fn key_count(word: &str) -> Option<&str> {
    let number = word.strip_suffix(['k', 'K'])?;
    (matches!(number.len(), 1 | 2) && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

const OPERATORS: [char; 4] = ['=', ':', '<', '>'];

/// What is between a quote at the beginning of the text and the next one, which ends a token.
fn quoted(text: &str) -> Option<&str> {
    let (quoted, rest) = text.strip_prefix('"')?.split_once('"')?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(quoted)
}

/// The filter that is the first word of the text. In quotes, its value may have white space.
fn filter<'a>(text: &'a str, word: &'a str) -> Option<Token<'a>> {
    let operator_at = word.find(OPERATORS)?;
    let (name, from_operator) = word.split_at(operator_at);
    let (is_excluded, name) = name.strip_prefix('-').map_or((false, name), |name| (true, name));
    let name = Name::parse(name)?;
    let (operator, length) = match from_operator.as_bytes() {
        [b'>', b'=', ..] => (Operator::AtLeast, 2),
        [b'<', b'=', ..] => (Operator::AtMost, 2),
        [b'>', ..] => (Operator::Above, 1),
        [b'<', ..] => (Operator::Below, 1),
        _ => (Operator::Equal, 1),
    };
    let value_at = operator_at + length;
    let (value, end) = match quoted(&text[value_at..]) {
        Some(value) => (value, value_at + value.len() + 2),
        None => (&word[value_at..], word.len()),
    };
    let filter = Filter { is_excluded, name, operator, value };
    Some(Token { raw: &text[..end], content: Content::Filter(filter) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_separated_by_white_space() {
        for (query, expected) in [
            ("", vec![]),
            (" \t ", vec![]),
            ("a  b\u{3000}c", vec!["a", "b", "c"]),
            ("\"a b\" c", vec!["\"a b\"", "c"]),
            ("\"a b\"c d\"", vec!["\"a", "b\"c", "d\""]),
            ("\"a b", vec!["\"a", "b"]),
            ("\"\" \" \" a", vec!["a"]),
            ("creator:\"a b\" c", vec!["creator:\"a b\"", "c"]),
            ("-tag:\"a b\"c", vec!["-tag:\"a", "b\"c"]),
            ("creator:\"a b", vec!["creator:\"a", "b"]),
            ("unknown:\"a b\"", vec!["unknown:\"a", "b\""]),
        ] {
            assert_eq!(split(query).map(|token| token.raw).collect::<Vec<_>>(), expected, "{query}");
        }
    }

    #[test]
    fn filters_have_a_known_name_and_an_operator() {
        let all = |query| split(query).map(|token| token.content).collect::<Vec<_>>();
        let expected = |is_excluded, name, operator, value| {
            vec![Content::Filter(Filter { is_excluded, name, operator, value })]
        };
        for (query, filter) in [
            ("keys=4", expected(false, Name::Keys, Operator::Equal, "4")),
            ("KEYS:4", expected(false, Name::Keys, Operator::Equal, "4")),
            ("ln<20", expected(false, Name::LongNotes, Operator::Below, "20")),
            ("notes<=9", expected(false, Name::Notes, Operator::AtMost, "9")),
            ("length:1:40", expected(false, Name::Length, Operator::Equal, "1:40")),
            ("rating>=", expected(false, Name::Rating, Operator::AtLeast, "")),
            ("-tag:a", expected(true, Name::Tag, Operator::Equal, "a")),
            ("stream>50", expected(false, Name::Pattern(Pattern::Stream), Operator::Above, "50")),
            ("creator=\"é x\"", expected(false, Name::Creator, Operator::Equal, "é x")),
            ("SR>=5", expected(false, Name::Rating, Operator::AtLeast, "5")),
            ("ln%<20", expected(false, Name::LongNotes, Operator::Below, "20")),
            ("-mapper:a", expected(true, Name::Creator, Operator::Equal, "a")),
            ("7K", expected(false, Name::Keys, Operator::Equal, "7")),
            ("10k", expected(false, Name::Keys, Operator::Equal, "10")),
        ] {
            assert_eq!(all(query), filter, "{query}");
        }
        for text in
            ["keys", ":4", "=", "-", "--tag:a", "旋:律", "a1:b", "D:", "x==", "<3", "k", "100k", "http://a"]
        {
            assert_eq!(all(text), [Content::Text(text)]);
        }
        for text in ["re:zero", "bpms>1", "-genre:a"] {
            assert_eq!(all(text), [Content::UnknownFilter]);
        }
        for text in ["-remix", "-旋律", "-7k", "-a1:b"] {
            assert_eq!(all(text), [Content::ExcludedWord]);
        }
        assert_eq!(all("\"keys=4 \""), [Content::Text("keys=4")]);
    }
}
