//! Signatures of manifests, in the format of minisign (docs/formats/exports.md, "Signature").
//!
//! The format has one algorithm, programs in many languages, and a package in most distributions; `OpenPGP` is
//! large, and Sigstore needs a service.
//!
//! `minisign` signs. It panics on a signature that is too short, so `minisign-verify` verifies.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chart_index_domain::ExportManifest;
use clap::Args;
use minisign::{PublicKey, SecretKey};
use minisign_verify::{Error, Signature};

/// The longest signature. One of `minisign` has less than 1 KiB, unless its comments are long.
pub(crate) const MAX_SIGNATURE_BYTES: u64 = 16 * 1024;

/// A secret key of `minisign -G -W`.
#[derive(Clone)]
pub(crate) struct SignKey(SecretKey);

impl fmt::Debug for SignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignKey")
    }
}

/// The file is not such a key.
#[derive(Debug, thiserror::Error)]
#[error("it is no secret key without a password, as `minisign -G -W` writes it")]
pub(crate) struct UnusableSignKey;

impl FromStr for SignKey {
    type Err = UnusableSignKey;

    fn from_str(file: &str) -> Result<Self, Self::Err> {
        // Not `SecretKeyBox`: `minisign -W` leaves out the checksum that it requires.
        let line = file.lines().nth(1).ok_or(UnusableSignKey)?;
        let bytes = STANDARD.decode(line).map_err(|_| UnusableSignKey)?;
        let key = SecretKey::from_bytes(&bytes).map_err(|_| UnusableSignKey)?;
        if key.is_encrypted() { Err(UnusableSignKey) } else { Ok(Self(key)) }
    }
}

impl SignKey {
    /// The signature of a manifest. The comment is signed as well.
    ///
    /// # Errors
    /// The key is damaged.
    pub(crate) fn sign(&self, manifest: &[u8], comment: &str) -> Result<String> {
        // With the public key the signature is verified.
        let key = PublicKey::from_secret_key(&self.0).context("cannot sign the manifest")?;
        let signature = minisign::sign(Some(&key), &self.0, manifest, Some(comment), None);
        Ok(signature.context("cannot sign the manifest")?.into_string())
    }
}

/// The keys of which one must have signed an export.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct VerifyKeys {
    /// Public key of minisign, e.g. `RWQ…`. May be repeated. Exports without a valid signature of one of these
    /// keys are refused. Without a key signatures are ignored
    #[arg(
        long = "verify-key",
        env = "EXPORT_VERIFY_KEYS",
        value_name = "KEY",
        value_delimiter = ',',
        value_parser = parse_key
    )]
    keys: Vec<minisign_verify::PublicKey>,
}

fn parse_key(text: &str) -> Result<minisign_verify::PublicKey, String> {
    minisign_verify::PublicKey::from_base64(text)
        .map_err(|_| "a public key is the second line of the file that `minisign -G` writes".to_owned())
}

impl VerifyKeys {
    /// Whether exports need no signature.
    pub(crate) const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Checks the signature of a manifest, unless there is no key.
    ///
    /// # Errors
    /// There is no signature, it is not one of this manifest, or it is that of another key.
    pub(crate) fn verify(&self, manifest: &[u8], signature: Option<&[u8]>) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let name = ExportManifest::SIGNATURE_FILE;
        let signature = signature.with_context(|| format!("the export has no signature {name}"))?;
        let text = std::str::from_utf8(signature).ok();
        let signature = text.and_then(|text| Signature::decode(text).ok());
        let signature = signature.with_context(|| format!("{name} is no signature of minisign"))?;
        for key in &self.keys {
            match key.verify(manifest, &signature, false) {
                Ok(()) => return Ok(()),
                Err(Error::UnexpectedKeyId) => (),
                Err(_) => bail!("{name} is not the signature of {}", ExportManifest::FILE),
            }
        }
        let keys = self.keys.len();
        ensure!(keys == 1, "{name} is not by one of the {keys} keys that were given");
        bail!("{name} is not by the key that was given");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &[u8] = b"{}\n";

    fn key_pair() -> (SignKey, minisign_verify::PublicKey) {
        let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let file = pair.sk.to_box(None).unwrap().into_string();
        (file.parse().unwrap(), parse_key(&pair.pk.to_base64()).unwrap())
    }

    fn error(keys: &VerifyKeys, manifest: &[u8], signature: Option<&str>) -> String {
        keys.verify(manifest, signature.map(str::as_bytes)).unwrap_err().to_string()
    }

    #[test]
    fn any_of_the_keys_may_have_signed() {
        let ((old, old_key), (new, new_key)) = (key_pair(), key_pair());
        let keys = VerifyKeys { keys: vec![old_key.clone(), new_key.clone()] };
        for key in [old, new] {
            let signature = key.sign(MANIFEST, "a comment").unwrap();
            assert!(signature.contains("trusted comment: a comment\n"));
            keys.verify(MANIFEST, Some(signature.as_bytes())).unwrap();
        }
        VerifyKeys::default().verify(MANIFEST, None).unwrap();
    }

    #[test]
    fn what_is_not_signed_by_a_key_is_refused() {
        let ((removed, _), (signing, key)) = (key_pair(), key_pair());
        let keys = VerifyKeys { keys: vec![key.clone()] };
        let signature = signing.sign(MANIFEST, "a comment").unwrap();
        assert_eq!(error(&keys, MANIFEST, None), "the export has no signature manifest.json.minisig");
        let changed = "manifest.json.minisig is not the signature of manifest.json";
        assert_eq!(error(&keys, b"{ }\n", Some(&signature)), changed);
        let comment = signature.replace("a comment", "another");
        assert_eq!(error(&keys, MANIFEST, Some(&comment)), changed);
        let by_removed = removed.sign(MANIFEST, "a comment").unwrap();
        let other = "manifest.json.minisig is not by the key that was given";
        assert_eq!(error(&keys, MANIFEST, Some(&by_removed)), other);
        let (_, second) = key_pair();
        let two = VerifyKeys { keys: vec![key, second] };
        let other = "manifest.json.minisig is not by one of the 2 keys that were given";
        assert_eq!(error(&two, MANIFEST, Some(&by_removed)), other);
        for end in 0..signature.len() - 1 {
            assert!(keys.verify(MANIFEST, Some(&signature.as_bytes()[..end])).is_err(), "{end}");
        }
        assert!(keys.verify(MANIFEST, Some(b"\xff")).is_err());
    }

    #[test]
    fn keys_with_a_password_cannot_sign() {
        let mut key = minisign::KeyPair::generate_unencrypted_keypair().unwrap().sk.to_bytes();
        // The algorithm of the password, and the key that it has encrypted.
        key[2..4].copy_from_slice(b"Sc");
        key[70] ^= 1;
        let with_password = format!("untrusted comment: x\n{}\n", STANDARD.encode(key));
        for file in ["", "a\nb", &with_password] {
            assert!(file.parse::<SignKey>().is_err(), "{file:?}");
        }
        assert!(parse_key("RWQ").is_err());
    }
}
