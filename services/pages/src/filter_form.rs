//! The form of the list: its fields, the presets next to them, and the active filters.

use chart_index_domain::search::{Bounds, Hint, ParameterError, SearchQuery, Sort, TypedQuery};
use chart_index_domain::{Pattern, SourceKind};

use crate::format;
use crate::list_query::{Filter, ListQuery, raw_parameters};

/// The form of the list, with the values of its fields.
#[derive(Debug, Default)]
pub(crate) struct FilterForm {
    /// The text, or what was typed with it and has no field.
    pub(crate) query: String,
    /// Parts of it that are no filters.
    pub(crate) hints: Vec<Hint>,
    /// The names of typed filters with their aliases, such as `keys (key, k), ln (lns)`.
    pub(crate) typed_filters: String,
    pub(crate) keys: Vec<KeyButton>,
    pub(crate) sources: Vec<SourceOption>,
    pub(crate) creator: String,
    /// BPM, length and difficulty.
    pub(crate) ranges: Vec<Range>,
    pub(crate) density_min: String,
    /// Parameters that the form does not show and keeps.
    pub(crate) hidden: Vec<(&'static str, String)>,
    pub(crate) presets: Vec<Presets>,
    /// Whether the fields below the line are shown.
    pub(crate) is_open: bool,
    /// The number of active filters.
    pub(crate) active: usize,
    /// Those of them below the line.
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
    /// What the fields show without a value.
    pub(crate) placeholders: [&'static str; 2],
    /// The list without it, if it is active.
    pub(crate) clear: Option<String>,
}

/// Links that set a range.
#[derive(Debug)]
pub(crate) struct Presets {
    pub(crate) name: &'static str,
    pub(crate) links: Vec<Preset>,
}

/// A link that sets a range.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(crate) label: &'static str,
    pub(crate) href: String,
    pub(crate) is_active: bool,
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
const FIELDS: [(&str, &str); 11] = [
    ("query", "Search"),
    ("keys", "Keys"),
    ("bpmMin", "BPM"),
    ("bpmMax", "BPM"),
    ("lengthMin", "Length"),
    ("lengthMax", "Length"),
    ("ratingMin", "Difficulty"),
    ("ratingMax", "Difficulty"),
    // Those that are not always visible.
    ("source", "Source"),
    ("creator", "Creator"),
    ("densityMin", "Peak notes/s"),
];

/// The parameters without a field.
const HIDDEN: [&str; 13] = [
    "densityMax",
    "lnMax",
    "lnMin",
    "match",
    "notesMax",
    "notesMin",
    "order",
    "pack",
    "pattern",
    "perPage",
    "set",
    "sort",
    "view",
];

const BPM: [(&str, Option<f64>, Option<f64>); 4] = [
    ("to 140", None, Some(140.0)),
    ("140–170", Some(140.0), Some(170.0)),
    ("170–200", Some(170.0), Some(200.0)),
    ("200+", Some(200.0), None),
];
/// In milliseconds.
const LENGTH: [(&str, Option<f64>, Option<f64>); 4] = [
    ("to 1:30", None, Some(90_000.0)),
    ("1:30–3", Some(90_000.0), Some(180_000.0)),
    ("3–5", Some(180_000.0), Some(300_000.0)),
    ("5+ min", Some(300_000.0), None),
];
/// In hundredths, from the [stops](crate::level::STOPS) of the colours.
const RATING: [(&str, Option<f64>, Option<f64>); 4] = [
    ("to 1.5", None, Some(150.0)),
    ("1.5–2.7", Some(150.0), Some(270.0)),
    ("2.7–4.5", Some(270.0), Some(450.0)),
    ("4.5+", Some(450.0), None),
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
        Self::from_parameters(&raw_parameters(query_string), query, Some(error))
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
        let range =
            |name, filter, bounds: [&'static str; 2], placeholders, show: fn(String) -> String| Range {
                name,
                bounds,
                values: bounds.map(|bound| show(field(bound))),
                placeholders,
                clear: filters.contains(&filter).then(|| query.without(filter).path()),
            };
        Self {
            hints: query.search.hints.clone(),
            typed_filters: typed_filters(),
            query: text.clone().unwrap_or_default(),
            keys: (4..=7)
                .map(|number: u8| KeyButton {
                    keys: number,
                    is_checked: keys.contains(&number.to_string().as_str()),
                })
                .collect(),
            sources: source_options(&field("source")),
            creator: field("creator"),
            ranges: vec![
                range("BPM", Filter::Bpm, ["bpmMin", "bpmMax"], ["any", "any"], |bpm| bpm),
                range(
                    "Length",
                    Filter::Length,
                    ["lengthMin", "lengthMax"],
                    ["0:00", "any"],
                    format::length_field,
                ),
                range("Difficulty", Filter::Rating, ["ratingMin", "ratingMax"], ["any", "any"], |rating| {
                    rating
                }),
            ],
            density_min: field("densityMin"),
            hidden: HIDDEN
                .into_iter()
                .filter_map(|name| Some((name, value(name).or_else(|| default_of(name))?)))
                .collect(),
            presets: vec![
                Presets { name: "BPM", links: presets(query, &BPM, |search| &mut search.bpm) },
                Presets { name: "Length", links: presets(query, &LENGTH, |search| &mut search.length_ms) },
                Presets {
                    name: "Difficulty",
                    links: presets(query, &RATING, |search| &mut search.chart.rating),
                },
            ],
            is_open: error.as_ref().is_some_and(FieldError::is_below_the_line),
            active: filters.len(),
            more_active: filters.iter().filter(|filter| !is_in_line(**filter)).count(),
            error,
        }
    }

    /// What is wrong with the field of a parameter, if anything is.
    pub(crate) fn error_of(&self, parameter: &str) -> Option<&FieldError> {
        self.error.as_ref().filter(|error| error.parameter == parameter)
    }
}

fn typed_filters() -> String {
    let named = |(name, aliases): (&str, &[&str])| match aliases {
        [] => name.to_owned(),
        aliases => format!("{name} ({})", aliases.join(", ")),
    };
    TypedQuery::filter_names().map(named).collect::<Vec<_>>().join(", ")
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

    fn is_below_the_line(&self) -> bool {
        ["source", "creator", "densityMin"].contains(&self.parameter)
    }
}

/// Whether the line of the form shows a filter, so that no chip has to.
const fn is_in_line(filter: Filter) -> bool {
    matches!(filter, Filter::Text | Filter::Keys(_) | Filter::Bpm | Filter::Length | Filter::Rating)
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
        Preset { label, href: query.changed(|search| *field(search) = bounds).path(), is_active }
    };
    ranges.iter().map(preset).collect()
}

/// The active filters that the line of the form does not show.
pub(crate) fn chips(query: &ListQuery) -> Vec<Chip> {
    let chip = |filter| {
        let (name, value) = describe(filter, &query.search);
        Chip { name, value, href: query.without(filter).path() }
    };
    query.filters().into_iter().filter(|filter| !is_in_line(*filter)).map(chip).collect()
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
        Filter::Bpm => ("BPM", format::bounds(search.bpm, format::bpm)),
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
        assert_eq!(shown, ["Source Beta pack", "Creator zoe", "Density from 12.5/s"]);
        assert_eq!(
            chips[0].href,
            "/?bpmMin=140&creator=zoe&densityMin=12.5&keys=4,7&lengthMax=90&q=a&sort=mainBpm"
        );
    }

    #[test]
    fn form_shows_the_query() {
        let form = FilterForm::new(&query("keys=5&bpmMin=170&bpmMax=200&sort=title&view=cards"));
        assert_eq!(
            form.keys.iter().map(|button| button.is_checked).collect::<Vec<_>>(),
            [false, true, false, false]
        );
        assert_eq!(form.ranges[0].values, ["170", "200"]);
        assert_eq!(form.ranges[0].clear.as_deref(), Some("/?keys=5&sort=title&view=cards"));
        assert_eq!((form.ranges[1].clear.as_deref(), form.active, form.is_open), (None, 2, false));
        assert_eq!(form.hidden, [("sort", "title".to_owned()), ("view", "cards".to_owned())]);
        let active: Vec<_> = form.presets[0].links.iter().filter(|preset| preset.is_active).collect();
        assert_eq!(
            (active.len(), active[0].href.as_str()),
            (1, "/?keys=5&sort=title&view=cards"),
            "it is removed again"
        );
    }

    #[test]
    fn lengths_are_shown_as_they_are_typed() {
        let form = FilterForm::new(&query("lengthMin=1:40&lengthMax=120.5"));
        assert_eq!(form.ranges[1].values, ["1:40", "120.5"]);
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
        let sent = "q=%3Cb%3E&keys=4&bpmMin=fast";
        let error = ListQuery::parse(sent).unwrap_err();
        let form = FilterForm::with_error(sent, &error, &query("keys=4"));
        assert_eq!((form.query.as_str(), form.ranges[0].values[0].as_str()), ("<b>", "fast"));
        let error = form.error_of("bpmMin").unwrap();
        assert!(error.name == "BPM" && error.reason.contains("decimal number"), "{error:?}");
        assert!(form.error_of("query").is_none());
        assert_eq!((form.active, form.ranges[0].clear.as_deref()), (1, None), "as in the list");
    }

    #[test]
    fn errors_have_the_words_of_the_form() {
        for (sent, expected) in [
            ("lengthMin=x", "Length accepts a length such as 1:40, or a number of seconds"),
            ("bpmMin=2&bpmMax=1", "BPM begins above its end"),
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
