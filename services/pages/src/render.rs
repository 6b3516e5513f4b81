//! Renders templates.

use askama::Template;
use chart_index_domain::ReadError;

/// Renders a template, as the last step of a read.
///
/// # Errors
///
/// [`ReadError::Failed`], which does not happen: the templates write to memory, and their values to text.
pub(crate) fn render(template: &impl Template) -> Result<String, ReadError> {
    template.render().map_err(|error| ReadError::Failed { operation: "render page", source: error.into() })
}
