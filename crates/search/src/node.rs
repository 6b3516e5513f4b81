//! One node: its indexes, its state, its features.

use std::collections::BTreeMap;
use std::num::ParseIntError;
use std::time::Duration;

use chart_index_domain::search::Checkpoint;
use meilisearch_sdk::client::Client;
use meilisearch_sdk::errors::Error as SdkError;
use meilisearch_sdk::indexes::Index;
use meilisearch_sdk::request::{HttpClient as _, Method};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;

use crate::http::{Failure, Transport};
use crate::settings::FEATURES;
use crate::{IndexState, NodeConfig, SearchError, Target};

/// How long a small request that reads may take, where the node has no shorter time for all of them.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The id of the document of a state index that says what the other index holds.
pub(crate) const STATE_ID: &str = "state";

/// A node and the way to it. Clones share the connections.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) config: NodeConfig,
    pub(crate) client: Client<Transport>,
    pub(crate) transport: Transport,
}

/// The document of a state index. The checkpoint and the history are text: JSON numbers of Meilisearch end at 53 bits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StateDocument {
    id: String,
    checkpoint: String,
    /// Versions before this attribute ignore it, and leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    history: Option<String>,
    format: u32,
}

impl StateDocument {
    pub(crate) fn new(state: IndexState) -> Self {
        let IndexState { checkpoint, history, format } = state;
        let history = history.map(|history| history.to_string());
        Self { id: STATE_ID.to_owned(), checkpoint: checkpoint.to_string(), history, format }
    }
}

impl Node {
    /// A node whose requests take no longer than that.
    pub(crate) fn new(config: &NodeConfig, timeout: Duration) -> Result<Self, SearchError> {
        let transport = Transport::new(config, timeout)?;
        // The transport itself sends the key.
        let client = Client::new_with_client(config.url.as_str(), None::<String>, transport.clone());
        Ok(Self { config: config.clone(), client, transport })
    }

    /// The uid of the index of chartsets.
    pub(crate) fn uid(&self, target: Target) -> String {
        match target {
            Target::Live => self.config.index.clone(),
            Target::Rebuild => format!("{}_rebuild", self.config.index),
        }
    }

    /// The uid of the index that says what the other one holds, and what it lacks ([`crate::Quarantined`]).
    pub(crate) fn state_uid(&self, target: Target) -> String {
        format!("{}_state", self.uid(target))
    }

    pub(crate) fn index(&self, target: Target) -> Index<Transport> {
        self.client.index(self.uid(target))
    }

    /// `GET` of a route that the SDK does not know, or whose answer it reads into less than there is.
    pub(crate) async fn get<Output: DeserializeOwned + Send + 'static>(
        &self,
        operation: &'static str,
        route: &str,
    ) -> Result<Output, SearchError> {
        let url = format!("{}/{route}", self.config.url);
        let request = self.transport.request::<(), (), Output>(&url, Method::Get { query: () }, 200);
        let response = timeout(READ_TIMEOUT, request).await.unwrap_or_else(|_| {
            self.transport.discard_connections();
            Err(SdkError::Other(Failure::TimedOut(READ_TIMEOUT).into()))
        });
        response.map_err(SearchError::of(operation))
    }

    /// What an index says of itself; `None` where there is none, or one that does not say.
    pub(crate) async fn state(&self, target: Target) -> Result<Option<IndexState>, SearchError> {
        const OPERATION: &str = "read the state of an index";
        let route = format!("indexes/{}/documents/{STATE_ID}", self.state_uid(target));
        let document: StateDocument = match self.get(OPERATION, &route).await {
            Ok(document) => document,
            Err(error) if error.is_index_not_found() || error.is_document_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let nonsense = |error: ParseIntError| SearchError::nonsense(OPERATION, error);
        let checkpoint = Checkpoint(document.checkpoint.parse().map_err(nonsense)?);
        let history = document.history.map(|history| history.parse().map_err(nonsense)).transpose()?;
        Ok(Some(IndexState { checkpoint, history, format: document.format }))
    }

    /// The experimental features that this program uses and the node has, each with whether it is on. `None` where the
    /// key may not read them (the action `experimental.get`).
    pub(crate) async fn features(&self) -> Result<Option<BTreeMap<String, bool>>, SearchError> {
        let read = self.get("read the features of a node", "experimental-features").await;
        let all: BTreeMap<String, Value> = match read {
            Err(error) if error.is_forbidden() => return Ok(None),
            read => read?,
        };
        let ours = all.into_iter().filter(|(name, _)| FEATURES.contains(&name.as_str()));
        Ok(Some(ours.map(|(name, value)| (name, value == Value::Bool(true))).collect()))
    }

    /// Switches on every feature that this program uses and the node has.
    pub(crate) async fn switch_on_features(&self) -> Result<(), SearchError> {
        // Where they cannot be read, they may not be on either: Meilisearch says whether the key may switch them.
        let unknown = || FEATURES.map(|name| (name.to_owned(), false)).into();
        let off = self.features().await?.unwrap_or_else(unknown).into_iter().filter(|(_, on)| !on);
        let body: BTreeMap<String, bool> = off.map(|(name, _)| (name, true)).collect();
        if body.is_empty() {
            return Ok(());
        }
        let url = format!("{}/experimental-features", self.config.url);
        let request = Method::Patch { query: (), body: &body };
        let answer = self.transport.request::<(), _, Value>(&url, request, 200).await;
        answer.map(drop).map_err(SearchError::of("switch on features of a node"))
    }
}
