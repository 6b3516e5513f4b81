//! Passwords and TLS.

use std::fs;

use chart_index_redis::testing::{RedisServer, patient, wait_for_state};
use chart_index_redis::{CommandError, ConnectionState, RedisConfig, RedisConnection, RedisEndpoint};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use redis::{Value, cmd};

fn config(url: &str) -> RedisConfig {
    patient(RedisConfig::new(RedisEndpoint::Single(url.parse().unwrap())))
}

/// Connects, and runs a command.
async fn connects(config: RedisConfig) {
    let connection = RedisConnection::connect("main", &config).unwrap();
    wait_for_state(&connection, ConnectionState::Connected).await;
    let reply = connection.run(cmd("SET").arg("key").arg("value"), connection.deadline()).await;
    assert_eq!(reply.unwrap(), Value::Okay);
}

#[tokio::test]
async fn password_in_url_is_used() {
    let server = RedisServer::start(&["--requirepass", "hunter2"]);
    connects(config(&format!("redis://:hunter2@127.0.0.1:{}", server.port))).await;
}

#[tokio::test]
async fn wrong_password_makes_redis_unavailable() {
    let server = RedisServer::start(&["--requirepass", "hunter2"]);
    let config = config(&format!("redis://:hunter3@127.0.0.1:{}", server.port));
    let connection = RedisConnection::connect("main", &config).unwrap();
    wait_for_state(&connection, ConnectionState::Unavailable).await;
    assert!(!format!("{connection:?}").contains("hunter3"));
    let reply = connection.run(&cmd("PING"), connection.deadline()).await;
    assert!(matches!(reply, Err(CommandError::Unavailable)), "{reply:?}");
}

#[tokio::test]
async fn tls_checks_the_certificate() {
    let files = tempfile::tempdir().unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| files.path().join(name));
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["localhost".to_owned()]).unwrap();
    fs::write(&certificate, server.signed_by(&server_key, &authority).unwrap().pem()).unwrap();
    fs::write(&key, server_key.serialize_pem()).unwrap();
    let [certificate, key] = [&certificate, &key].map(|path| path.to_str().unwrap());
    let server = RedisServer::start(&[
        "--tls-cert-file",
        certificate,
        "--tls-key-file",
        key,
        "--tls-auth-clients",
        "no",
    ]);

    let untrusted = config(&format!("rediss://localhost:{}", server.port));
    let root_certificate = Some(authority.pem().into_bytes());
    connects(RedisConfig { root_certificate, ..untrusted.clone() }).await;
    let untrusted = RedisConnection::connect("main", &untrusted).unwrap();
    wait_for_state(&untrusted, ConnectionState::Unavailable).await;
}
