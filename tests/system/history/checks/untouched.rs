//! Charts and chartsets that no command touches: known in every response, whatever else happens.

use super::describe;
use crate::clients::{Exchange, Filter, Request};
use crate::history::History;
use crate::lists::matches;
use crate::model::{Chart, SETS, UNTOUCHED_CHARTS, UNTOUCHED_SETS};

/// Says so if a response lacks something that no command touches.
pub(super) fn lacks_untouched(history: &History, exchange: &Exchange) -> Option<String> {
    let response = exchange.response.as_ref().ok()?;
    let status = response.status.as_u16();
    if !matches!(status, 200 | 302 | 404) {
        return None;
    }
    let body = String::from_utf8_lossy(&response.body);
    let lists = |filter| {
        let charts: Vec<Chart> = UNTOUCHED_CHARTS.collect();
        let mut matching = UNTOUCHED_SETS.filter(|set| matches(filter, *set, &charts));
        matching.all(|set| body.contains(history.names.id(set)))
    };
    let is_found = match &exchange.request {
        Request::Lookup(chart) | Request::Variants(chart) => {
            !UNTOUCHED_CHARTS.contains(chart) || response.json()["status"] == "known"
        }
        Request::Rox(chart) | Request::Preview(chart) | Request::ChartPage(chart) => {
            !UNTOUCHED_CHARTS.contains(chart) || status != 404
        }
        Request::Batch(charts) => {
            let items = &response.json()["items"];
            let mut items = charts.iter().enumerate().map(|(index, chart)| (chart, &items[index]));
            items.all(|(chart, item)| !UNTOUCHED_CHARTS.contains(chart) || item["status"] == "known")
        }
        Request::Detail(set) | Request::Redirect(set) | Request::SetPage(set) => {
            !UNTOUCHED_SETS.contains(set) || status != 404
        }
        Request::List(query) => query.per_page < SETS as usize || lists(query.filter),
        Request::ListPage | Request::Feed => lists(Filter::All),
        // A hash filter is built when the first charts are ingested.
        Request::HashFilter => status == 302,
        Request::HashFilterFile(_) | Request::Object(..) => true,
    };
    (!is_found).then(|| describe(exchange))
}
