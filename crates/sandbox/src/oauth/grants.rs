//! The authorization server's codes and grants: codes in memory, grants in files that survive a restart.
//!
//! Each grant is one file, written to a temporary name and renamed before its tokens are returned. No token is stored,
//! only SHA-256 digests. Everything here blocks, if briefly.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::AuthorizationError;
use mailgate_types::secrets::random_bytes;

/// Lifetime of a code; RFC 6749 §4.1.2 recommends at most 10 minutes.
const CODE_LIFETIME: TimeDelta = TimeDelta::seconds(60);

/// How long a code is remembered, to detect its reuse.
const CODE_MEMORY: TimeDelta = TimeDelta::minutes(10);

/// Maximum number of grants; the oldest are removed first.
const KEPT_GRANTS: usize = 10_000;

/// The authorization that a code stands for.
#[derive(Debug, Clone)]
pub(super) struct Code {
    pub(super) redirect_uri: String,
    /// S256 of the `code_verifier`, base64url.
    pub(super) challenge: String,
    pub(super) mailbox: String,
    pub(super) scope: String,
}

/// Tokens as returned to the client.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) access: String,
    pub(super) refresh: String,
    pub(super) scope: String,
}

/// Why no tokens were issued.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// `invalid_grant` of RFC 6749 §5.2, with a message for the developer.
    #[error("{0}")]
    Grant(&'static str),
    /// `invalid_scope`.
    #[error("the scope is wider than what was granted")]
    Scope,
    #[error(transparent)]
    Failed(#[from] AuthorizationError),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Grant {
    id: Uuid,
    mailbox: String,
    scope: String,
    /// Digest of the only valid refresh token.
    refresh: String,
    access: Vec<Access>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Access {
    digest: String,
    expires_at: DateTime<Utc>,
}

#[derive(Debug)]
struct IssuedCode {
    code: Code,
    issued_at: DateTime<Utc>,
    /// The grant that it was exchanged for.
    used_for: Option<Uuid>,
}

#[derive(Debug, Default)]
struct Given {
    codes: HashMap<String, IssuedCode>,
    grants: BTreeMap<Uuid, Grant>,
    /// Maps digests of access tokens and refresh tokens to their grants.
    owners: HashMap<String, Uuid>,
}

/// The store.
#[derive(Debug)]
pub(super) struct Grants {
    directory: PathBuf,
    given: Mutex<Given>,
    refreshes: AtomicU64,
}

impl Grants {
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let mut given = Given::default();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match serde_json::from_slice::<Grant>(&fs::read(&path)?) {
                Ok(grant) => given.insert(grant),
                Err(error) => {
                    tracing::warn!(%error, "a sandbox grant can't be read and is skipped");
                }
            }
        }
        Ok(Self {
            directory: directory.to_owned(),
            given: Mutex::new(given),
            refreshes: AtomicU64::new(0),
        })
    }

    pub(super) fn refreshes(&self) -> u64 {
        self.refreshes.load(Ordering::Relaxed)
    }

    /// Issues a single-use code.
    pub(super) fn issue_code(
        &self,
        code: Code,
        now: DateTime<Utc>,
    ) -> Result<String, AuthorizationError> {
        let text = new_token("sandbox_code_")?;
        let mut given = self.given();
        given
            .codes
            .retain(|_, issued| now - issued.issued_at < CODE_MEMORY);
        let issued = IssuedCode {
            code,
            issued_at: now,
            used_for: None,
        };
        given.codes.insert(digest(&text), issued);
        Ok(text)
    }

    /// Exchanges a code (RFC 6749 §4.1.3 and RFC 7636 §4.6). Reusing a code revokes the grant of its first use.
    pub(super) fn exchange(
        &self,
        code: &str,
        redirect_uri: &str,
        verifier: &str,
        lifetime: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Tokens, Refused> {
        let mut given = self.given();
        let Some(issued) = given.codes.get_mut(&digest(code)) else {
            return Err(Refused::Grant("the code is unknown"));
        };
        if let Some(grant) = issued.used_for {
            self.remove(&mut given, grant)?;
            return Err(Refused::Grant(
                "the code was used before; what it gave is revoked",
            ));
        }
        if now - issued.issued_at >= CODE_LIFETIME {
            return Err(Refused::Grant("the code has expired"));
        }
        if issued.code.redirect_uri != redirect_uri {
            return Err(Refused::Grant(
                "the redirect_uri differs from the one of the authorization request",
            ));
        }
        if URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) != issued.code.challenge {
            return Err(Refused::Grant(
                "the code_verifier does not match the code_challenge",
            ));
        }
        let id = Uuid::now_v7();
        issued.used_for = Some(id);
        let grant = Grant {
            id,
            mailbox: issued.code.mailbox.clone(),
            scope: issued.code.scope.clone(),
            refresh: String::new(),
            access: Vec::new(),
        };
        let scope = grant.scope.clone();
        let tokens = self.give(&mut given, grant, scope, lifetime, now)?;
        while given.grants.len() > KEPT_GRANTS {
            let Some(oldest) = given.grants.keys().next().copied() else {
                break;
            };
            self.remove(&mut given, oldest)?;
        }
        Ok(tokens)
    }

    /// Refreshes a token (RFC 6749 §6) with rotation: the refresh token is invalid after this use.
    pub(super) fn refresh(
        &self,
        refresh_token: &str,
        scope: Option<&str>,
        lifetime: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Tokens, Refused> {
        let mut given = self.given();
        let digest = digest(refresh_token);
        let grant = given
            .grant_of(&digest)
            .filter(|grant| grant.refresh == digest)
            .cloned()
            .ok_or(Refused::Grant(
                "the refresh token is unknown, used before, or withdrawn",
            ))?;
        let granted = |wanted: &str| grant.scope.split(' ').any(|scope| scope == wanted);
        if scope.is_some_and(|scope| !scope.split(' ').all(granted)) {
            return Err(Refused::Scope);
        }
        let scope = scope.unwrap_or(&grant.scope).to_owned();
        let tokens = self.give(&mut given, grant, scope, lifetime, now)?;
        self.refreshes.fetch_add(1, Ordering::Relaxed);
        Ok(tokens)
    }

    /// The mailbox that a valid access token belongs to.
    pub(super) fn mailbox_of(&self, access_token: &str, now: DateTime<Utc>) -> Option<String> {
        let given = self.given();
        let digest = digest(access_token);
        let grant = given.grant_of(&digest)?;
        grant
            .access
            .iter()
            .any(|access| access.digest == digest && access.expires_at > now)
            .then(|| grant.mailbox.clone())
    }

    pub(super) fn expire_access_tokens(&self) -> io::Result<()> {
        let mut given = self.given();
        let live: Vec<Grant> = given
            .grants
            .values()
            .filter(|grant| !grant.access.is_empty())
            .cloned()
            .collect();
        let mut written = Ok(());
        for mut grant in live {
            grant.access.clear();
            written = written.and(self.write(&grant));
            given.replace(grant);
        }
        written
    }

    pub(super) fn withdraw(&self, mailbox: &str) -> io::Result<()> {
        let mut given = self.given();
        // A pending code would connect the mailbox again.
        given
            .codes
            .retain(|_, issued| !issued.code.mailbox.eq_ignore_ascii_case(mailbox));
        let ids: Vec<Uuid> = given
            .grants
            .values()
            .filter(|grant| grant.mailbox.eq_ignore_ascii_case(mailbox))
            .map(|grant| grant.id)
            .collect();
        ids.into_iter()
            .map(|id| self.remove(&mut given, id))
            .fold(Ok(()), io::Result::and)
    }

    /// RFC 7009 §2.1: revoking a refresh token revokes its grant, revoking an access token only that token. An unknown
    /// token is not an error (§2.2).
    pub(super) fn revoke(&self, token: &str) -> io::Result<()> {
        let mut given = self.given();
        let digest = digest(token);
        let Some(mut grant) = given.grant_of(&digest).cloned() else {
            return Ok(());
        };
        if grant.refresh == digest {
            return self.remove(&mut given, grant.id);
        }
        grant.access.retain(|access| access.digest != digest);
        self.write(&grant)?;
        given.replace(grant);
        Ok(())
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Issues new tokens for `grant`, which are valid once they are written.
    fn give(
        &self,
        given: &mut Given,
        mut grant: Grant,
        scope: String,
        lifetime: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Tokens, AuthorizationError> {
        let tokens = Tokens {
            access: new_token("sandbox_access_")?,
            refresh: new_token("sandbox_refresh_")?,
            scope,
        };
        grant.access.retain(|access| access.expires_at > now);
        grant.access.push(Access {
            digest: digest(&tokens.access),
            expires_at: now + lifetime,
        });
        grant.refresh = digest(&tokens.refresh);
        self.write(&grant)?;
        given.replace(grant);
        Ok(tokens)
    }

    fn path(&self, id: Uuid) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }

    fn write(&self, grant: &Grant) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(&serde_json::to_vec(grant)?)?;
        file.persist(self.path(grant.id))?;
        Ok(())
    }

    fn remove(&self, given: &mut Given, id: Uuid) -> io::Result<()> {
        if given.take(id).is_none() {
            return Ok(());
        }
        fs::remove_file(self.path(id))
    }
}

impl Given {
    fn grant_of(&self, digest: &str) -> Option<&Grant> {
        self.grants.get(self.owners.get(digest)?)
    }

    fn insert(&mut self, grant: Grant) {
        let digests = grant.access.iter().map(|access| &access.digest);
        for digest in digests.chain([&grant.refresh]) {
            self.owners.insert(digest.clone(), grant.id);
        }
        self.grants.insert(grant.id, grant);
    }

    fn take(&mut self, id: Uuid) -> Option<Grant> {
        let grant = self.grants.remove(&id)?;
        self.owners.remove(&grant.refresh);
        for access in &grant.access {
            self.owners.remove(&access.digest);
        }
        Some(grant)
    }

    fn replace(&mut self, grant: Grant) {
        self.take(grant.id);
        self.insert(grant);
    }
}

fn new_token(prefix: &str) -> Result<String, AuthorizationError> {
    let random = random_bytes::<32>()?;
    Ok(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(random)))
}

fn digest(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(token))
}
