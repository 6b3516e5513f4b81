//! Finds charts by what clients hold instead of a note hash.

use std::collections::HashMap;

use chart_index_domain::{FileMd5, NoteHash, ReadError};

use crate::Store;
use crate::connection::server::ReadLength;

/// What a game identifies a chart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChartIdentifier {
    /// The MD5 digest of its file, or of an earlier version of it.
    Md5(FileMd5),
    /// The id of the chart in the first game.
    AlphaBeatmapId(u64),
}

/// Selects the charts with these identifiers, of 1,000 whose files claim one: for an id, of the best sources.
const IDENTIFY_CHARTS: &str = "SELECT asked.alias, NULL::bigint, found.hash
     FROM (SELECT DISTINCT unnest($1::bytea[]) AS alias) AS asked CROSS JOIN LATERAL (
         SELECT chart.hash FROM (
             SELECT DISTINCT chart_hash FROM (
                 SELECT chart_hash FROM chart_aliases WHERE alias = asked.alias LIMIT 1000
             ) AS first
         ) AS candidate JOIN known_charts AS chart ON chart.hash = candidate.chart_hash
         ORDER BY chart.first_seen_ms, chart.hash LIMIT 1
     ) AS found
     UNION ALL
     SELECT NULL, asked.id, found.hash
     FROM (SELECT DISTINCT unnest($2::bigint[]) AS id) AS asked CROSS JOIN LATERAL (
         SELECT chart.hash FROM (
             SELECT chartset_id, chart_hash, source_rank FROM chartset_charts
             WHERE alpha_beatmap_id = asked.id ORDER BY source_rank, chartset_id LIMIT 1000
         ) AS member
         JOIN chartsets AS chartset ON chartset.id = member.chartset_id
         JOIN charts AS chart ON chart.hash = member.chart_hash
         WHERE chart.removed_at_ms IS NULL AND chartset.shown AND chartset.source_kind IS DISTINCT FROM 'betaPack'
         ORDER BY member.source_rank, member.chartset_id LIMIT 1
     ) AS found";

/// One of the identifiers, and the hash of its chart.
type IdentifierRow = (Option<[u8; 16]>, Option<i64>, [u8; 32]);

impl Store {
    /// Returns the hashes of the known charts with these identifiers.
    ///
    /// Files of several charts may claim the same id: the chart is then the one whose set has the best source,
    /// as in a lookup. Only hostile files of different charts have the same digest, of which the chart that was
    /// stored first is returned.
    pub async fn identify(
        &self,
        identifiers: &[ChartIdentifier],
    ) -> Result<HashMap<ChartIdentifier, NoteHash>, ReadError> {
        let (mut md5s, mut ids) = (Vec::new(), Vec::new());
        for identifier in identifiers {
            match identifier {
                ChartIdentifier::Md5(md5) => md5s.push(md5.as_bytes()),
                // No chart has an id that PostgreSQL cannot store.
                ChartIdentifier::AlphaBeatmapId(id) => ids.extend(i64::try_from(*id)),
            }
        }
        let query = || sqlx::query_as(IDENTIFY_CHARTS).bind(&md5s).bind(&ids);
        let parse = |(md5, id, hash): IdentifierRow| {
            let id = || ChartIdentifier::AlphaBeatmapId(id.unwrap_or_default().unsigned_abs());
            let identifier = md5.map_or_else(id, |md5| ChartIdentifier::Md5(FileMd5::from_bytes(md5)));
            Ok((identifier, NoteHash::from_bytes(hash)))
        };
        self.read_rows("identify charts", ReadLength::Short, query, parse).await
    }
}
