//! Passwords and TLS.

use std::fs;
use std::time::Duration;

use chart_index_ratelimit::redis_link::{LinkState, RedisEndpoint, RedisLink, RedisLinkConfig};
use chart_index_ratelimit::{Group, Limiter};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::support::server::RedisServer;
use crate::support::{address, config, patient, reached};

fn link(url: &str) -> RedisLinkConfig {
    patient(RedisLinkConfig::new(RedisEndpoint::Single(url.parse().unwrap())))
}

async fn decides(link: RedisLinkConfig) -> Limiter {
    let link = RedisLink::connect(link).unwrap();
    reached(&link, LinkState::Up).await;
    let limiter = Limiter::new(config(2, Duration::from_mins(1), "rl2:"), link);
    assert!(limiter.check(Group::Lookup, address(1)).await.is_admitted());
    assert_eq!(limiter.counts().by_redis, 1);
    limiter
}

#[tokio::test]
async fn a_password_url_logs_in() {
    let server = RedisServer::start(&["--requirepass", "hunter2"]);
    decides(link(&format!("redis://:hunter2@127.0.0.1:{}", server.port))).await;
}

#[tokio::test]
async fn a_wrong_password_leaves_redis_away_and_is_not_shown() {
    let server = RedisServer::start(&["--requirepass", "hunter2"]);
    let link = RedisLink::connect(link(&format!("redis://:hunter3@127.0.0.1:{}", server.port))).unwrap();
    reached(&link, LinkState::Away).await;
    assert!(!format!("{link:?}").contains("hunter3"));
    let limiter = Limiter::new(config(2, Duration::from_mins(1), "rl2:"), link);
    assert!(limiter.check(Group::Lookup, address(1)).await.is_admitted());
    assert_eq!(limiter.counts().by_stand_in, 1);
}

#[tokio::test]
async fn tls_is_used_and_the_certificate_is_checked() {
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

    let mut trusting = link(&format!("rediss://localhost:{}", server.port));
    let doubting = trusting.clone();
    trusting.root_certificate = Some(authority.pem().into_bytes());
    decides(trusting).await;
    let doubting = RedisLink::connect(doubting).unwrap();
    reached(&doubting, LinkState::Away).await;
}
