//! Invariants of `docker-compose.yml`.

use serde_json::Value;

use super::compose;

#[test]
fn every_image_has_a_version() {
    let compose = compose();
    let services = compose["services"].as_object().expect("services");
    assert!(services.len() >= 3, "{services:?}");
    for (name, service) in services {
        let image = service["image"].as_str().unwrap_or_default();
        let version = image.split_once(':').map(|(_, version)| version);
        assert!(version.is_some_and(|version| version != "latest"), "{name}: {:?}", Value::from(image));
    }
}
