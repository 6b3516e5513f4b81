//! Parses the query string of the chartset list (docs/api.md, "Chartset list").

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use super::{
    After, Bounds, ChartFilter, Direction, KeySet, PageRequest, SearchQuery, Sort, TypedQuery, cursor,
};
use crate::{KeyCount, Pattern, PublicSource, SourceKind, SourceRef};

/// The maximum length of `q`, `query` and `creator`, in characters.
pub const MAX_TEXT_CHARACTERS: usize = 200;

/// A query parameter has an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}: {reason}")]
pub struct ParameterError {
    /// The name as the query string spells it.
    pub parameter: &'static str,
    /// What is wrong, and what the parameter accepts.
    pub reason: Cow<'static, str>,
}

/// The parameters of the chartset list.
const NAMES: &[&str] = &[
    "q",
    "query",
    "keys",
    "source",
    "set",
    "pack",
    "creator",
    "bpmMin",
    "bpmMax",
    "mainBpmMin",
    "mainBpmMax",
    "lengthMin",
    "lengthMax",
    "densityMin",
    "densityMax",
    "ratingMin",
    "ratingMax",
    "lnMin",
    "lnMax",
    "notesMin",
    "notesMax",
    "pattern",
    "match",
    "include",
    "sort",
    "order",
    "page",
    "perPage",
    "after",
];

/// The parameters whose values are separated by commas. Several of one name are one list: many clients
/// ignore `explode: false` of OpenAPI.
const LISTS: [&str; 2] = ["keys", "include"];

/// Parses the query string of `GET /api/chartsets`, without its `?`.
///
/// Unknown parameters are ignored, empty values are treated as absent, and numbers out of range are clamped.
///
/// # Errors
/// The first parameter that occurs twice and is no list, is not UTF-8, is malformed, or contradicts another
/// one.
pub fn parse_query_string(query_string: &str) -> Result<SearchQuery, ParameterError> {
    let parameters = Parameters::parse(query_string, NAMES)?;
    let (text, typed) = words_and_filters(parameters.get("q"), parameters.get("query"))?;
    let sort = match parameters.parsed("sort", sort)?.unwrap_or_default() {
        Sort::Relevance if text.is_none() => Sort::Updated,
        sort => sort,
    };
    let direction = parameters.parsed("order", order)?.unwrap_or(sort.default_direction());
    let (after, page_number) = match parameters.get("after") {
        Some(_) if parameters.get("page").is_some() => {
            return Err(error("after", "must not be given with page"));
        }
        Some(value) => after(value, sort, direction)?,
        None => (None, parameters.integer("page")?.unwrap_or(1)),
    };
    let size = parameters.integer("perPage")?.unwrap_or(PageRequest::DEFAULT_SIZE.into());
    let density_min = parameters.parsed("densityMin", |value| number("densityMin", value))?;
    let chart = ChartFilter {
        rating: whole(parameters.bounds(hundredths, "ratingMin", "ratingMax")?),
        bpm_main: parameters.bounds(number, "mainBpmMin", "mainBpmMax")?,
        density_max: parameters.parsed("densityMax", |value| number("densityMax", value))?,
        ln_share: whole(parameters.bounds(number, "lnMin", "lnMax")?),
        notes: whole(parameters.bounds(number, "notesMin", "notesMax")?),
        patterns: parameters.parsed("pattern", patterns)?.unwrap_or_default(),
    };
    in_order(("densityMin", density_min), ("densityMax", chart.density_max))?;
    let (includes_rating, includes_updated) = parameters.parsed("include", include)?.unwrap_or_default();
    let mut query = SearchQuery {
        text,
        keys: parameters.parsed("keys", keys)?.unwrap_or_default(),
        source: parameters.parsed("source", source)?,
        published_in: published_in(parameters.get("set"), parameters.get("pack"))?,
        creator: parameters.parsed("creator", |value| self::text("creator", value))?,
        bpm: parameters.bounds(number, "bpmMin", "bpmMax")?,
        length_ms: parameters.bounds(milliseconds, "lengthMin", "lengthMax")?,
        density_min,
        chart,
        matches_one_chart: parameters.parsed("match", matches_one_chart)?.unwrap_or_default(),
        sort,
        direction,
        includes_rating,
        includes_updated,
        page: PageRequest::clamped(page_number, size),
        after,
        ..SearchQuery::default()
    };
    typed.add_to(&mut query)?;
    Ok(query)
}

/// The text of a search, and the filters that were typed with it.
fn words_and_filters(
    q: Option<&str>,
    query: Option<&str>,
) -> Result<(Option<String>, TypedQuery), ParameterError> {
    match (q, query) {
        (Some(_), Some(_)) => Err(error("q", "must not be given with query")),
        (Some(q), None) => Ok((Some(text("q", q)?), TypedQuery::default())),
        (None, query) => {
            let query = query.map(|query| text("query", query)).transpose()?.unwrap_or_default();
            let mut typed = TypedQuery::parse(&query);
            Ok((typed.text.take(), typed))
        }
    }
}

/// Parameters of a query string, by the rules of lists: decoded and trimmed.
#[derive(Debug)]
pub struct Parameters<'a> {
    /// Those that are neither absent nor empty.
    values: Vec<(&'static str, Cow<'a, str>)>,
}

impl<'a> Parameters<'a> {
    /// Reads the parameters with these names. Those of a list are joined by commas.
    ///
    /// # Errors
    /// A parameter occurs twice and is no list, or is not UTF-8.
    pub fn parse(query_string: &'a str, names: &'static [&'static str]) -> Result<Self, ParameterError> {
        let mut values: Vec<(&'static str, Cow<'a, str>)> = Vec::new();
        for pair in query_string.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // No known parameter has a name that is not UTF-8.
            let Ok(name) = percent_decode_str(name).decode_utf8() else { continue };
            let Some(name) = names.iter().copied().find(|known| *known == name) else { continue };
            let value = decode(name, value)?;
            if value.is_empty() {
                continue;
            }
            match values.iter_mut().find(|(known, _)| *known == name) {
                None => values.push((name, value)),
                Some((_, before)) if LISTS.contains(&name) => *before = format!("{before},{value}").into(),
                Some(_) => return Err(error(name, "occurs more than once")),
            }
        }
        Ok(Self { values })
    }

    fn get(&self, name: &'static str) -> Option<&str> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value)
    }

    /// The parsed value of a parameter.
    ///
    /// # Errors
    /// Those of `parse`, the argument.
    pub fn parsed<T>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, ParameterError>,
    ) -> Result<Option<T>, ParameterError> {
        self.get(name).map(parse).transpose()
    }

    /// A whole number. One that does not fit into `i64` saturates.
    ///
    /// # Errors
    /// The value is no whole number.
    pub fn integer(&self, name: &'static str) -> Result<Option<i64>, ParameterError> {
        self.parsed(name, |value| integer(name, value))
    }

    fn bounds(
        &self,
        parse: fn(&'static str, &str) -> Result<f64, ParameterError>,
        min_name: &'static str,
        max_name: &'static str,
    ) -> Result<Bounds, ParameterError> {
        let min = self.parsed(min_name, |value| parse(min_name, value))?;
        let max = self.parsed(max_name, |value| parse(max_name, value))?;
        in_order((min_name, min), (max_name, max))?;
        Ok(Bounds { min, max })
    }
}

/// Decodes a form-encoded value (`+` is a space) and trims it.
fn decode<'a>(parameter: &'static str, value: &'a str) -> Result<Cow<'a, str>, ParameterError> {
    let spaced = if value.contains('+') { Cow::Owned(value.replace('+', " ")) } else { Cow::Borrowed(value) };
    let decoded = percent_decode_str(&spaced)
        .decode_utf8()
        .map_err(|_| error(parameter, "is not UTF-8 after percent-decoding"))?;
    if decoded.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        return Err(error(parameter, "contains a control character"));
    }
    let trimmed = decoded.trim();
    Ok(if trimmed == value { Cow::Borrowed(value) } else { Cow::Owned(trimmed.to_owned()) })
}

fn error(parameter: &'static str, reason: impl Into<Cow<'static, str>>) -> ParameterError {
    ParameterError { parameter, reason: reason.into() }
}

fn text(parameter: &'static str, value: &str) -> Result<String, ParameterError> {
    if value.chars().count() > MAX_TEXT_CHARACTERS {
        return Err(error(parameter, format!("accepts at most {MAX_TEXT_CHARACTERS} characters")));
    }
    Ok(value.to_owned())
}

fn keys(value: &str) -> Result<KeySet, ParameterError> {
    let key_count = |part: &str| part.trim().parse().ok().and_then(|keys: u8| KeyCount::try_from(keys).ok());
    value
        .split(',')
        .map(|part| {
            key_count(part)
                .ok_or_else(|| error("keys", "accepts key counts from 4 to 7, separated by commas"))
        })
        .collect()
}

fn source(value: &str) -> Result<SourceKind, ParameterError> {
    value.parse().map_err(|_| error("source", "accepts alphaSet or betaPack"))
}

fn published_in(set: Option<&str>, pack: Option<&str>) -> Result<Option<PublicSource>, ParameterError> {
    let (parameter, kind, value) = match (set, pack) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(error("set", "must not be given with pack")),
        (Some(set), None) => ("set", SourceKind::AlphaSet, set),
        (None, Some(pack)) => ("pack", SourceKind::BetaPack, pack),
    };
    let number = value.parse().ok().filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()));
    let reference = number.and_then(SourceRef::from_number);
    let reference = reference.ok_or_else(|| error(parameter, "accepts an id, as in ref of a source"))?;
    Ok(Some(PublicSource { kind, reference }))
}

fn sort(value: &str) -> Result<Sort, ParameterError> {
    Sort::ALL.iter().copied().find(|sort| sort.as_str() == value).ok_or_else(|| {
        let names: Vec<_> = Sort::ALL.iter().map(|sort| sort.as_str()).collect();
        error("sort", format!("accepts {}", names.join(", ")))
    })
}

fn order(value: &str) -> Result<Direction, ParameterError> {
    [Direction::Ascending, Direction::Descending]
        .into_iter()
        .find(|direction| direction.as_str() == value)
        .ok_or_else(|| error("order", "accepts asc or desc"))
}

/// Parses the start of a list or a cursor, and returns it with the number of its page.
fn after(value: &str, sort: Sort, direction: Direction) -> Result<(Option<After>, i64), ParameterError> {
    let parsed = cursor::parse(value, sort, direction);
    let (after, number) = parsed.ok_or_else(|| {
        error("after", "accepts start, or nextAfter of a response with the same sort and order")
    })?;
    Ok((Some(after), number.into()))
}

/// Parses a decimal number. Negative numbers are clamped to 0.
fn number(parameter: &'static str, value: &str) -> Result<f64, ParameterError> {
    decimal(parameter, value, 0)
}

/// Parses a decimal number of seconds and rounds it to whole milliseconds.
fn milliseconds(parameter: &'static str, value: &str) -> Result<f64, ParameterError> {
    // Adding to the exponent of the text is exact. Multiplying the parsed number is not: 64.1 s would become
    // less than 64,100 ms.
    decimal(parameter, value, 3).map(f64::round)
}

/// Parses a rating, in hundredths.
fn hundredths(parameter: &'static str, value: &str) -> Result<f64, ParameterError> {
    decimal(parameter, value, 2)
}

/// Parses a decimal number, times a power of ten. An exponent is accepted, as in the numbers of JSON: clients
/// write `1e-7` by default for a parameter whose type is a number.
pub(super) fn decimal(parameter: &'static str, value: &str, power: i32) -> Result<f64, ParameterError> {
    let (mantissa, exponent) = value.split_once(['e', 'E']).unwrap_or((value, "0"));
    let plain = mantissa.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    let exponent = exponent.parse::<i32>().ok().filter(|_| plain);
    let parsed = exponent
        .and_then(|exponent| format!("{mantissa}e{}", exponent.saturating_add(power)).parse::<f64>().ok());
    let number = parsed.ok_or_else(|| error(parameter, "accepts a decimal number such as 174 or 174.5"))?;
    // Adding 0 turns -0 into 0.
    Ok(number.clamp(0.0, MAX_NUMBER) + 0.0)
}

/// The maximum of BPM, seconds and density; larger ones are clamped. Larger than any number of a chart, and
/// exact as an integer.
pub const MAX_NUMBER: f64 = 1e12;

fn in_order(
    (min_name, min): (&'static str, Option<f64>),
    (max_name, max): (&'static str, Option<f64>),
) -> Result<(), ParameterError> {
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        return Err(error(min_name, format!("must not be above {max_name}")));
    }
    Ok(())
}

/// The bounds of whole numbers that are within these bounds.
fn whole(bounds: Bounds) -> Bounds {
    Bounds { min: bounds.min.map(f64::ceil), max: bounds.max.map(f64::floor) }
}

/// Parses the least shares of rows of some classes, such as `stream:50,jack:10`.
fn patterns(value: &str) -> Result<Vec<(Pattern, u8)>, ParameterError> {
    let mut shares = BTreeMap::new();
    for part in value.split(',') {
        let share = part.trim().split_once(':').and_then(|(pattern, percent)| {
            let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent))?;
            Some((pattern.parse::<Pattern>().ok()?, percent))
        });
        let Some((pattern, percent)) = share else {
            let names: Vec<_> = Pattern::ALL.iter().map(|pattern| pattern.as_str()).collect();
            let reason = format!(
                "accepts patterns with their least percentage, such as stream:50, separated by commas; the patterns are {}",
                names.join(", ")
            );
            return Err(error("pattern", reason));
        };
        if shares.insert(pattern, percent).is_some() {
            return Err(error("pattern", "names a pattern more than once"));
        }
    }
    Ok(shares.into_iter().collect())
}

/// Whether the items have their ratings, and the times of their last changes.
fn include(value: &str) -> Result<(bool, bool), ParameterError> {
    let (mut rating, mut updated) = (false, false);
    for name in value.split(',').map(str::trim) {
        match name {
            "rating" => rating = true,
            "updated" => updated = true,
            _ => return Err(error("include", "accepts rating, updated, separated by commas")),
        }
    }
    Ok((rating, updated))
}

fn matches_one_chart(value: &str) -> Result<bool, ParameterError> {
    if value == "chart" { Ok(true) } else { Err(error("match", "accepts chart")) }
}

/// Parses an integer of any size; one that does not fit into `i64` saturates.
fn integer(parameter: &'static str, value: &str) -> Result<i64, ParameterError> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(error(parameter, "accepts a whole number"));
    }
    let saturated = if value.starts_with('-') { i64::MIN } else { i64::MAX };
    Ok(value.parse().unwrap_or(saturated))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(query_string: &str) -> SearchQuery {
        parse_query_string(query_string).unwrap_or_else(|error| panic!("{query_string}: {error}"))
    }

    #[test]
    fn empty_query_lists_everything_newest_first() {
        let query = parsed("");
        assert_eq!(query, SearchQuery::default());
        assert_eq!((query.sort, query.direction), (Sort::Updated, Direction::Descending));
        assert_eq!((query.page.number(), query.page.size()), (1, 30));
    }

    #[test]
    fn every_parameter_is_parsed() {
        let query = parsed(
            "q=a+b%20%E6%97%8B&keys=7,4&source=betaPack&creator=%20Ann%20&bpmMin=100.5&bpmMax=200&lengthMin=60\
             &lengthMax=90.5&mainBpmMin=99.5&densityMin=3.25&densityMax=9&ratingMin=4.005&ratingMax=5&lnMax=19.5&notesMin=100\
             &pattern=stream:50,+jack:1&match=chart&include=updated,rating&sort=title&order=desc&page=3&perPage=10",
        );
        let expected = SearchQuery {
            text: Some("a b 旋".into()),
            keys: [4, 7].into_iter().map(|keys| KeyCount::try_from(keys).unwrap()).collect(),
            source: Some(SourceKind::BetaPack),
            published_in: None,
            creator: Some("Ann".into()),
            bpm: Bounds { min: Some(100.5), max: Some(200.0) },
            length_ms: Bounds { min: Some(60_000.0), max: Some(90_500.0) },
            density_min: Some(3.25),
            chart: ChartFilter {
                rating: Bounds { min: Some(401.0), max: Some(500.0) },
                bpm_main: Bounds { min: Some(99.5), max: None },
                density_max: Some(9.0),
                ln_share: Bounds { min: None, max: Some(19.0) },
                notes: Bounds { min: Some(100.0), max: None },
                patterns: vec![(Pattern::Jack, 1), (Pattern::Stream, 50)],
            },
            matches_one_chart: true,
            sort: Sort::Title,
            direction: Direction::Descending,
            includes_rating: true,
            includes_updated: true,
            page: PageRequest::clamped(3, 10),
            ..SearchQuery::default()
        };
        assert_eq!(query, expected);
        assert_eq!(query.page.offset(), 20);
    }

    #[test]
    fn empty_and_unknown_parameters_are_ignored() {
        let query = "q=&keys=&source=&creator=+&bpmMin=&lengthMax=&densityMin=&sort=&order=&page=&perPage=&x=1&%FF=2&&=";
        assert_eq!(parsed(query), SearchQuery::default());
    }

    #[test]
    fn numbers_may_have_an_exponent() {
        let query = parsed("bpmMin=1.745e2&bpmMax=1E%2B3&lengthMin=641e-1&densityMin=5e-324");
        assert_eq!(query.bpm, Bounds { min: Some(174.5), max: Some(1000.0) });
        assert_eq!(query.length_ms.min, Some(64_100.0));
        assert_eq!(query.density_min, Some(5e-324));
        assert_eq!(parsed("lengthMax=1e2147483647").length_ms.max, Some(MAX_NUMBER));
    }

    #[test]
    fn published_source_is_a_set_or_a_pack() {
        let published =
            |query| parsed(query).published_in.map(|source| (source.kind, source.reference.to_string()));
        assert_eq!(published("set=577617"), Some((SourceKind::AlphaSet, "577617".into())));
        assert_eq!(published("pack=12&set="), Some((SourceKind::BetaPack, "12".into())));
        for (query, parameter) in [
            ("set=0", "set"),
            ("set=-1", "set"),
            ("set=%2B1", "set"),
            ("set=99999999999", "set"),
            ("pack=x", "pack"),
            ("set=1&pack=1", "set"),
        ] {
            assert_eq!(parse_query_string(query).unwrap_err().parameter, parameter, "{query}");
        }
    }

    #[test]
    fn out_of_range_numbers_are_clamped() {
        for (query, number, size) in [
            ("page=0", 1, 30),
            ("page=-7", 1, 30),
            ("page=99999999999999999999999", PageRequest::MAX_NUMBER, 30),
            ("page=-99999999999999999999999", 1, 30),
            ("perPage=500", 1, 60),
            ("perPage=0", 1, 1),
        ] {
            let page = parsed(query).page;
            assert_eq!((page.number(), page.size()), (number, size), "{query}");
        }
        assert_eq!(parsed("bpmMin=-5").bpm.min, Some(0.0));
        assert_eq!(parsed(&format!("densityMin={}", "9".repeat(400))).density_min, Some(1e12));
    }

    #[test]
    fn lengths_are_rounded_to_milliseconds() {
        for (seconds, length_ms) in [
            ("64.1", 64_100.0),
            ("1.001", 1_001.0),
            ("4294967.295", 4_294_967_295.0),
            ("064.100", 64_100.0),
            (".5", 500.0),
            ("5.", 5_000.0),
            ("0.0004", 0.0),
            ("64.1004999", 64_100.0),
            ("64.1005", 64_101.0),
            ("1.0005", 1_001.0),
            ("-64.1", 0.0),
        ] {
            let query = parsed(&format!("lengthMin={seconds}&lengthMax={seconds}"));
            assert_eq!(query.length_ms, Bounds { min: Some(length_ms), max: Some(length_ms) }, "{seconds}");
        }
        for thousandths in (0..10_000_000).step_by(997) {
            let seconds = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
            let length_ms = parsed(&format!("lengthMax={seconds}")).length_ms.max;
            assert_eq!(length_ms, Some(f64::from(thousandths)), "{seconds}");
        }
        let nines = "9".repeat(400);
        assert_eq!(parsed(&format!("lengthMin={nines}")).length_ms.min, Some(1e12));
    }

    #[test]
    fn text_without_letters_or_digits_matches_nothing() {
        for (text, matches_nothing) in [
            ("%E2%99%A5", true),
            ("!!!", true),
            ("-+%22%22", true),
            ("%F0%9F%98%80", true),
            ("!a", false),
            ("7", false),
            ("%E6%97%8B", false),
            ("", false),
        ] {
            assert_eq!(parsed(&format!("q={text}")).matches_nothing(), matches_nothing, "{text}");
        }
        assert!(!parsed("creator=!!!").matches_nothing());
    }

    #[test]
    fn every_sort_has_a_default_direction() {
        for &sort in Sort::ALL {
            let query = parsed(&format!("q=x&sort={}", sort.as_str()));
            assert_eq!((query.sort, query.direction), (sort, sort.default_direction()));
            let ascending = matches!(sort, Sort::Title | Sort::Artist);
            assert_eq!(query.direction == Direction::Ascending, ascending, "{sort:?}");
            let query = parsed(&format!("q=x&order=asc&sort={}", sort.as_str()));
            assert_eq!(query.direction, Direction::Ascending, "{sort:?}");
        }
    }

    #[test]
    fn relevance_without_text_is_newest_first() {
        assert_eq!(parsed("sort=relevance").sort, Sort::Updated);
        assert_eq!(parsed("sort=relevance&q=x").sort, Sort::Relevance);
    }

    #[test]
    fn text_is_limited_to_200_characters() {
        let longest = "旋".repeat(200);
        assert_eq!(parsed(&format!("q=++{longest}++")).text, Some(longest.clone()));
        for parameter in ["q", "creator"] {
            let invalid = parse_query_string(&format!("{parameter}={longest}x")).unwrap_err();
            assert_eq!(
                (invalid.parameter, invalid.reason.as_ref()),
                (parameter, "accepts at most 200 characters")
            );
        }
    }

    #[test]
    fn errors_name_parameter_and_accepted_values() {
        for (query, parameter, reason) in [
            ("keys=3", "keys", "4 to 7"),
            ("keys=4,8", "keys", "4 to 7"),
            ("keys=4,,5", "keys", "4 to 7"),
            ("keys=four", "keys", "4 to 7"),
            ("source=AlphaSet", "source", "alphaSet or betaPack"),
            (
                "sort=newest",
                "sort",
                "updated, title, artist, bpm, mainBpm, length, density, rating, notes, relevance",
            ),
            ("order=up", "order", "asc or desc"),
            ("bpmMin=fast", "bpmMin", "decimal number"),
            ("bpmMax=NaN", "bpmMax", "decimal number"),
            ("bpmMax=inf", "bpmMax", "decimal number"),
            ("lengthMin=1e", "lengthMin", "decimal number"),
            ("lengthMin=e3", "lengthMin", "decimal number"),
            ("lengthMin=1e1.5", "lengthMin", "decimal number"),
            ("lengthMin=1e3e3", "lengthMin", "decimal number"),
            ("lengthMax=1.2.3", "lengthMax", "decimal number"),
            ("densityMin=-", "densityMin", "decimal number"),
            ("page=1.5", "page", "whole number"),
            ("page=-", "page", "whole number"),
            ("perPage=ten", "perPage", "whole number"),
            ("bpmMin=200&bpmMax=100", "bpmMin", "must not be above bpmMax"),
            ("mainBpmMin=200&mainBpmMax=100", "mainBpmMin", "must not be above mainBpmMax"),
            ("lengthMin=2&lengthMax=1", "lengthMin", "must not be above lengthMax"),
            ("densityMin=2&densityMax=1", "densityMin", "must not be above densityMax"),
            ("ratingMin=2.01&ratingMax=2", "ratingMin", "must not be above ratingMax"),
            ("pattern=stream", "pattern", "such as stream:50"),
            ("pattern=stream:0", "pattern", "such as stream:50"),
            ("pattern=stream:101", "pattern", "such as stream:50"),
            ("pattern=dump:5", "pattern", "the patterns are jack, chordjack"),
            ("pattern=stream:5,stream:6", "pattern", "more than once"),
            ("match=set", "match", "accepts chart"),
            ("include=rating,patterns", "include", "accepts rating, updated"),
            ("q=%FF", "q", "UTF-8"),
            ("creator=a%00b", "creator", "control character"),
            ("sort=bpm&sort=bpm", "sort", "more than once"),
            ("keys=4&keys=8", "keys", "4 to 7"),
        ] {
            let invalid = parse_query_string(query).expect_err(query);
            assert_eq!(invalid.parameter, parameter, "{query}");
            assert!(invalid.reason.contains(reason), "{query}: {}", invalid.reason);
        }
    }

    #[test]
    fn lists_may_be_several_parameters() {
        for (several, one) in [
            ("keys=4&keys=7", "keys=4,7"),
            ("keys=4,5&q=a&keys=&keys=7", "q=a&keys=4,5,7"),
            ("include=rating&include=updated", "include=rating,updated"),
        ] {
            assert_eq!(parse_query_string(several), parse_query_string(one), "{several}");
        }
    }

    #[test]
    fn only_equal_queries_serialise_equally() {
        let serialised = |query: &str| serde_json::to_string(&parse_query_string(query).unwrap()).unwrap();
        let different = [
            "",
            "q=a",
            "creator=a",
            "keys=4",
            "keys=5",
            "keys=4,5",
            "source=alphaSet",
            "source=betaPack",
            "bpmMin=0",
            "bpmMin=1",
            "bpmMax=1",
            "bpmMin=1&bpmMax=1",
            "mainBpmMin=1",
            "mainBpmMax=1",
            "lengthMin=1",
            "lengthMax=1",
            "densityMin=1",
            "densityMin=1.5",
            "densityMax=1",
            "ratingMin=1",
            "ratingMax=1",
            "lnMin=1",
            "lnMax=1",
            "notesMin=1",
            "notesMax=1",
            "pattern=stream:1",
            "pattern=jack:1",
            "match=chart",
            "include=rating",
            "include=updated",
            "include=rating,updated",
            "sort=title",
            "sort=artist",
            "sort=bpm",
            "sort=mainBpm",
            "sort=title&order=desc",
            "order=asc",
            "page=2",
            "perPage=2",
            "query=-tag:a",
            "query=-tag:b",
            "query=-creator:a",
            "query=-tag:a+-tag:b",
            "query=keys%3D9",
            "q=keys%3D9",
        ];
        let all: std::collections::BTreeSet<String> = different.into_iter().map(serialised).collect();
        assert_eq!(all.len(), different.len());
        for (one, other) in [
            ("", "sort=updated&order=desc&page=1&perPage=30"),
            ("keys=5,4", "keys=4,5,4"),
            ("bpmMin=-0", "bpmMin=0"),
            ("bpmMin=-5", "bpmMin=0.0"),
            ("q=+a+", "q=a"),
            ("query=a+keys%3D4", "q=a&keys=4"),
            ("query=-tag:b+-tag:A", "query=-tag:a+-tag:b"),
        ] {
            assert_eq!(serialised(one), serialised(other), "{one}");
        }
    }

    proptest::proptest! {
        #[test]
        fn parsed_queries_are_within_limits(text in "(([a-zA-Z]{1,10}|q|page|perPage|bpmMin|bpmMax|keys)=[^&]{0,12}&?){0,6}|.{0,80}") {
            if let Ok(query) = parse_query_string(&text) {
                let page = query.page;
                proptest::prop_assert!((1..=PageRequest::MAX_SIZE).contains(&page.size()) && page.number() >= 1);
                let ordered = |bounds: Bounds| bounds.min.zip(bounds.max).is_none_or(|(min, max)| min <= max);
                proptest::prop_assert!(ordered(query.bpm) && ordered(query.length_ms));
                proptest::prop_assert!(query.text.is_none_or(|text| !text.is_empty() && text.trim() == text));
            }
        }
    }
}
