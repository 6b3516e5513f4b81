//! The title of a list: its filters as a phrase.

use crate::filter_form::describe;
use crate::list_query::{Filter, ListQuery};

/// The title, such as `4K and 7K charts by zoe, 140–180 BPM`.
pub(crate) fn title(query: &ListQuery) -> String {
    let (mut searched, mut keys, mut creator, mut others) =
        (String::new(), Vec::new(), String::new(), Vec::new());
    for filter in query.filters() {
        let value = describe(filter, &query.search).1;
        match filter {
            Filter::Text => searched = format!("“{value}” – "),
            Filter::Keys(_) => keys.push(value),
            Filter::Creator => creator = format!(" by {value}"),
            Filter::Title => others.push(format!("titled {value}")),
            Filter::Artist => others.push(format!("of {value}")),
            Filter::Tags => others.push(format!("tagged {value}")),
            Filter::ExcludedTitles => others.push(format!("not titled {value}")),
            Filter::ExcludedArtists => others.push(format!("not of {value}")),
            Filter::ExcludedCreators => others.push(format!("not by {value}")),
            Filter::ExcludedTags => others.push(format!("without the tags {value}")),
            Filter::Bpm => others.push(format!("{value} BPM")),
            Filter::Length => others.push(format!("{value} long")),
            Filter::Density => others.push(value.replace("/s", " notes/s")),
            Filter::Rating => others.push(format!("difficulty {value}")),
            Filter::LongNotes => others.push(format!("{value} long notes")),
            Filter::Notes => others.push(format!("{value} notes")),
            Filter::Source | Filter::PublishedIn | Filter::Patterns => others.push(value),
            Filter::OneChart => {}
        }
    }
    let keys = match keys.split_last() {
        None => "Charts".to_owned(),
        Some((last, [])) => format!("{last} charts"),
        Some((last, before)) => format!("{} and {last} charts", before.join(", ")),
    };
    let number = query.search.page.number();
    others.extend((number > 1).then(|| format!("page {number}")));
    [vec![format!("{searched}{keys}{creator}")], others].concat().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_has_units() {
        for (query_string, expected) in [
            ("", "Charts"),
            ("sort=title&page=3", "Charts, page 3"),
            ("keys=4", "4K charts"),
            ("keys=4,5,7&creator=zoe", "4K, 5K and 7K charts by zoe"),
            ("bpmMin=140&bpmMax=180&lengthMin=100&lengthMax=140", "Charts, 140–180 BPM, 1:40–2:20 long"),
            ("densityMin=12.5&ratingMin=5", "Charts, difficulty from 5, from 12.5 notes/s"),
            ("query=title:a+-artist:b+tag:c+4k", "4K charts, titled a, tagged c, not of b"),
            ("q=a+b&keys=7&source=betaPack&match=chart", "“a b” – 7K charts, Beta pack"),
        ] {
            assert_eq!(title(&ListQuery::parse(query_string).unwrap().query), expected);
        }
    }
}
