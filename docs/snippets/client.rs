// Uses a chart index: `client https://charts.example`
//
// Cargo.toml: `serde_json = "1"`, `ureq = "3"`

use std::collections::HashMap;
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;

/// A way to reach you, so that the operator can ask before blocking.
const USER_AGENT: &str = "example-client/1.0 (me@example.org)";

struct Index {
    base: String,
    agent: Agent,
    /// URL -> `ETag` and JSON: keep it on disk, so that the next run uses it.
    cache: HashMap<String, (String, Value)>,
}

impl Index {
    fn new(base: String) -> Self {
        let config = Agent::config_builder().user_agent(USER_AGENT).http_status_as_error(false);
        Self { base, agent: config.build().into(), cache: HashMap::new() }
    }

    /// The JSON at a path. Sends the `ETag` of an earlier response, and waits when the limit is exceeded.
    fn get(&mut self, path: &str) -> Result<Value, Box<dyn Error>> {
        let url = format!("{}{path}", self.base);
        loop {
            let mut request = self.agent.get(&url);
            if let Some((tag, _)) = self.cache.get(&url) {
                request = request.header("If-None-Match", tag);
            }
            let mut response = request.call()?;
            let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
            let (tag, retry_after) = (header("ETag").map(str::to_owned), header("Retry-After"));
            match response.status().as_u16() {
                304 => {
                    eprintln!("not modified"); // the cached JSON is current
                    return Ok(self.cache[&url].1.clone());
                }
                429 | 503 => {
                    let seconds = retry_after.ok_or("no Retry-After")?.parse()?;
                    eprintln!("waiting {seconds} s");
                    sleep(Duration::from_secs(seconds));
                }
                status => {
                    let json: Value = serde_json::from_str(&response.body_mut().read_to_string()?)?;
                    if status != 200 {
                        return Err(format!("{status}: {}", json["detail"]).into());
                    }
                    self.cache.insert(url, (tag.ok_or("no ETag")?, json.clone()));
                    return Ok(json);
                }
            }
        }
    }

    /// All chartsets that match, page by page.
    fn chartsets(&mut self, filters: &str) -> Result<Vec<Value>, Box<dyn Error>> {
        let mut found = Vec::new();
        for page in 1_u64.. {
            let list = self.get(&format!("/api/chartsets?{filters}&page={page}"))?;
            found.extend(list["items"].as_array().ok_or("no items")?.iter().cloned());
            if page * list["perPage"].as_u64().ok_or("no perPage")?
                >= list["total"].as_u64().ok_or("no total")?
            {
                break;
            }
        }
        Ok(found)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut index = Index::new(std::env::args().nth(1).ok_or("the address of the index")?);
    let chartsets = index.chartsets("q=harbour&sort=title&perPage=1")?;
    for chartset in &chartsets {
        println!("{} {}", text(&chartset["id"]), text(&chartset["title"]));
    }
    let last = chartsets.last().ok_or("no chartset")?;
    let detail = index.get(&format!("/api/chartsets/{}", text(&last["id"])))?;
    let path = format!("/api/charts/{}", text(&detail["charts"][0]["chart"]["hash"]));
    index.get(&path)?;
    let lookup = index.get(&path)?; // the second time it is not modified
    println!("{} {}", text(&lookup["status"]), text(&lookup["sources"][0]["ref"]));
    Ok(())
}
