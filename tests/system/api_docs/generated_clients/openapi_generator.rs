//! Calls every operation of an index with the Rust of openapi-generator, and prints their ids.

use std::error::Error;

use generated_client::apis::bulk_api::{self as bulk, GetHashFilterError};
use generated_client::apis::charts_api::{self as charts, LookUpChartError};
use generated_client::apis::chartsets_api as chartsets;
use generated_client::apis::configuration::Configuration;
use generated_client::apis::{Error as ApiError, ResponseContent};
use generated_client::models::{
    BatchLookupItem, BatchLookupRequest, ChartLookup, ChartReference, Problem, SortOrder,
};
use reqwest::{Client, Response};

type Done = Result<(), Box<dyn Error>>;

const HASH: &str = "ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb";
const UNKNOWN: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const VARIANT: &str = "8a665c6e346d5a595e966275751b720f4c8d61d0fdcf43f9c7a77c5094ea1670";
const CHARTSET: &str = "21642f9846d39260";
const EXPORT: &str = "20261122T182049Z-1";

/// Prints the id of an operation or a status, unless the response was another one than expected.
fn called(name: &str, is_expected: bool) {
    assert!(is_expected, "{name}");
    println!("{name}");
}

fn configuration(base: &str, client: Client) -> Configuration {
    Configuration { base_path: base.to_owned(), client, ..Configuration::new() }
}

/// The error of a response that is none of a success.
fn refused<T, E>(result: Result<T, ApiError<E>>) -> Option<ResponseContent<E>> {
    match result {
        Err(ApiError::ResponseError(response)) => Some(response),
        _ => None,
    }
}

async fn call_charts(api: &Configuration) -> Done {
    let include = |names: [&str; 2]| Some(names.map(str::to_owned).to_vec());
    let lookup = charts::look_up_chart(api, HASH, include(["variants", "links"]), None, None).await?;
    let ChartLookup::KnownChart(known) = lookup else { return Err("the chart is unknown".into()) };
    called("lookUpChart", known.chart.notes == 36 && known.sources[0].url.is_some());
    let unknown = charts::look_up_chart(api, UNKNOWN, None, None, None).await?;
    assert!(matches!(unknown, ChartLookup::UnknownChart(unknown) if unknown.chart_hash == UNKNOWN));
    let md5 = Some("0".repeat(32));
    let request = BatchLookupRequest {
        hashes: Some(vec![HASH.to_owned()]),
        charts: Some(vec![ChartReference { md5: md5.clone(), ..ChartReference::new() }]),
    };
    let batch = charts::look_up_charts(api, request, None).await?;
    let is_expected = match &batch.items[..] {
        [BatchLookupItem::KnownBatchItem(known), BatchLookupItem::UnknownBatchItem(unknown)] => {
            known.chart.hash == HASH && unknown.md5 == md5
        }
        _ => false,
    };
    called("lookUpCharts", is_expected);
    called("getChartPreview", charts::get_chart_preview(api, HASH, None).await?.keys == 4);
    let variants = charts::list_variant_charts(api, VARIANT, None, None).await?;
    called("listVariantCharts", variants.items[0].hash == HASH);
    Ok(())
}

async fn call_chartsets(api: &Configuration, staying: &Configuration) -> Done {
    let page = chartsets::list_chartsets(
        api,
        None,
        None,
        Some(vec![4, 7]),
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        Some(vec!["rating".to_owned(), "updated".to_owned()]),
        None,
        Some(SortOrder::Asc),
        None,
        Some(1),
        Some("start"),
        None,
    )
    .await?;
    let has_updated = page.items.iter().all(|item| item.updated_at_ms.is_some());
    called("listChartsets", page.items.len() == 1 && page.next_after.is_some() && has_updated);
    let detail = chartsets::get_chartset(api, CHARTSET, None, None).await?;
    called("getChartset", detail.charts.iter().any(|entry| entry.chart.hash == HASH));
    let random = chartsets::choose_chartset(
        api,
        None,
        Some("keys=7"),
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
    )
    .await?;
    called("chooseChartset", random.keys.contains(&7));
    called("goToSource", chartsets::go_to_source(staying, CHARTSET).await.is_ok());
    called("goToChartSource", charts::go_to_chart_source(staying, HASH).await.is_ok());
    Ok(())
}

async fn call_bulk(api: &Configuration) -> Done {
    let changes = bulk::list_changes(api, None, None, Some(1000), None, None).await?;
    let has_record = changes.items.iter().any(|change| change.chartset.is_some());
    called("listChanges", !changes.has_more && has_record);
    let manifest = bulk::get_export_manifest(api, EXPORT, None).await?;
    called("getExportManifest", manifest.charts > 0);
    called("getLatestExport", bulk::get_latest_export(api).await? == manifest);
    called("getExportSignature", bulk::get_export_signature(api, EXPORT, None).await? == "a signature\n");
    Ok(())
}

async fn call_files(api: &Configuration) -> Done {
    let rox = charts::get_rox_file(api, HASH, None).await?.bytes().await?;
    called("getRoxFile", rox.starts_with(b"ROX\0"));
    let newest = bulk::go_to_hash_filter(api).await?;
    let sequence = newest.url().path().rsplit('/').next().unwrap_or_default().parse()?;
    let newest = newest.bytes().await?;
    called("goToHashFilter", !newest.is_empty());
    let filter = bulk::get_hash_filter(api, sequence, None).await?;
    called("getHashFilter", filter.bytes().await? == newest);
    let starts_with = async |response: Response, start: &[u8]| {
        let content = response.bytes().await?;
        Ok::<_, reqwest::Error>(content.starts_with(start) && content.len() > start.len())
    };
    let zstd = b"\x28\xb5\x2f\xfd";
    let chartsets = bulk::get_exported_chartsets(api, EXPORT, None, None, None).await?;
    called("getExportedChartsets", starts_with(chartsets, zstd).await?);
    let catalogue = bulk::get_exported_catalogue(api, EXPORT, None, None, None).await?;
    called("getExportedCatalogue", starts_with(catalogue, zstd).await?);
    let rox_files = bulk::get_exported_rox_files(api, EXPORT, None, None, None).await?;
    called("getExportedRoxFiles", starts_with(rox_files, b"").await?);
    let part = bulk::get_exported_parquet(api, EXPORT, None, Some("bytes=0-4"), None).await?;
    called("getExportedParquet", part.status() == 206 && starts_with(part, b"PAR1").await?);
    Ok(())
}

async fn call_for_other_statuses(api: &Configuration, limited: &Configuration) -> Done {
    let tag = format!("\"{HASH}\"");
    called("304", charts::get_rox_file(api, HASH, Some(&tag)).await?.status() == 304);
    let malformed = refused(charts::look_up_chart(api, "x", None, None, None).await);
    let problem = malformed.and_then(|response| response.entity);
    let is_malformed = |problem: &Problem| problem.r#type == "/problems/malformed-hash";
    called("400", matches!(problem, Some(LookUpChartError::Status400(problem)) if is_malformed(&problem)));
    let missing = refused(bulk::get_hash_filter(api, 0, None).await);
    let problem = missing.and_then(|response| response.entity);
    called("404", matches!(problem, Some(GetHashFilterError::Status400(problem)) if problem.status == 404));
    charts::get_rox_file(limited, HASH, None).await?;
    let second = refused(charts::get_rox_file(limited, HASH, None).await);
    called("429", second.is_some_and(|response| response.status == 429 && response.entity.is_some()));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done {
    let mut arguments = std::env::args().skip(1);
    let (Some(base), Some(limited)) = (arguments.next(), arguments.next()) else { return Err("URLs".into()) };
    let staying = Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
    let (staying, limited) = (configuration(&base, staying), configuration(&limited, Client::new()));
    let api = configuration(&base, Client::new());
    call_charts(&api).await?;
    call_chartsets(&api, &staying).await?;
    call_bulk(&api).await?;
    call_files(&api).await?;
    call_for_other_statuses(&api, &limited).await
}
