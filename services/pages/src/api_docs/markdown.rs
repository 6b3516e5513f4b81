//! Markdown of the repository as HTML.

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd, html};

use super::reference::{Example, anchor};

/// The HTML of a text of a document or of CHANGELOG.md.
///
/// Headings have the anchors that forges make. Links to files of the repository become plain text. An example
/// of a GET is followed by a link that sends it. Raw HTML is shown as text.
pub(crate) fn to_html(text: &str) -> String {
    let mut page = String::with_capacity(2 * text.len());
    let events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let mut rewriter = Rewriter::default();
    let rewritten =
        events.iter().enumerate().flat_map(|(index, event)| rewriter.rewrite(event, &events[index..]));
    html::push_html(&mut page, rewritten);
    page.replace("<th>", "<th scope=\"col\">")
}

/// The HTML of a text of one line, without a paragraph around it.
pub(crate) fn inline_html(text: &str) -> String {
    let html = to_html(text);
    let line = html.trim();
    line.strip_prefix("<p>").and_then(|line| line.strip_suffix("</p>")).unwrap_or(line).to_owned()
}

/// Rewrites the events of a document, one after the other.
#[derive(Default)]
struct Rewriter {
    /// The text of the example that the events are in.
    example: Option<String>,
    /// Whether the events are in a link that is left out.
    is_in_dropped_link: bool,
}

impl Rewriter {
    /// What takes the place of an event, the first of these.
    fn rewrite<'a>(&mut self, event: &Event<'a>, following: &[Event<'a>]) -> Vec<Event<'a>> {
        match event {
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let id = Some(anchor(&heading_text(following)).into());
                let (classes, attrs) = (classes.clone(), attrs.clone());
                vec![Event::Start(Tag::Heading { level: *level, id, classes, attrs })]
            }
            Event::Start(Tag::Link { dest_url, .. })
                if !dest_url.starts_with("https://") && !dest_url.starts_with('/') =>
            {
                self.is_in_dropped_link = true;
                Vec::new()
            }
            Event::End(TagEnd::Link) if std::mem::take(&mut self.is_in_dropped_link) => Vec::new(),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) if &**language == "http" => {
                self.example = Some(String::new());
                vec![event.clone()]
            }
            Event::Text(text) => {
                if let Some(example) = &mut self.example {
                    example.push_str(text);
                }
                vec![event.clone()]
            }
            Event::End(TagEnd::CodeBlock) => {
                let link = self.example.take().map(|block| live_link(&block)).unwrap_or_default();
                std::iter::once(event.clone()).chain(link).collect()
            }
            Event::Html(raw) | Event::InlineHtml(raw) => vec![Event::Text(raw.clone())],
            _ => vec![event.clone()],
        }
    }
}

/// The text of the heading with which these events begin.
fn heading_text(events: &[Event<'_>]) -> String {
    let inside = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    inside
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(&**text),
            _ => None,
        })
        .collect()
}

/// A link that sends the request of an example, if it is a GET.
fn live_link(block: &str) -> Vec<Event<'static>> {
    let Some(example) = Example::parse(block).filter(|example| example.method == "GET") else {
        return Vec::new();
    };
    let link = Tag::Link {
        link_type: LinkType::Inline,
        dest_url: example.target.to_owned().into(),
        title: "".into(),
        id: "".into(),
    };
    let (start, end) = (Event::Start(Tag::Paragraph), Event::End(TagEnd::Paragraph));
    let text = format!("Send GET {}", example.target).into();
    vec![start, Event::Start(link), Event::Text(text), Event::End(TagEnd::Link), end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_anchors() {
        assert_eq!(to_html("## A `b` c"), "<h2 id=\"a-b-c\">A <code>b</code> c</h2>\n");
    }

    #[test]
    fn links_to_files_are_text() {
        let html = to_html("[a](/docs#errors) [b](../crates/x.rs) [c](https://e.example)");
        let expected = "<p><a href=\"/docs#errors\">a</a> b <a href=\"https://e.example\">c</a></p>\n";
        assert_eq!(html, expected);
    }

    #[test]
    fn example_of_a_get_is_followed_by_its_link() {
        let html = to_html("```http\nGET /api/chartsets?q=a&page=2\n\nHTTP/1.1 200 OK\n```\n");
        assert!(html.contains("<a href=\"/api/chartsets?q=a&amp;page=2\">Send GET "), "{html}");
        let html = to_html("```http\nOPTIONS /api/chartsets\n\nHTTP/1.1 204 No Content\n```\n");
        assert!(!html.contains("href"), "{html}");
    }

    #[test]
    fn raw_html_is_text_and_header_cells_have_a_scope() {
        assert_eq!(to_html("a <b>c</b>"), "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n");
        assert!(to_html("| a |\n|---|\n| b |\n").contains("<th scope=\"col\">a</th>"));
    }
}
