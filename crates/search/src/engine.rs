//! The Meilisearch engine.

use std::sync::Arc;

use async_trait::async_trait;
use chart_index_domain::ReadError;
use chart_index_domain::search::{
    CatalogueChanges, ChartsetPage, Engine, Generation, SearchIndex, SearchQuery,
};

use crate::{SearchConfig, SearchError};

/// Searches the nodes. Clones share everything; what watches the nodes ends with the last one.
#[derive(Clone)]
pub struct MeilisearchEngine {
    _config: Arc<SearchConfig>,
}

impl MeilisearchEngine {
    /// An engine over those nodes, watched from now on. Nodes that are away come in when they are back.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    #[expect(clippy::unused_async, reason = "a skeleton")]
    pub async fn connect(
        config: SearchConfig,
        changes: Arc<dyn CatalogueChanges>,
    ) -> Result<Self, SearchError> {
        let _ = changes;
        Ok(Self { _config: Arc::new(config) })
    }
}

#[async_trait]
impl SearchIndex for MeilisearchEngine {
    fn engine(&self) -> Engine {
        Engine::Meilisearch
    }

    fn generation(&self) -> Generation {
        Generation(0)
    }

    async fn search(&self, _: &SearchQuery, _: Generation) -> Result<ChartsetPage, ReadError> {
        Err(ReadError::Unavailable {
            operation: "search chartsets",
            source: SearchError::Configuration("not written yet").into(),
        })
    }
}
