//! Signatures of exports.

use std::fs;
use std::path::Path;

use super::exports::{Exported, forged};
use super::*;

/// Key pairs that `minisign -G -W` has written.
pub(crate) const KEYS: [KeyPair; 2] = [
    KeyPair {
        secret: "untrusted comment: minisign encrypted secret key\n\
                 RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAVSF5gRoeeodnjHqRlENtFiVxf14+\
                 jAZyXlSMXREeIYrdReoREJ5g1Jfj9K/0qkUreKcVPSL/YwLIq7Fvpb7BnldwSwTlJQq3AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
                 AAAAAAAAAAA=\n",
        public: "RWRVIXmBGh56h5fj9K/0qkUreKcVPSL/YwLIq7Fvpb7BnldwSwTlJQq3",
    },
    KeyPair {
        secret: "untrusted comment: minisign encrypted secret key\n\
                 RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAwa2h3Sjt/U/9g7jLA8gYHa5ErtzQ\
                 Dd8H6Qxw137OI57AEnKeBnfylRpoS784slhbJ4OGmqRn1d2Hvkx/M3MF5h+T09ZMh3ioAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
                 AAAAAAAAAAA=\n",
        public: "RWTBraHdKO39TxpoS784slhbJ4OGmqRn1d2Hvkx/M3MF5h+T09ZMh3io",
    },
];

pub(crate) struct KeyPair {
    secret: &'static str,
    pub(crate) public: &'static str,
}

impl KeyPair {
    /// Writes the secret key into a folder, and returns the path.
    pub(crate) fn secret_in(&self, folder: &Path) -> String {
        let path = folder.join("secret.key");
        fs::write(&path, self.secret).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn only_signed_exports_are_imported() {
    let exported = Exported::shared().await;
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = &KEYS;
    let (key, exports) = (old.secret_in(folder.path()), folder.path().join("exports"));
    let arguments = ["export", exports.to_str().unwrap(), "--rox", "--sign-key", &key];
    let printed = exported.original.database.run(&arguments);
    let signed = Path::new(printed.split_once(": ").unwrap().0);
    let with_space = forged(signed, |export| {
        let manifest = fs::read_to_string(export.join("manifest.json")).unwrap();
        fs::write(export.join("manifest.json"), manifest + " ").unwrap();
    });
    let unsigned = forged(signed, |export| fs::remove_file(export.join("manifest.json.minisig")).unwrap());
    let restored = Database::new().await;
    let import = |export: &Path, keys: &[&str]| {
        let keys = keys.iter().flat_map(|key| ["--verify-key", key]);
        let arguments = ["import", export.to_str().unwrap()].into_iter().chain(keys);
        restored.try_run(&arguments.collect::<Vec<_>>())
    };
    for (export, keys, message) in [
        (signed, &[new.public][..], "is not by the key that was given"),
        (with_space.path(), &[new.public, old.public], "is not the signature of manifest.json"),
        (unsigned.path(), &[old.public], "the export has no signature manifest.json.minisig"),
        (signed, &["RWQ"], "a public key is the second line"),
    ] {
        let run = import(export, keys);
        assert!(run.code != Some(0) && run.stderr.contains(message), "{message}: {}", run.stderr);
    }
    assert_eq!(restored.0.psql("SELECT count(*) FROM charts"), "0");
    let run = import(signed, &[new.public, old.public]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let run = import(with_space.path(), &[]);
    assert_eq!(run.code, Some(0), "without a key signatures are ignored: {}", run.stderr);
}

#[tokio::test]
async fn keys_that_cannot_sign_are_refused() {
    let database = Database::new().await;
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("public.key");
    fs::write(&key, format!("untrusted comment: x\n{}\n", KEYS[0].public)).unwrap();
    let exports = folder.path().join("exports");
    let run = database.try_run(&["export", exports.to_str().unwrap(), "--sign-key", key.to_str().unwrap()]);
    assert_eq!((run.code, run.stderr.contains("is no secret key")), (Some(2), true), "{}", run.stderr);
    assert!(!exports.exists());
}
