//! The form of the list: its fields, the presets below them, and the active filters.

use chart_index_domain::search::{Bounds, Hint, KeySet, ParameterError, SearchQuery, Sort};
use chart_index_domain::{Pattern, SourceKind};

use crate::format;
use crate::histogram::Histogram;
use crate::level::{self, WORDS};
use crate::list_query::{Filter, ListQuery, name_on_page, raw_parameters};

/// The form of the list, with the values of its fields.
#[derive(Debug, Default)]
pub(crate) struct FilterForm {
    /// The text, or what was typed with it and has no field.
    pub(crate) query: String,
    /// Parts of it that are no filters.
    pub(crate) hints: Vec<Hint>,
    pub(crate) keys: Vec<KeyButton>,
    pub(crate) sources: Vec<SourceOption>,
    pub(crate) creator: String,
    /// Of the field of the difficulty.
    pub(crate) histogram: Option<Histogram>,
    /// Difficulty, BPM and length.
    pub(crate) ranges: Vec<Range>,
    pub(crate) patterns: Vec<PatternBox>,
    pub(crate) long_notes: Vec<Preset>,
    pub(crate) density_min: String,
    /// Parameters that the form does not show and keeps.
    pub(crate) hidden: Vec<(&'static str, String)>,
    /// Whether fields are shown that a narrow window hides.
    pub(crate) is_open: bool,
    /// The number of active filters.
    pub(crate) active: usize,
    /// The list without all of them, or without those that are no key counts: people who play one key count
    /// keep it.
    pub(crate) clear: String,
    /// The number of filters that this removes.
    pub(crate) cleared: usize,
    /// The number of active filters whose field a narrow window hides.
    pub(crate) more_active: usize,
    /// What is wrong with a field, by its parameter.
    pub(crate) error: Option<FieldError>,
}

/// A check box for a key count.
#[derive(Debug)]
pub(crate) struct KeyButton {
    pub(crate) keys: u8,
    pub(crate) is_checked: bool,
}

#[derive(Debug)]
pub(crate) struct SourceOption {
    pub(crate) value: &'static str,
    pub(crate) label: &'static str,
    pub(crate) is_selected: bool,
}

/// Two fields for the least and the greatest value.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) name: &'static str,
    /// The parameters.
    pub(crate) bounds: [&'static str; 2],
    pub(crate) values: [String; 2],
    /// What the first field shows without a value.
    pub(crate) placeholder: &'static str,
    pub(crate) presets: Vec<Preset>,
}

/// A link that sets a range.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(crate) label: &'static str,
    /// The colour of the [`Level`](level::Level) that the range begins with, if it is one of difficulties.
    pub(crate) colour: Option<usize>,
    pub(crate) href: String,
    pub(crate) is_active: bool,
}

/// A check box for a pattern.
#[derive(Debug)]
pub(crate) struct PatternBox {
    /// Such as `stream:20`.
    pub(crate) value: String,
    /// Its name, with the share if that is not the usual one.
    pub(crate) label: String,
    pub(crate) is_checked: bool,
}

#[derive(Debug)]
pub(crate) struct FieldError {
    pub(crate) parameter: &'static str,
    /// The field, as the page names it, or the parameter.
    pub(crate) name: &'static str,
    pub(crate) reason: String,
}

/// An active filter, with the address of the list without it.
#[derive(Debug)]
pub(crate) struct Chip {
    /// What the filter is about, such as `Creator`.
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) href: String,
}

/// The fields with their names.
const FIELDS: [(&str, &str); 12] = [
    ("query", "Search"),
    ("keys", "Keys"),
    // Those that a narrow window hides.
    ("ratingMin", "Difficulty"),
    ("ratingMax", "Difficulty"),
    ("pattern", "Patterns"),
    ("mainBpmMin", "BPM"),
    ("mainBpmMax", "BPM"),
    ("lengthMin", "Length"),
    ("lengthMax", "Length"),
    ("source", "Source"),
    ("creator", "Creator"),
    ("densityMin", "Peak notes/s"),
];

/// The parameters without a field.
const HIDDEN: [&str; 12] = [
    "densityMax",
    "lnMax",
    "lnMin",
    "match",
    "notesMax",
    "notesMin",
    "order",
    "pack",
    "perPage",
    "set",
    "sort",
    "view",
];

/// The share of rows with a pattern that its check box requires, in percent.
const PATTERN_PERCENT: u8 = 20;

const BPM: [(&str, Option<f64>, Option<f64>); 5] = [
    ("to 130", None, Some(130.0)),
    ("130–150", Some(130.0), Some(150.0)),
    ("150–170", Some(150.0), Some(170.0)),
    ("170–190", Some(170.0), Some(190.0)),
    ("190+", Some(190.0), None),
];
/// In milliseconds.
const LENGTH: [(&str, Option<f64>, Option<f64>); 4] = [
    ("to 1:30", None, Some(90_000.0)),
    ("1:30–3", Some(90_000.0), Some(180_000.0)),
    ("3–5", Some(180_000.0), Some(300_000.0)),
    ("5+ min", Some(300_000.0), None),
];
/// In percent of the notes.
const LONG_NOTES: [(&str, Option<f64>, Option<f64>); 4] = [
    ("none", None, Some(0.0)),
    ("some", Some(1.0), Some(29.0)),
    ("half", Some(30.0), Some(69.0)),
    ("mostly", Some(70.0), None),
];

impl FilterForm {
    /// The form that shows a query.
    pub(crate) fn new(query: &ListQuery) -> Self {
        let parameters = query.parameters();
        let owned: Vec<_> =
            parameters.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned())).collect();
        Self::from_parameters(&owned, query, None)
    }

    /// The form with the values as they were sent, one of which is wrong, above the list of a query.
    pub(crate) fn with_error(query_string: &str, error: &ParameterError, query: &ListQuery) -> Self {
        let error = FieldError::new(error);
        let sent = raw_parameters(query_string).into_iter();
        let sent: Vec<_> = sent.map(|(name, value)| (name_on_page(&name).to_owned(), value)).collect();
        Self::from_parameters(&sent, query, Some(error))
    }

    fn from_parameters(sent: &[(String, String)], query: &ListQuery, error: Option<FieldError>) -> Self {
        let value = |name: &str| {
            sent.iter()
                .find(|(sent, value)| sent == name && !value.is_empty())
                .map(|(_, value)| value.clone())
        };
        let field = |name| value(name).unwrap_or_default();
        let text = value("query").or_else(|| value("q"));
        // A new search for a text begins with the best match. Without a text the parameter is dropped from the
        // address.
        let default_of =
            |name| (name == "sort" && text.is_none()).then(|| Sort::Relevance.as_str().to_owned());
        let keys: Vec<_> =
            sent.iter().filter(|(name, _)| name == "keys").flat_map(|(_, value)| value.split(',')).collect();
        let filters = query.filters();
        let only_keys = filters.iter().all(|filter| matches!(filter, Filter::Keys(_)));
        let kept = if only_keys { KeySet::default() } else { query.search.keys };
        let range = |name, bounds: [&'static str; 2], placeholder, show: fn(String) -> String, presets| {
            Range { name, bounds, values: bounds.map(|bound| show(field(bound))), placeholder, presets }
        };
        Self {
            hints: query.search.hints.clone(),
            query: text.clone().unwrap_or_default(),
            keys: (4..=7)
                .map(|number: u8| KeyButton {
                    keys: number,
                    is_checked: keys.contains(&number.to_string().as_str()),
                })
                .collect(),
            sources: source_options(&field("source")),
            creator: field("creator"),
            histogram: None,
            ranges: vec![
                range("Difficulty", ["ratingMin", "ratingMax"], "any", |rating| rating, word_presets(query)),
                range("BPM", ["mainBpmMin", "mainBpmMax"], "any", |bpm| bpm, {
                    presets(query, &BPM, |search| &mut search.chart.bpm_main)
                }),
                range("Length", ["lengthMin", "lengthMax"], "0:00", format::length_field, {
                    presets(query, &LENGTH, |search| &mut search.length_ms)
                }),
            ],
            patterns: pattern_boxes(&query.search),
            long_notes: presets(query, &LONG_NOTES, |search| &mut search.chart.ln_share),
            density_min: field("densityMin"),
            hidden: HIDDEN
                .into_iter()
                .filter_map(|name| Some((name, value(name).or_else(|| default_of(name))?)))
                .collect(),
            is_open: error.as_ref().is_some_and(FieldError::is_hidden),
            active: filters.len(),
            clear: ListQuery {
                search: SearchQuery { keys: kept, ..SearchQuery::default() },
                ..ListQuery::default()
            }
            .path(),
            cleared: filters.len() - kept.iter().count(),
            more_active: filters.iter().filter(|filter| has_hidden_field(**filter)).count(),
            error,
        }
    }

    /// What is wrong with the field of a parameter, if anything is.
    pub(crate) fn error_of(&self, parameter: &str) -> Option<&FieldError> {
        self.error.as_ref().filter(|error| error.parameter == parameter)
    }
}

impl FieldError {
    /// The error in the words of the form.
    fn new(error: &ParameterError) -> Self {
        // One field is for both.
        let parameter = if error.parameter == "q" { "query" } else { error.parameter };
        let name = FIELDS.iter().find(|(field, _)| *field == parameter).map(|(_, name)| *name);
        let reason = match error.reason.as_ref() {
            reason if reason.starts_with("must not be above") => "begins above its end".to_owned(),
            reason if parameter.starts_with("length") && reason.starts_with("accepts") => {
                "accepts a length such as 1:40, or a number of seconds".to_owned()
            }
            reason => reason.to_owned(),
        };
        Self { parameter, name: name.unwrap_or(parameter), reason }
    }

    fn is_hidden(&self) -> bool {
        FIELDS[2..].iter().any(|(field, _)| *field == self.parameter)
    }
}

/// Whether every window shows the field of a filter, so that no chip has to.
const fn is_always_shown(filter: Filter) -> bool {
    matches!(filter, Filter::Text | Filter::Keys(_))
}

/// Whether a filter has a field that a narrow window hides.
const fn has_hidden_field(filter: Filter) -> bool {
    matches!(
        filter,
        Filter::Rating
            | Filter::Patterns
            | Filter::Bpm
            | Filter::Length
            | Filter::LongNotes
            | Filter::Source
            | Filter::Creator
            | Filter::Density
    )
}

fn source_options(selected: &str) -> Vec<SourceOption> {
    let option = |value, label| SourceOption { value, label, is_selected: value == selected };
    vec![
        option("", "Any source"),
        option(SourceKind::AlphaSet.as_str(), source_name(SourceKind::AlphaSet)),
        option(SourceKind::BetaPack.as_str(), source_name(SourceKind::BetaPack)),
    ]
}

/// What people call a kind of source.
pub(crate) const fn source_name(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::AlphaSet => "Alpha set",
        SourceKind::BetaPack => "Beta pack",
    }
}

fn presets(
    query: &ListQuery,
    ranges: &[(&'static str, Option<f64>, Option<f64>)],
    field: impl Fn(&mut SearchQuery) -> &mut Bounds,
) -> Vec<Preset> {
    let preset = |(label, min, max): &(&'static str, Option<f64>, Option<f64>)| {
        let bounds = Bounds { min: *min, max: *max };
        let is_active = *field(&mut query.search.clone()) == bounds;
        let bounds = if is_active { Bounds::default() } else { bounds };
        let href = query.changed(|search| *field(search) = bounds).path();
        Preset { label, colour: None, href, is_active }
    };
    ranges.iter().map(preset).collect()
}

/// The ranges of difficulties that have a word.
fn word_presets(query: &ListQuery) -> Vec<Preset> {
    let ends = WORDS.iter().skip(1).map(|(_, least)| Some(f64::from(*least))).chain([None]);
    let ranges: Vec<_> = WORDS
        .iter()
        .zip(ends)
        .map(|((word, least), end)| (*word, (*least > 0).then(|| f64::from(*least)), end))
        .collect();
    let presets = presets(query, &ranges, |search| &mut search.chart.rating);
    let coloured = presets.into_iter().zip(WORDS);
    coloured
        .map(|(preset, (_, least))| Preset { colour: Some(level::colour_of_rating(least)), ..preset })
        .collect()
}

/// A check box for each pattern, with the share that the query requires.
fn pattern_boxes(search: &SearchQuery) -> Vec<PatternBox> {
    let pattern_box = |pattern: &Pattern| {
        let required = search.chart.patterns.iter().find(|(required, _)| required == pattern);
        let percent = required.map_or(PATTERN_PERCENT, |(_, percent)| *percent);
        let name = pattern.as_str();
        PatternBox {
            value: format!("{name}:{percent}"),
            label: if percent == PATTERN_PERCENT { name.to_owned() } else { format!("{name} {percent} %") },
            is_checked: required.is_some(),
        }
    };
    Pattern::ALL.iter().map(pattern_box).collect()
}

/// The active filters whose fields some windows hide, or that have none.
pub(crate) fn chips(query: &ListQuery) -> Vec<Chip> {
    let chip = |filter| {
        let (name, value) = describe(filter, &query.search);
        Chip { name, value, href: query.without(filter).path() }
    };
    query.filters().into_iter().filter(|filter| !is_always_shown(*filter)).map(chip).collect()
}

/// What a filter is about, and its value.
pub(crate) fn describe(filter: Filter, search: &SearchQuery) -> (&'static str, String) {
    match filter {
        Filter::Text => ("Search", search.text.clone().unwrap_or_default()),
        Filter::Keys(keys) => ("Keys", format!("{}K", keys.get())),
        Filter::Source => ("Source", search.source.map(source_name).unwrap_or_default().to_owned()),
        Filter::PublishedIn => (
            "Published in",
            search.published_in.as_ref().map_or_else(String::new, |source| {
                format!("{} {}", source_name(source.kind), source.reference)
            }),
        ),
        Filter::Title => ("Title", search.title.clone().unwrap_or_default()),
        Filter::Artist => ("Artist", search.artist.clone().unwrap_or_default()),
        Filter::Tags => ("Tag", search.tags.join(", ")),
        Filter::Creator => ("Creator", search.creator.clone().unwrap_or_default()),
        Filter::ExcludedTitles => ("Without title", search.excluded_titles.join(", ")),
        Filter::ExcludedArtists => ("Without artist", search.excluded_artists.join(", ")),
        Filter::ExcludedCreators => ("Without creator", search.excluded_creators.join(", ")),
        Filter::ExcludedTags => ("Without tag", search.excluded_tags.join(", ")),
        Filter::Bpm => ("BPM", format::bounds(search.chart.bpm_main, format::bpm)),
        Filter::Length => ("Length", format::bounds(search.length_ms, format::filter_length)),
        Filter::Density => {
            let bounds = Bounds { min: search.density_min, max: search.chart.density_max };
            ("Density", format!("{}/s", format::bounds(bounds, |density| format::decimal(density, 3))))
        }
        Filter::Rating => {
            let stars = |hundredths| format::decimal(hundredths / 100.0, 2);
            ("Difficulty", format::bounds(search.chart.rating, stars))
        }
        Filter::LongNotes => {
            let percent = |share| format::decimal(share, 0);
            ("Long notes", format!("{} %", format::bounds(search.chart.ln_share, percent)))
        }
        Filter::Notes => ("Notes", format::bounds(search.chart.notes, |notes| format::decimal(notes, 0))),
        Filter::Patterns => {
            let share = |(pattern, percent): &(Pattern, u8)| format!("{} {percent} %", pattern.as_str());
            ("Patterns", search.chart.patterns.iter().map(share).collect::<Vec<_>>().join(", "))
        }
        Filter::OneChart => ("Filters", "met by one chart".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(query_string: &str) -> ListQuery {
        ListQuery::parse(query_string).unwrap().query
    }

    #[test]
    fn chips_name_their_filter_and_lead_to_the_list_without_it() {
        let query = query(
            "q=a&keys=4,7&source=betaPack&creator=zoe&bpmMin=140&lengthMax=90&densityMin=12.5&page=3&sort=mainBpm",
        );
        let chips = chips(&query);
        let shown: Vec<_> = chips.iter().map(|chip| format!("{} {}", chip.name, chip.value)).collect();
        let all =
            ["Source Beta pack", "Creator zoe", "BPM from 140", "Length up to 1:30", "Density from 12.5/s"];
        assert_eq!(shown, all);
        assert_eq!(
            chips[0].href,
            "/?creator=zoe&densityMin=12.5&keys=4,7&lengthMax=90&mainBpmMin=140&q=a&sort=mainBpm"
        );
    }

    #[test]
    fn form_shows_the_query() {
        let form = FilterForm::new(&query("keys=5&mainBpmMin=170&mainBpmMax=190&sort=title&view=cards"));
        assert_eq!(
            form.keys.iter().map(|button| button.is_checked).collect::<Vec<_>>(),
            [false, true, false, false]
        );
        assert_eq!(form.ranges[1].values, ["170", "190"]);
        assert_eq!((form.active, form.more_active, form.is_open), (2, 1, false));
        assert_eq!(form.hidden, [("sort", "title".to_owned()), ("view", "cards".to_owned())]);
        let active: Vec<_> = form.ranges[1].presets.iter().filter(|preset| preset.is_active).collect();
        assert_eq!(
            (active.len(), active[0].href.as_str()),
            (1, "/?keys=5&sort=title&view=cards"),
            "it is removed again"
        );
    }

    #[test]
    fn lengths_are_shown_as_they_are_typed() {
        let form = FilterForm::new(&query("lengthMin=1:40&lengthMax=120.5"));
        assert_eq!(form.ranges[2].values, ["1:40", "120.5"]);
    }

    #[test]
    fn patterns_keep_their_shares() {
        let form = FilterForm::new(&query("pattern=stream:50,jack:20"));
        let checked: Vec<_> = form
            .patterns
            .iter()
            .filter(|pattern| pattern.is_checked)
            .map(|pattern| (pattern.value.as_str(), pattern.label.as_str()))
            .collect();
        assert_eq!(checked, [("jack:20", "jack"), ("stream:50", "stream 50 %")]);
        assert_eq!(form.patterns.len(), Pattern::ALL.len());
    }

    #[test]
    fn difficulties_have_words() {
        let form = FilterForm::new(&query("ratingMin=3&ratingMax=4"));
        let hard = form.ranges[0].presets.iter().find(|preset| preset.is_active).unwrap();
        assert_eq!((hard.label, hard.colour, hard.href.as_str()), ("Hard", Some(4), "/"));
        assert_eq!(form.ranges[0].presets[0].href, "/?ratingMax=1");
    }

    #[test]
    fn filters_without_a_field_are_not_counted_as_hidden() {
        let form = FilterForm::new(&query("notesMin=5&match=chart&pattern=jack:20&keys=4"));
        assert_eq!((form.active, form.more_active), (4, 1));
    }

    #[test]
    fn new_text_is_sorted_by_relevance() {
        let hidden = |query_string: &str| FilterForm::new(&query(query_string)).hidden;
        assert_eq!(hidden("keys=4"), [("sort", "relevance".to_owned())]);
        assert_eq!(hidden("keys=4&sort=mainBpm"), [("sort", "mainBpm".to_owned())]);
        assert_eq!(hidden("q=a"), [], "newest first was chosen");
    }

    #[test]
    fn form_with_an_error_has_the_values_as_sent() {
        let sent = "q=%3Cb%3E&keys=4&mainBpmMin=fast";
        let error = ListQuery::parse(sent).unwrap_err();
        let form = FilterForm::with_error(sent, &error, &query("keys=4"));
        assert_eq!((form.query.as_str(), form.ranges[1].values[0].as_str()), ("<b>", "fast"));
        let error = form.error_of("mainBpmMin").unwrap();
        assert!(error.name == "BPM" && error.reason.contains("decimal number"), "{error:?}");
        assert!(form.error_of("query").is_none());
        let sent = "bpmMin=fast";
        let earlier = FilterForm::with_error(sent, &ListQuery::parse(sent).unwrap_err(), &query(""));
        assert_eq!(earlier.ranges[1].values[0], "fast");
        assert_eq!((form.active, form.is_open), (1, true), "as in the list");
    }

    #[test]
    fn errors_have_the_words_of_the_form() {
        for (sent, expected) in [
            ("lengthMin=x", "Length accepts a length such as 1:40, or a number of seconds"),
            ("mainBpmMin=2&mainBpmMax=1", "BPM begins above its end"),
            ("sort=x", "sort accepts updated"),
        ] {
            let error = ListQuery::parse(sent).unwrap_err();
            let form = FilterForm::with_error(sent, &error, &ListQuery::default());
            let error = form.error.unwrap();
            let text = format!("{} {}", error.name, error.reason);
            assert!(text.starts_with(expected), "{text}");
        }
    }
}
