//! One node: its indexes, the state of an index, its experimental features.

use std::collections::BTreeMap;
use std::time::Duration;

use chart_index_domain::Position;
use meilisearch_sdk::client::Client;
use meilisearch_sdk::errors::Error as SdkError;
use meilisearch_sdk::indexes::Index;
use meilisearch_sdk::request::{HttpClient as _, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::index_state::{STATE_ID, StateDocument};
use crate::settings::FEATURES;
use crate::transport::{Transport, TransportError};
use crate::{NodeConfig, SearchError, Target};

/// Timeout of a small read, unless the timeout of all requests to the node is shorter.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A client of one node. Clones share its connections.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) config: NodeConfig,
    pub(crate) client: Client<Transport>,
    pub(crate) transport: Transport,
}

impl Node {
    /// A client with a timeout for every request.
    pub(crate) fn new(config: &NodeConfig, timeout: Duration) -> Result<Self, SearchError> {
        let transport = Transport::new(config, timeout)
            .map_err(|error| SearchError::from_transport("configure a node", error))?;
        // The transport sends the API key.
        let client = Client::new_with_client(config.url.as_str(), None::<String>, transport.clone());
        Ok(Self { config: config.clone(), client, transport })
    }

    /// The uid of the index of chartsets.
    pub(crate) fn uid(&self, target: Target) -> String {
        match target {
            Target::Live => self.config.index_uid(),
            Target::Rebuild => format!("{}_rebuild", self.config.index_uid()),
        }
    }

    /// The uid of the index with the position and the quarantine ([`crate::Quarantined`]) of the index of
    /// chartsets.
    pub(crate) fn state_uid(&self, target: Target) -> String {
        format!("{}_state", self.uid(target))
    }

    pub(crate) fn index(&self, target: Target) -> Index<Transport> {
        self.client.index(self.uid(target))
    }

    /// Sends a `GET` request to a route that the SDK lacks, or of which its types drop fields.
    pub(crate) async fn get<Output: DeserializeOwned + Send + 'static>(
        &self,
        operation: &'static str,
        route: &str,
    ) -> Result<Output, SearchError> {
        let url = format!("{}/{route}", self.config.url);
        let request = self.transport.request::<(), (), Output>(&url, Method::Get { query: () }, 200);
        let response = timeout(READ_TIMEOUT, request).await.unwrap_or_else(|_| {
            self.transport.discard_connections();
            Err(SdkError::Other(TransportError::TimedOut(READ_TIMEOUT).into()))
        });
        response.map_err(SearchError::from_sdk(operation))
    }

    /// The position of an index; `None` where there is no index, or none with a position.
    pub(crate) async fn read_position(&self, target: Target) -> Result<Option<Position>, SearchError> {
        const OPERATION: &str = "read the position of an index";
        let route = format!("indexes/{}/documents/{STATE_ID}", self.state_uid(target));
        let document: StateDocument = match self.get(OPERATION, &route).await {
            Ok(document) => document,
            Err(error) if error.is_index_not_found() || error.is_document_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        document.position().map(Some).map_err(|error| SearchError::invalid_response(OPERATION, error))
    }

    /// The experimental features that this program uses, of those that the node knows: whether each is on.
    /// `None` where the API key may not read them (it lacks the action `experimental.get`).
    pub(crate) async fn read_features(&self) -> Result<Option<BTreeMap<String, bool>>, SearchError> {
        let read = self.get("read the features of a node", "experimental-features").await;
        let all: BTreeMap<String, Value> = match read {
            Err(error) if error.is_forbidden() => return Ok(None),
            read => read?,
        };
        let ours = all.into_iter().filter(|(name, _)| FEATURES.contains(&name.as_str()));
        Ok(Some(ours.map(|(name, value)| (name, value == Value::Bool(true))).collect()))
    }

    /// The version of Meilisearch, such as `1.50.2`; `None` where the API key may not read it (it lacks the
    /// action `version`).
    pub(crate) async fn read_version(&self) -> Result<Option<String>, SearchError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            pkg_version: String,
        }
        match self.get::<Version>("read the version of a node", "version").await {
            Err(error) if error.is_forbidden() => Ok(None),
            version => Ok(Some(version?.pkg_version)),
        }
    }

    /// Switches on every feature that this program uses and the node knows.
    pub(crate) async fn enable_features(&self) -> Result<(), SearchError> {
        // Features that cannot be read may be off: Meilisearch checks whether the key may switch them on.
        let unknown = || FEATURES.map(|name| (name.to_owned(), false)).into();
        let off = self.read_features().await?.unwrap_or_else(unknown).into_iter().filter(|(_, on)| !on);
        let body: BTreeMap<String, bool> = off.map(|(name, _)| (name, true)).collect();
        if body.is_empty() {
            return Ok(());
        }
        let url = format!("{}/experimental-features", self.config.url);
        let request = Method::Patch { query: (), body: &body };
        let response = self.transport.request::<(), _, Value>(&url, request, 200).await;
        response.map(drop).map_err(SearchError::from_sdk("switch on the features of a node"))
    }
}
