//! The programs of the image, run with its configuration.

use std::path::Path;
use std::time::Duration;

use chart_index_tests::{PrivateRedis, Service, TestDatabase, TestRedis, fixed_address, samples, within};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::container::{Container, Image, Network};
use crate::contents::PROGRAMS;
use crate::run;

/// Maximum time until a replica is ready.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The certificate authorities of the image.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Runs both programs with PostgreSQL and Redis, without them, and with Redis over TLS.
pub(crate) async fn check(image: &Image) {
    for name in PROGRAMS {
        let program = format!("/usr/local/bin/{name}");
        let version = run(&mut image.command(&[&program, "--version"], &Container::default()));
        assert_eq!(version.trim(), format!("{name} {}", env!("CARGO_PKG_VERSION")));
    }
    let database = TestDatabase::create().await;
    check_with_servers(image, &database).await;
    check_without_servers(image);
    check_tls(image, &database).await;
}

/// The commands that an operator begins with, and a replica until its end.
async fn check_with_servers(image: &Image, database: &TestDatabase) {
    let redis = TestRedis::create();
    let servers = [("DATABASE_URL", database.url()), ("REDIS_URL", redis.url())];
    let samples = samples();
    let indexer = Container { variables: &servers, mounts: &[(&samples, "/charts")], ..Container::default() };
    for arguments in [&["migrate"][..], &["ingest", "/charts"], &["verify"]] {
        let program = [&["/usr/local/bin/chart-indexer"], arguments].concat();
        run(&mut image.command(&program, &indexer));
    }

    // On ports of its own, since other tests run at the same time.
    let ports = [fixed_address(), fixed_address()].map(|address| format!("0.0.0.0:{}", address.port()));
    let listen = [("LISTEN", &*ports[0]), ("ADMIN_LISTEN", &ports[1]), ("DRAIN_DELAY_MS", "0")];
    let variables = [&servers[..], &listen, &[("LOG_FORMAT", "json")]].concat();
    let container = Container { variables: &variables, ..Container::default() };
    let mut service = start(image, &container);
    within(TIMEOUT, async || is_healthy(image, &container).then_some(())).await;
    let list = service.client().get("/api/chartsets").await.json();
    assert!(list["total"].as_u64().is_some_and(|total| total > 0), "{list}");
    assert_unprivileged(service.process_id());
    service.terminate();
    assert_eq!(service.wait(), Some(0));
    assert!(!is_healthy(image, &container), "no replica responds");
}

/// A replica that reaches no server, with nothing but the configuration of the image: it listens on its default
/// ports, is alive and not ready.
fn check_without_servers(image: &Image) {
    let variables = [("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none"), ("LOG_FORMAT", "json")];
    let container = Container { variables: &variables, network: Network::Own, ..Container::default() };
    let service = start(image, &container);
    assert_eq!(service.address().to_string(), "0.0.0.0:8080");
    assert_eq!(service.private_address().to_string(), "0.0.0.0:9090");
    let beside = Container { network: Network::Of(service.process_id()), ..container };
    run(&mut image.command(&["/usr/local/bin/chart-index", "healthcheck", "livez"], &beside));
    assert!(!is_healthy(image, &beside), "not ready");
}

/// The programs trust the certificate authorities of the base: with one more among them, Redis is reached over
/// TLS.
async fn check_tls(image: &Image, database: &TestDatabase) {
    let files = tempfile::tempdir().expect("a temporary folder");
    let authorities = files.path().join("authorities.pem");
    let redis = tls_redis(files.path(), &image.root.join(&AUTHORITIES[1..]), &authorities);
    let url = format!("rediss://127.0.0.1:{}", redis.port);
    let ports = [fixed_address(), fixed_address()].map(|address| address.to_string());
    let variables = [
        ("DATABASE_URL", database.url()),
        ("REDIS_URL", &url),
        ("LISTEN", &ports[0]),
        ("ADMIN_LISTEN", &ports[1]),
        ("LOG_FORMAT", "json"),
    ];
    let mounts = [(&*authorities, AUTHORITIES)];
    let service = start(image, &Container { variables: &variables, mounts: &mounts, ..Container::default() });
    let counted = async || {
        service.client().get("/api/chartsets").await;
        let keys = redis.cli(&["--tls", "--insecure", "DBSIZE"]);
        (keys != "0").then_some(())
    };
    within(TIMEOUT, counted).await;
}

/// A Redis server whose certificate is signed by an authority of this test. Writes the authorities of the image
/// and this authority to a file.
fn tls_redis(files: &Path, of_image: &Path, authorities: &Path) -> PrivateRedis {
    let mut authority = CertificateParams::new([]).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("a certificate");
    let of_image = std::fs::read_to_string(of_image).expect("the image has certificate authorities");
    std::fs::write(authorities, format!("{of_image}{}", authority.pem())).expect("a file");
    let key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
    let server = server.signed_by(&key, &authority).expect("a certificate");
    let [certificate, key_file] = ["certificate.pem", "key.pem"].map(|name| files.join(name));
    std::fs::write(&certificate, server.pem()).expect("a file");
    std::fs::write(&key_file, key.serialize_pem()).expect("a file");
    let [certificate, key] = [&certificate, &key_file].map(|path| path.to_str().expect("UTF-8"));
    PrivateRedis::start(&["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no"])
}

/// Starts what the image starts, and waits until it listens.
fn start(image: &Image, container: &Container<'_>) -> Service {
    Service::start_command(&mut image.command(&image.default_program(), container))
}

/// Whether the health check of the image succeeds, beside a container with these settings.
fn is_healthy(image: &Image, container: &Container<'_>) -> bool {
    let output = image.command(&image.health_check(), container).output().expect("the check starts");
    match output.status.code() {
        Some(0) => true,
        Some(1) => false,
        code => panic!("exit code {code:?}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Asserts that a process belongs to the user and the group of the image, to no other group, and has no
/// capabilities.
fn assert_unprivileged(process: u32) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a running process");
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a value");
        line.split_whitespace().collect::<Vec<_>>()
    };
    for name in ["Uid:", "Gid:"] {
        assert_eq!(value(name), ["65532"; 4], "{name}");
    }
    assert_eq!(value("Groups:"), [""; 0]);
    for name in ["CapEff:", "CapPrm:"] {
        assert_eq!(value(name), ["0000000000000000"], "{name}");
    }
}
