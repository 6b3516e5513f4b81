//! Checks the query plans of searches: which index they use, and that they sort or read no whole table
//! unnecessarily.

use std::time::Duration;

use chart_index_domain::ChartsetId;
use chart_index_domain::search::{
    After, Direction, ListPosition, PageRequest, SearchIndex, SearchQuery, Sort, SortValue,
    parse_query_string,
};
use chart_index_tests::TestDatabase;
use serde_json::Value;
use sqlx::{PgConnection, Postgres, QueryBuilder, Row};

use crate::search::search_sql::{push_page, push_total_with_state};
use crate::{CatalogueWatch, PostgresSearch, Store, StoreConfig};

const CHARTSETS: u64 = 5_000;

/// Filters without a text that at least half of the chartsets pass.
const FILTERS: [&str; 7] = [
    "",
    "keys=4",
    "source=alphaSet",
    "bpmMin=100&bpmMax=180",
    "lengthMin=60&lengthMax=120",
    "densityMin=10",
    "keys=4,7&source=alphaSet&bpmMin=90&lengthMin=61&densityMin=5",
];

/// Inserts chartsets with many ties, each a function of its number.
const FILL: &str = "INSERT INTO chartsets
    (id, path, content_fingerprint, checked_at_ms, updated_at_ms, title, artist, creator, source_kind, source_ref, keys,
     bpm_min, bpm_max, length_min_ms, length_max_ms, density_max, chart_count, tags, romanised_names, title_sort,
     artist_sort, creator_search, search_words)
    SELECT lpad(to_hex(n * 7919 % 5003), 16, '0'), 'alpha/' || n, decode(repeat('00', 32), 'hex'), 1, n / 3,
           'Title', 'Artist', 'Creator', CASE WHEN n % 4 > 0 THEN 'alphaSet' END, CASE WHEN n % 4 > 0 THEN '1' END,
           CASE WHEN n % 3 > 0 THEN '{4}'::smallint[] ELSE '{7}' END, 90 + n % 90, 100 + n % 90,
           60000 + n % 50000, 61000 + n % 50000, 5 + n % 30, 1, '{}', '{}', 'title ' || md5((n / 2)::text),
           'artist ' || n % 400, 'creator ' || md5((n % 700)::text),
           array_to_tsvector(array['common', 'word' || n % 500, 'title' || n])
    FROM generate_series(1, 5000) AS n";

/// Gives each chartset two charts, with ratings from 2 to 9.99. Rows are written again, not updated: dead ones
/// would change the costs of plans until they can be vacuumed.
const FILL_CHARTS: &str = "INSERT INTO shown_charts
    (bpm_min, bpm_max, bpm_main, length_ms, density_peak, notes, keys, ln_share, rating, chartset_id, row_shares)
    SELECT bpm_min, bpm_max, bpm_min + 5, length_max_ms, density_max, 100 + n, 4 + (key_counts - 16) / 37, n % 100,
           200 + hashtext(id || n) & 511, id, decode(lpad(to_hex(n), 18, '0'), 'hex')
    FROM shown_chartsets, generate_series(1, 2) AS n;
    CREATE TEMPORARY TABLE listed AS SELECT * FROM shown_chartsets;
    UPDATE listed SET bpm_main_max = bpm_min + 5, rating_max = 200 + hashtext(id) & 511,
                      notes_max = 100 + hashtext(id) & 1023;
    TRUNCATE shown_chartsets;
    INSERT INTO shown_chartsets SELECT * FROM listed";

struct Catalogue {
    database: TestDatabase,
    store: Store,
}

impl Catalogue {
    async fn create() -> Self {
        let database = TestDatabase::migrated().await;
        let store = Store::new(&StoreConfig::new(database.url().parse().unwrap()));
        for statement in [
            FILL,
            FILL_CHARTS,
            "VACUUM (ANALYZE) chartsets",
            "VACUUM (ANALYZE) shown_chartsets",
            "VACUUM (ANALYZE) shown_charts",
        ] {
            let _ = database.psql(statement);
        }
        Self { database, store }
    }

    async fn connection(&self) -> PgConnection {
        self.store.connect(self.store.unlimited_options()).await.unwrap()
    }

    /// Returns the plan of the statement for a page.
    async fn page_plan(&self, query: &SearchQuery, total: Option<u64>) -> Plan {
        let mut statement = QueryBuilder::new("EXPLAIN (FORMAT JSON) ");
        push_page(&mut statement, query, total);
        plan(statement, &mut self.connection().await).await
    }

    /// Returns the ids of a page.
    async fn page_ids(&self, query: &SearchQuery, total: Option<u64>) -> Vec<Option<String>> {
        let mut statement = QueryBuilder::new("");
        push_page(&mut statement, query, total);
        let rows = statement.build().persistent(false).fetch_all(&mut self.connection().await).await.unwrap();
        rows.iter().map(|row| row.try_get("id").unwrap()).collect()
    }

    /// Returns the plan of the statement for a total.
    async fn count_plan(&self, query: &SearchQuery) -> Plan {
        let mut statement = QueryBuilder::new("EXPLAIN (FORMAT JSON) ");
        push_total_with_state(&mut statement, query);
        plan(statement, &mut self.connection().await).await
    }
}

/// A node of a plan, with its children.
#[derive(Debug)]
struct Plan(Value);

async fn plan(mut statement: QueryBuilder<Postgres>, connection: &mut PgConnection) -> Plan {
    let row = statement.build().persistent(false).fetch_one(connection).await.unwrap();
    let text: String = row.try_get_unchecked(0).unwrap();
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    Plan(plan[0]["Plan"].take())
}

impl Plan {
    /// All nodes, this one first.
    fn nodes(&self) -> Vec<&Value> {
        let mut nodes = vec![&self.0];
        let mut next = 0;
        while next < nodes.len() {
            nodes.extend(nodes[next]["Plans"].as_array().into_iter().flatten());
            next += 1;
        }
        nodes
    }

    /// The part of the plan that finds the ids of a page: the node of the limit and those below it.
    fn page(&self) -> Self {
        let is_page = |node: &&&Value| {
            let text = node.to_string();
            node["Node Type"] == "Limit"
                && (text.contains("shown_chartsets") || text.contains("chartsets_by_words"))
        };
        Self((*self.nodes().iter().find(is_page).unwrap()).clone())
    }

    /// The types of the nodes, each with its index or its table.
    fn steps(&self) -> Vec<String> {
        let step = |node: &&Value| {
            let name = ["Index Name", "Relation Name"].iter().find_map(|key| node[key].as_str());
            [node["Node Type"].as_str(), name].into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        self.nodes().iter().map(step).collect()
    }

    /// Whether the page is read from that index, or that of the other direction, in its order, without access
    /// to the table.
    fn is_index_only_scan(&self, index: &str) -> bool {
        let (steps, scan) = (self.page().steps(), format!("Index Only Scan {index}"));
        steps.iter().any(|step| step.starts_with(&scan)) && !steps.iter().any(|step| step == "Sort")
    }

    /// Whether the page is read from that index in its order.
    fn is_index_scan(&self, index: &str) -> bool {
        let steps = self.page().steps();
        steps.contains(&format!("Index Scan {index}")) && !steps.iter().any(|step| step == "Sort")
    }

    fn reads(&self, table: &str) -> bool {
        self.nodes().iter().any(|node| node["Relation Name"] == table)
    }
}

fn index_of(sort: Sort) -> String {
    let name = if sort == Sort::MainBpm { "main_bpm" } else { sort.as_str() };
    format!("shown_chartsets_by_{name}")
}

fn orders() -> impl Iterator<Item = (Sort, Direction)> {
    let sorts = Sort::ALL.iter().copied().filter(|sort| *sort != Sort::Relevance);
    sorts.flat_map(|sort| [Direction::Ascending, Direction::Descending].map(|direction| (sort, direction)))
}

#[tokio::test]
async fn pages_use_the_index_of_their_sort() {
    let catalogue = Catalogue::create().await;
    for filter in FILTERS {
        for (sort, direction) in orders() {
            let query = SearchQuery { sort, direction, ..parse_query_string(filter).unwrap() };
            let last = SearchQuery { page: PageRequest::clamped(80, 30), ..query.clone() };
            for (query, total) in [(&query, None), (&query, Some(2_400)), (&last, Some(2_400))] {
                let plan = catalogue.page_plan(query, total).await;
                let index = index_of(sort);
                // These have only the key counts of the filters.
                let is_wide = !matches!(sort, Sort::Rating | Sort::Notes);
                let is_read = plan.is_index_only_scan(&index) || !is_wide && plan.is_index_scan(&index);
                assert!(is_read, "{query:?}: {:?}", plan.steps());
            }
        }
    }
}

/// A page tests the charts of one chartset after the other, whatever the sort.
#[tokio::test]
async fn pages_with_filters_of_charts_are_read_in_order() {
    let catalogue = Catalogue::create().await;
    for filter in [
        "keys=4&ratingMin=4&ratingMax=5",
        "lnMax=50&notesMin=101",
        "match=chart&bpmMin=120&keys=7",
        "mainBpmMin=120&mainBpmMax=150",
    ] {
        for (sort, direction) in orders() {
            let query = SearchQuery { sort, direction, ..parse_query_string(filter).unwrap() };
            let steps = catalogue.page_plan(&query, Some(2_400)).await.page().steps();
            let scans = |index: &str| steps.iter().any(|step| step.contains(index));
            assert!(scans(&index_of(sort)) && scans("shown_charts_of_chartset"), "{query:?}: {steps:?}");
            assert!(!steps.iter().any(|step| step == "Sort"), "{query:?}: {steps:?}");
        }
    }
}

/// Otherwise, a list by rising rating would test all easier chartsets first.
#[tokio::test]
async fn lists_by_a_number_of_charts_begin_at_the_least_one() {
    let catalogue = Catalogue::create().await;
    for (filter, sort) in [
        ("keys=4&ratingMin=4&ratingMax=5", Sort::Rating),
        ("notesMin=101", Sort::Notes),
        ("mainBpmMin=120", Sort::MainBpm),
    ] {
        for direction in [Direction::Ascending, Direction::Descending] {
            let query = SearchQuery { sort, direction, ..parse_query_string(filter).unwrap() };
            let page = catalogue.page_plan(&query, Some(2_400)).await.page();
            let is_bounded =
                |node: &&Value| node["Index Name"] == *index_of(sort) && node["Index Cond"].is_string();
            assert!(page.nodes().iter().any(is_bounded), "{query:?}: {:#}", page.0);
        }
    }
}

/// The position within ties: 25 chartsets have each density.
#[tokio::test]
async fn pages_after_a_cursor_begin_at_their_position() {
    let catalogue = Catalogue::create().await;
    for filter in FILTERS {
        for (sort, direction) in orders() {
            let value = match sort {
                Sort::Updated | Sort::Relevance => SortValue::Integer(800),
                Sort::Title => SortValue::Name("title 8".into()),
                Sort::Artist => SortValue::Name("artist 200".into()),
                Sort::Bpm | Sort::MainBpm => SortValue::Number(150.0),
                Sort::Length => SortValue::Integer(63_000),
                Sort::Density => SortValue::Number(20.0),
                Sort::Rating => SortValue::Integer(500),
                Sort::Notes => SortValue::Integer(900),
            };
            let after = Some(After::Position(ListPosition { value, id: ChartsetId::from_bytes([0; 8]) }));
            let query = SearchQuery { sort, direction, after, ..parse_query_string(filter).unwrap() };
            let page = catalogue.page_plan(&query, Some(2_400)).await.page();
            let scans: Vec<_> =
                page.nodes().into_iter().filter(|node| node["Index Name"].is_string()).collect();
            assert_eq!(scans.len(), 2, "{query:?}: {:?}", page.steps());
            for scan in scans {
                let column = [
                    "updated_at_ms",
                    "title_sort",
                    "artist_sort",
                    "bpm_max",
                    "bpm_main_max",
                    "length_max_ms",
                    "density_max",
                    "rating_max",
                    "notes_max",
                ]
                .into_iter()
                .any(|column| {
                    scan["Index Cond"].as_str().is_some_and(|condition| condition.contains(column))
                });
                let index = scan["Index Name"].as_str().unwrap();
                assert!(index.starts_with(&index_of(sort)) && column, "{query:?}: {scan:#}");
            }
        }
    }
}

#[tokio::test]
async fn the_last_page_scans_backward() {
    let catalogue = Catalogue::create().await;
    let first = SearchQuery::default();
    let last = SearchQuery {
        page: PageRequest::clamped(i64::try_from(CHARTSETS / 30).unwrap(), 30),
        ..first.clone()
    };
    for (query, direction) in [(first, "Forward"), (last, "Backward")] {
        let page = catalogue.page_plan(&query, Some(CHARTSETS)).await.page();
        let directions: Vec<_> =
            page.nodes().iter().filter_map(|node| node["Scan Direction"].as_str()).collect();
        assert_eq!(directions, [direction]);
        // As cheap as the first page.
        assert!(page.0["Total Cost"].as_f64().unwrap() < 10.0, "{page:?}");
    }
}

#[tokio::test]
async fn pages_from_both_ends_agree() {
    let catalogue = Catalogue::create().await;
    for &sort in Sort::ALL {
        for direction in [Direction::Ascending, Direction::Descending] {
            for (text, number) in [(None, 43), (None, 84), (Some("common"), 84)] {
                let page = PageRequest::clamped(number, 60);
                let text = text.map(str::to_owned);
                let query = SearchQuery { sort, direction, text, page, ..SearchQuery::default() };
                let from_end = catalogue.page_ids(&query, Some(CHARTSETS)).await;
                assert_eq!(from_end, catalogue.page_ids(&query, None).await, "{query:?}");
                assert_eq!(from_end.len(), if number == 84 { 20 } else { 60 }, "{query:?}");
            }
        }
    }
}

/// The total is 30 seconds old at most, and so is the place of the page in the list.
#[tokio::test]
async fn deep_pages_with_a_recent_total_are_counted_from_the_end() {
    let catalogue = Catalogue::create().await;
    let engine = PostgresSearch::new(catalogue.store.clone(), CatalogueWatch::disabled());
    let last = SearchQuery { page: PageRequest::clamped(84, 60), ..SearchQuery::default() };
    let before = engine.search(&last).await.unwrap();
    assert_eq!((before.items.len(), before.total), (20, CHARTSETS));
    let first = SearchQuery::default();
    let newest = engine.search(&first).await.unwrap().next.map(|position| position.id.to_string());
    let deletion = format!("DELETE FROM chartsets WHERE id = '{}'", newest.unwrap());
    let _ = catalogue.database.psql(&deletion);
    let after = engine.search(&last).await.unwrap();
    assert_eq!((&after.items, after.total), (&before.items, CHARTSETS));
    let exact = engine.with_max_total_age(Duration::ZERO).search(&last).await.unwrap();
    assert_eq!((&exact.items[..], exact.total), (&before.items[1..], CHARTSETS - 1));
}

#[tokio::test]
async fn totals_without_a_text_read_the_narrow_table() {
    let catalogue = Catalogue::create().await;
    for filter in FILTERS.into_iter().chain(["creator=r+0", "creator=creator+0"]) {
        let plan = catalogue.count_plan(&parse_query_string(filter).unwrap()).await;
        assert!(!plan.reads("chartsets"), "{filter}: {:?}", plan.steps());
        assert!(plan.reads("shown_chartsets"), "{filter}: {:?}", plan.steps());
    }
}

#[tokio::test]
async fn creator_parts_use_the_trigram_index() {
    let catalogue = Catalogue::create().await;
    let query = parse_query_string("creator=2723d0").unwrap();
    for plan in [catalogue.count_plan(&query).await, catalogue.page_plan(&query, Some(10)).await] {
        let steps = plan.steps();
        let lookup = "Bitmap Index Scan shown_chartsets_by_creator".to_owned();
        assert!(steps.contains(&lookup), "{steps:?}");
        assert!(!steps.contains(&"Seq Scan shown_chartsets".to_owned()), "{steps:?}");
    }
    // Although every name contains this part.
    let query = parse_query_string("creator=creator").unwrap();
    let plan = catalogue.page_plan(&query, Some(10)).await;
    assert!(!plan.is_index_only_scan("shown_chartsets_by_updated"), "{:?}", plan.steps());
    let near = catalogue.page_plan(&query, Some(CHARTSETS + 1)).await;
    assert!(near.is_index_scan("shown_chartsets_by_updated"), "{:?}", near.steps());
    for (sort, direction) in orders() {
        let query = SearchQuery { sort, direction, page: PageRequest::clamped(3, 60), ..query.clone() };
        let [few, many] = [CHARTSETS, CHARTSETS + 1].map(Some);
        let page = catalogue.page_ids(&query, few).await;
        assert_eq!(
            page,
            catalogue.page_ids(&query, many).await,
            "both plans of {query:?} return the same page"
        );
    }
}

#[tokio::test]
async fn rare_and_common_texts_have_different_plans() {
    let catalogue = Catalogue::create().await;
    let rare = parse_query_string("q=word7&sort=title").unwrap();
    for plan in [catalogue.count_plan(&rare).await, catalogue.page_plan(&rare, Some(10)).await.page()] {
        let steps = plan.steps();
        assert!(steps.contains(&"Bitmap Index Scan chartsets_by_words".to_owned()), "{steps:?}");
        assert!(!steps.contains(&"Seq Scan chartsets".to_owned()), "{steps:?}");
    }
    let common = parse_query_string("q=common&sort=title").unwrap();
    let plan = catalogue.page_plan(&common, Some(100_000)).await;
    assert!(plan.is_index_only_scan("shown_chartsets_by_title"), "{:?}", plan.steps());
    assert!(plan.page().steps().contains(&"Index Scan chartsets_pkey".to_owned()), "{:?}", plan.steps());
    assert_eq!(
        catalogue.page_ids(&common, Some(100_000)).await,
        catalogue.page_ids(&common, Some(CHARTSETS)).await,
        "both plans return the same page"
    );
}

/// Many chartsets have the same density: a page reads no more of them than it skips or has.
#[tokio::test]
async fn pages_by_density_are_not_sorted() {
    let catalogue = Catalogue::create().await;
    for filter in ["", "creator=creator", "q=common"] {
        for direction in [Direction::Ascending, Direction::Descending] {
            let query = SearchQuery { sort: Sort::Density, direction, ..parse_query_string(filter).unwrap() };
            let steps = catalogue.page_plan(&query, Some(100_000)).await.page().steps();
            assert!(!steps.iter().any(|step| step.ends_with("Sort")), "{query:?}: {steps:?}");
        }
    }
}

/// Gives some chartsets the title "common", and others titles that start with it, together fewer than 300.
const TITLES: &str = "UPDATE chartsets SET title_sort = CASE
        WHEN updated_at_ms % 167 = 0 AND source_kind IS NOT NULL THEN 'common'
        WHEN updated_at_ms % 25 = 1 THEN 'common ' || updated_at_ms % 7 ELSE title_sort END";

fn by_relevance(direction: Direction, page: u64) -> SearchQuery {
    let page = PageRequest::clamped(i64::try_from(page).unwrap(), 50);
    SearchQuery { sort: Sort::Relevance, direction, page, ..parse_query_string("q=common").unwrap() }
}

#[tokio::test]
async fn relevance_to_a_common_text_reads_few_matches() {
    let catalogue = Catalogue::create().await;
    for statement in [TITLES, "VACUUM (ANALYZE) chartsets", "VACUUM (ANALYZE) shown_chartsets"] {
        let _ = catalogue.database.psql(statement);
    }
    let plan = catalogue.page_plan(&by_relevance(Direction::Descending, 1), Some(100_000)).await.page();
    let steps = plan.steps();
    for step in ["Index Scan shown_chartsets_by_updated", "Bitmap Index Scan shown_chartsets_by_title"] {
        assert!(steps.contains(&step.to_owned()), "no {step}: {steps:?}");
    }
    let reads_all = |step: &String| step.starts_with("Seq Scan") || step.ends_with("chartsets_by_words");
    assert!(!steps.iter().any(reads_all), "{steps:?}");
}

#[tokio::test]
async fn relevance_to_rare_and_common_texts_agree() {
    let catalogue = Catalogue::create().await;
    let _ = catalogue.database.psql(TITLES);
    let count_titles = "SELECT count(*) FROM chartsets WHERE starts_with(title_sort, 'common')";
    let titles: u32 = catalogue.database.psql(count_titles).parse().unwrap();
    // So that the pages below have chartsets of every rank.
    assert!((60..300).contains(&titles), "{titles}");
    // As many chartsets as match, and a number that makes the text a common one.
    let (matches, common) = (CHARTSETS, 100_000);
    for direction in [Direction::Ascending, Direction::Descending] {
        let page =
            async |number, total| catalogue.page_ids(&by_relevance(direction, number), Some(total)).await;
        for number in 1..=6 {
            let expected = page(number, matches).await;
            assert_eq!(expected.iter().flatten().count(), 50);
            assert_eq!(page(number, common).await, expected, "{direction:?} {number}");
            let last = |total| total / 50 + 1 - number;
            let expected = page(last(matches), matches).await;
            assert_eq!(expected.iter().flatten().count(), 50);
            assert_eq!(page(last(common), common).await, expected, "{direction:?} {number} from the end");
        }
    }
}
