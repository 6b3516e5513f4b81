//! The targets of each scenario with their requests. The first one is what the others are compared with.

use std::rc::Rc;

use anyhow::{Context, Result, bail, ensure};
use chart_index_tests::{Client, Response};

use super::Setup;
use crate::generator::{RequestLine, Wrk};
use crate::round::Variant;
use crate::scenario::{Received, Request, Requests, Scenario, own_address};
use crate::target::{CachedFile, SearchNode, ServiceForm, Target, files, service};

/// Client addresses.
const CLIENTS: u32 = 1_000_000;
/// Requests whose responses are compared before the rounds.
const CHECKED: usize = 1_000;
/// The `Accept-Encoding` of a browser.
const BROWSER_ENCODINGS: &str = "gzip, deflate, br, zstd";

impl Setup {
    /// Starts the targets of a scenario.
    pub(super) async fn variants(&self, scenario: Scenario) -> Result<Vec<Variant>> {
        let requests = scenario.requests(&self.catalogue)?;
        let variants = match scenario {
            Scenario::LookupHot | Scenario::Rox6k | Scenario::Rox60k => self.cached(&requests).await?,
            Scenario::LookupNotModified => self.not_modified(&requests).await?,
            Scenario::LookupZipf | Scenario::LookupMiss | Scenario::UnknownHashes => {
                self.without_files(scenario, &requests).await?
            }
            Scenario::ListHot | Scenario::ListZipf | Scenario::ListMiss | Scenario::DeepPages => {
                self.lists(scenario, &requests)?
            }
            Scenario::Browse | Scenario::Abuser | Scenario::Overload => {
                bail!("{} is an open loop: `load latency {0}`", scenario.name())
            }
        };
        let is_cold = scenario.is_cold();
        Ok(variants.into_iter().map(|variant| if is_cold { variant.cold() } else { variant }).collect())
    }

    /// The service in this form, with the requests of a scenario. Unless these are not to be cached, it has
    /// served each of them once.
    pub(crate) async fn service_variant(&self, scenario: Scenario, form: &ServiceForm) -> Result<Variant> {
        let service = Rc::new(self.service(form)?);
        let requests = scenario.requests(&self.catalogue)?.for_target(&service).await?;
        if !scenario.is_cold() {
            let client = Client::new(service.address);
            for (number, request) in requests.distinct.iter().take(CHECKED).enumerate() {
                client.get_with(&request.path, &[("x-forwarded-for", &own_address(number))]).await;
            }
        }
        self.variant(service.name, &service, &requests)
    }

    /// The targets of an open loop, and the requests per second that the service can serve over the connections
    /// of wrk.
    pub(crate) async fn open_loop_targets(&self, scenario: Scenario) -> Result<(Vec<Rc<Target>>, f64)> {
        let requests = scenario.requests(&self.catalogue)?;
        let form = ServiceForm {
            small_cache: scenario.is_cold(),
            meilisearch: self.search_node.as_ref().map(SearchNode::url),
            ..ServiceForm::default()
        };
        let service = Rc::new(self.service(&form)?);
        let resolved = requests.for_target(&service).await?;
        let variant = self.variant("service", &service, &resolved)?;
        variant.run(1, 0).await?;
        let sent = variant.run(1, 1).await?;
        let ceiling = crate::cpu::ratio(sent.requests, 1) / sent.seconds;
        let mut targets = Vec::new();
        if matches!(scenario, Scenario::LookupHot | Scenario::Rox6k | Scenario::Rox60k) {
            targets.push(Rc::new(files(&self.responses(&service, &requests).await?, &self.cores)?));
        }
        targets.push(service);
        Ok((targets, ceiling))
    }

    /// nginx with files, and the service without and with Redis, all of which return the same bytes.
    async fn cached(&self, requests: &Requests) -> Result<Vec<Variant>> {
        let service = Rc::new(self.service(&ServiceForm::default())?);
        let local = ServiceForm { local_window: true, ..ServiceForm::default() };
        let targets = [
            Rc::new(files(&self.responses(&service, requests).await?, &self.cores)?),
            Rc::new(self.service(&local)?),
            service,
        ];
        check_same_bodies(&targets, requests).await?;
        targets.iter().map(|target| self.variant(target.name, target, requests)).collect()
    }

    /// 304 by nginx, and 200 and 304 by the service.
    async fn not_modified(&self, requests: &Requests) -> Result<Vec<Variant>> {
        let service = Rc::new(self.service(&ServiceForm::default())?);
        let nginx = Rc::new(files(&self.responses(&service, requests).await?, &self.cores)?);
        let conditional = [requests.for_target(&nginx).await?, requests.for_target(&service).await?];
        Ok(vec![
            self.variant("nginx, 304", &nginx, &conditional[0])?,
            self.variant("nginx, 200", &nginx, requests)?,
            self.variant("service, 304", &service, &conditional[1])?,
            self.variant("service, 200", &service, requests)?,
        ])
    }

    /// The service without and with Redis. nginx would need a file for each chart.
    async fn without_files(&self, scenario: Scenario, requests: &Requests) -> Result<Vec<Variant>> {
        let with_redis = ServiceForm { small_cache: scenario.is_cold(), ..ServiceForm::default() };
        let local = ServiceForm { local_window: true, ..with_redis.clone() };
        let targets = [Rc::new(self.service(&local)?), Rc::new(self.service(&with_redis)?)];
        check_same_bodies(&targets, requests).await?;
        targets.iter().map(|target| self.variant(target.name, target, requests)).collect()
    }

    /// The service with Meilisearch, cached lists also with gzip.
    fn lists(&self, scenario: Scenario, requests: &Requests) -> Result<Vec<Variant>> {
        let node = self.search_node.as_ref().context("Meilisearch is not on the PATH")?;
        let form = ServiceForm {
            small_cache: scenario.is_cold(),
            meilisearch: Some(node.url()),
            ..ServiceForm::default()
        };
        let service = Rc::new(self.service(&form)?);
        let mut variants = vec![self.variant("service", &service, requests)?];
        if scenario == Scenario::ListHot {
            let encoded = requests.clone().with_header("Accept-Encoding", BROWSER_ENCODINGS);
            variants.push(self.variant("service, gzip", &service, &encoded)?);
        }
        Ok(variants)
    }

    fn service(&self, form: &ServiceForm) -> Result<Target> {
        service(&self.programs, &self.catalogue, form, &self.cores)
    }

    fn variant(&self, name: &'static str, target: &Rc<Target>, requests: &Requests) -> Result<Variant> {
        let lines =
            requests.sequence().map(|request| RequestLine { path: &request.path, headers: &request.headers });
        let wrk = Wrk::new(target.address, lines, CLIENTS, self.connections, &self.cores)?;
        Ok(Variant::new(name, Rc::clone(target), wrk))
    }

    /// The responses of the service, for nginx to serve as files.
    async fn responses(&self, target: &Target, requests: &Requests) -> Result<Vec<CachedFile>> {
        let client = Client::new(target.address);
        let mut files = Vec::new();
        for (number, request) in requests.distinct.iter().enumerate() {
            let response = client.get_with(&request.path, &[("x-forwarded-for", &own_address(number))]).await;
            check(request, &response).with_context(|| format!("{}{}", target.name, request.path))?;
            files.push(CachedFile { path: request.path.clone(), response });
        }
        Ok(files)
    }
}

/// Compares the first responses of targets, which also fills their caches.
async fn check_same_bodies(targets: &[Rc<Target>], requests: &Requests) -> Result<()> {
    let clients: Vec<Client> = targets.iter().map(|target| Client::new(target.address)).collect();
    for (number, request) in requests.distinct.iter().take(CHECKED).enumerate() {
        let mut expected: Option<Response> = None;
        for (target, client) in targets.iter().zip(&clients) {
            let response = client.get_with(&request.path, &[("x-forwarded-for", &own_address(number))]).await;
            ensure!(response.status == 200, "{}: {}: {}", target.name, request.path, response.status);
            let expected = expected.get_or_insert_with(|| response.clone());
            ensure!(
                expected.body == response.body,
                "{} and {} differ: {}",
                targets[0].name,
                target.name,
                request.path
            );
        }
    }
    Ok(())
}

fn check(request: &Request, response: &Response) -> Result<()> {
    request.expected.check(&Received {
        status: response.status.as_u16(),
        tag: response.header("etag"),
        location: response.header("location"),
        body: &response.body,
        is_encoded: !response.header("content-encoding").is_empty(),
    })
}
