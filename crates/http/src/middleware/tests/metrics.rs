//! The metrics of requests: their labels, whatever clients send.

use std::collections::{BTreeMap, BTreeSet};

use chart_index_instrumentation::Metrics;
use chart_index_tests::series;

use super::*;

type Labels = BTreeMap<String, String>;

/// An app with its metrics.
struct Metered {
    app: Router,
    metrics: &'static Metrics,
}

impl Metered {
    fn new(max_requests_in_flight: u32, entered: Arc<Notify>, release: Arc<Notify>) -> Self {
        let metrics: &'static Metrics = Box::leak(Box::default());
        let (routes, limiter) = (routes(entered, release), rate_limiter(8, "10.0.0.0/8"));
        let config = config(max_requests_in_flight);
        let app = PublicApi::metered(routes, limiter, &config, Sampler::OFF, metrics).into_router();
        let app = from_peer(app, "10.0.0.1");
        Self { app, metrics }
    }

    /// The value of each label set of a metric: the count of a histogram, else the value.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    fn read(&self, name: &str) -> BTreeMap<Labels, u64> {
        let series = series(self.metrics).into_iter().filter(|series| series.name == name);
        series.map(|series| (series.labels, series.value as u64)).collect()
    }
}

/// The values of a label, of all label sets that have it.
fn values_of<'a>(series: &'a BTreeMap<Labels, u64>, label: &str) -> BTreeSet<&'a str> {
    series.keys().filter_map(|labels| labels.get(label).map(String::as_str)).collect()
}

fn random_text(random: &mut fastrand::Rng, length: usize) -> String {
    (0..length).map(|_| random.alphanumeric()).collect()
}

/// A request with a random method, path, host, address and `traceparent`.
fn random_request(random: &mut fastrand::Rng) -> Request<Body> {
    let text = random_text(random, 12);
    let method = match random.u8(..6) {
        0 | 1 => "GET",
        2 => "HEAD",
        3 => "OPTIONS",
        4 => "POST",
        _ => &text,
    };
    let path = match random.u8(..8) {
        0 => "/panic".to_owned(),
        1 => "/unavailable".to_owned(),
        2 => "/overloaded".to_owned(),
        3 => format!("/large/{text}"),
        4 => format!("/large/{{name}}?{text}={text}"),
        5 => format!("/large/a?{}", "q".repeat(9_000)),
        6 => "/endless".to_owned(),
        _ => format!("/{text}"),
    };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("x-forwarded-for", format!("192.0.2.{}", random.u8(..4)))
        .header("traceparent", format!("00-{}-{}-01", random_text(random, 32), random_text(random, 16)));
    match random.u8(..6) {
        0 => {}
        1 => request = request.header("host", "not valid"),
        _ => request = request.header("host", &text),
    }
    if random.bool() {
        request = request.header("origin", &text).header("access-control-request-method", &text);
    }
    request.body(Body::empty()).unwrap()
}

/// The number of arbitrary requests.
const REQUESTS: u64 = 4_000;

#[tokio::test(start_paused = true)]
async fn arbitrary_requests_use_closed_label_sets() {
    let metered = Metered::new(64, Arc::default(), Arc::default());
    let mut random = fastrand::Rng::with_seed(12);
    for _ in 0..REQUESTS {
        metered.app.clone().oneshot(random_request(&mut random)).await.unwrap();
    }
    let series = metered.read("http_server_request_duration_seconds");
    assert_eq!(series.values().sum::<u64>(), REQUESTS);
    assert_eq!(
        values_of(&series, "http_request_method"),
        BTreeSet::from(["GET", "HEAD", "OPTIONS", "POST", "_OTHER"])
    );
    assert_eq!(
        values_of(&series, "http_route"),
        BTreeSet::from(["/endless", "/large/{name}", "/overloaded", "/panic", "/unavailable"])
    );
    assert_eq!(
        values_of(&series, "http_response_status_code"),
        BTreeSet::from(["200", "204", "400", "404", "405", "414", "429", "500", "503"])
    );
    let errors = [
        "bad-host",
        "deadline-exceeded",
        "internal",
        "method-not-allowed",
        "not-found",
        "overloaded",
        "rate-limited",
        "unavailable",
        "uri-too-long",
    ];
    assert_eq!(values_of(&series, "error_type"), BTreeSet::from(errors));
    // 15 buckets, sum and count each.
    assert!(series.len() * 17 < 1_500, "{} label sets", series.len());
    let shed = metered.read("chart_index_http_requests_shed_total");
    // Each group has four reasons.
    assert_eq!(shed.len(), Group::ALL.len() * 4, "{shed:?}");
}

#[tokio::test]
async fn request_has_its_group_method_route_and_status() {
    let metered = Metered::new(8, Arc::default(), Arc::default());
    let long = format!("/large/a?{}", "q".repeat(9_000));
    for (method, path, expected) in [
        ("GET", "/large/a", "lookup GET /large/{name} 200"),
        ("HEAD", "/large/b", "lookup HEAD /large/{name} 200"),
        ("GET", "/unavailable", "lookup GET /unavailable 503 unavailable"),
        ("GET", "/panic", "lookup GET /panic 500 internal"),
        ("GET", "/nothing", "other GET 404 not-found"),
        ("GET", &long, "other GET 414 uri-too-long"),
        ("PUT", "/large/a", "other _OTHER 405 method-not-allowed"),
        ("OPTIONS", "/large/a", "other OPTIONS 405 method-not-allowed"),
    ] {
        let before = metered.read("http_server_request_duration_seconds");
        send(&metered.app, method, path, &[]).await;
        let mut after = metered.read("http_server_request_duration_seconds");
        after.retain(|labels, count| before.get(labels) != Some(count));
        let names = [
            "chart_index_group",
            "http_request_method",
            "http_route",
            "http_response_status_code",
            "error_type",
        ];
        let recorded = after.keys().map(|labels| {
            names.iter().filter_map(|name| labels.get(*name)).cloned().collect::<Vec<_>>().join(" ")
        });
        assert_eq!(recorded.collect::<Vec<_>>(), [expected], "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn shed_requests_are_counted_by_group_and_reason() {
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let metered = Metered::new(1, Arc::clone(&entered), Arc::clone(&release));
    send(&metered.app, "GET", "/endless", &[]).await;
    send(&metered.app, "GET", "/overloaded", &[]).await;
    let waiting = send_waiting(&metered.app, &entered).await;
    let [active, limit] =
        ["http_server_active_requests", "chart_index_http_requests_limit"].map(|name| metered.read(name));
    assert_eq!((active, limit), ([(Labels::new(), 1)].into(), [(Labels::new(), 1)].into()));
    for (method, path) in
        [("GET", "/large/a"), ("HEAD", "/large/a"), ("POST", "/large/a"), ("GET", "/nothing")]
    {
        assert_eq!(send(&metered.app, method, path, &[]).await.status, 503, "{method} {path}");
    }
    release.notify_one();
    waiting.await.unwrap();
    let mut shed = metered.read("chart_index_http_requests_shed_total");
    shed.retain(|_, count| *count > 0);
    let shed: Vec<_> = shed
        .iter()
        .map(|(labels, count)| {
            (labels["chart_index_group"].as_str(), labels["chart_index_reason"].as_str(), *count)
        })
        .collect();
    assert_eq!(
        shed,
        [
            ("detail", "fills", 1),
            ("lookup", "deadline", 1),
            ("lookup", "in_flight", 2),
            ("other", "in_flight", 2)
        ]
    );
    assert_eq!(metered.read("http_server_active_requests").into_values().collect::<Vec<_>>(), [0]);
}

/// Metrics must not keep the service alive, or report one that is gone.
#[tokio::test]
async fn dropped_service_is_no_longer_observed() {
    let metered = Metered::new(8, Arc::default(), Arc::default());
    assert_eq!(metered.read("http_server_active_requests").len(), 1);
    let Metered { app, metrics } = metered;
    drop(app);
    let metered = Metered { app: Router::new(), metrics };
    assert!(metered.read("http_server_active_requests").is_empty());
}
