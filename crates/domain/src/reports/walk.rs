//! Walks through the log, newest first, in short steps: by the index that leads to the fewest rows, each of which is
//! checked against all search criteria. Between two steps no connection is held.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::filter::Filter;
use super::{LogRow, Reports, Scope, scope};
use mailgate_storage::database::error_class::is_timeout;
use mailgate_storage::database::pool;
use mailgate_storage::email_logs::candidates::{self, IdRange};
use mailgate_storage::email_logs::{self, Kind, Matching};
use mailgate_storage::{bounced_messages, end_users, log_retention};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::ids::{CredentialId, LogId, SubscriberId, lowest_uuid_at, moment_of};

/// How long a statement may take. One that takes longer is cancelled, and the step is retried with less.
const STATEMENT: Duration = Duration::from_millis(500);

/// The same for the smallest piece of the log, which can't be made smaller.
const LAST_TRY: Duration = Duration::from_secs(5);

/// How long a step should take: the next one does more, or less.
const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_millis(200);

/// Rows that a step reads in the order of time: initially, at least, at most.
const ROWS: i64 = 5_000;
const FEWEST_ROWS: i64 = 250;
const MOST_ROWS: i64 = 100_000;

/// Maximum rows that a step checks against the other criteria.
const MOST_CANDIDATES: i64 = 5_000;

/// Mailboxes of a user that are looked up one by one; with more, the log is read in the order of time.
const MOST_MAILBOXES: i64 = 50;

/// The window of a step that took too long with all of the log, and the smallest one.
const FIRST_WINDOW: TimeDelta = TimeDelta::days(1);
const SMALLEST_WINDOW: TimeDelta = TimeDelta::seconds(1);
const LARGEST_WINDOW: TimeDelta = TimeDelta::days(30);

/// The index that leads to rows.
#[derive(Debug, Clone)]
enum Way {
    Log(LogId),
    Message(Vec<String>),
    Recipient(String),
    Mailboxes(Vec<CredentialId>),
    /// All rows of the owner.
    Time,
}

/// A walk.
pub(super) struct Walk {
    pool: PgPool,
    subscriber: SubscriberId,
    scope: Scope,
    kinds: Vec<Kind>,
    matching: Matching,
    way: Way,
    /// The lowest id that may be there.
    floor: Uuid,
    /// All from here on have been searched.
    position: Uuid,
    /// How far back a step may look; `None`: as far as the log goes.
    window: Option<TimeDelta>,
    /// Rows of a step by time.
    rows: i64,
    /// Candidates of a step, if more are needed than rows.
    candidates: i64,
    /// The time that its steps have taken.
    spent: Duration,
}

/// A regular expression that matches a string in upper or lower case, whatever the database's locale.
fn in_any_case(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() * 4);
    for letter in text.chars() {
        let mut forms = vec![letter];
        for form in [one(letter.to_lowercase()), one(letter.to_uppercase())] {
            forms.extend(form.filter(|form| !forms.contains(form)));
        }
        match forms.as_slice() {
            [only] if only.is_ascii() && !only.is_ascii_alphanumeric() => {
                pattern.extend(['\\', *only]);
            }
            [only] => pattern.push(*only),
            forms => {
                pattern.push('[');
                pattern.extend(forms);
                pattern.push(']');
            }
        }
    }
    pattern
}

/// The only letter of a case conversion.
fn one(mut letters: impl Iterator<Item = char>) -> Option<char> {
    letters.next().filter(|_| letters.next().is_none())
}

impl Reports {
    /// A walk after a position, or from the log's newest row; `None` if nothing can match.
    pub(super) async fn walk(
        &self,
        subscriber: SubscriberId,
        filter: &Filter,
        position: Option<Uuid>,
    ) -> Result<Option<Walk>, sqlx::Error> {
        let began = Instant::now();
        let mut snapshot = pool::snapshot_within(&self.pool, STATEMENT).await?;
        let Some(scope) = scope(&mut snapshot, subscriber, filter.app.as_ref()).await? else {
            return Ok(None);
        };
        let kept_since = log_retention::kept_since(&mut snapshot).await?;
        let Some(matching) = matching(&mut snapshot, subscriber, &scope, filter).await? else {
            return Ok(None);
        };
        let way = way(&mut snapshot, filter.search.log, &matching).await?;
        snapshot.commit().await?;
        let (from, to) = self.stretch(filter, kept_since);
        let end = lowest_uuid_at(to);
        Ok(Some(Walk {
            pool: self.pool.clone(),
            subscriber,
            scope,
            kinds: filter.kinds(),
            matching,
            way,
            floor: lowest_uuid_at(from),
            position: position.map_or(end, |position| position.min(end)),
            window: None,
            rows: ROWS,
            candidates: 0,
            spent: began.elapsed(),
        }))
    }
}

/// The criteria of a filter; `None` if nothing can match.
pub(super) async fn matching(
    connection: &mut PgConnection,
    subscriber: SubscriberId,
    scope: &Scope,
    filter: &Filter,
) -> Result<Option<Matching>, sqlx::Error> {
    let search = &filter.search;
    let users = match &search.user {
        None => None,
        Some(name) => {
            let users = end_users::named(connection, subscriber, name).await?;
            if users.is_empty() {
                return Ok(None);
            }
            Some(users)
        }
    };
    Ok(Some(Matching {
        app: scope.app(),
        plugin: filter.plugin,
        status: filter.status,
        recipient: search.recipient.as_ref().map(EmailAddress::lookup_key),
        message_ids: search.message_id.as_deref().map(with_and_without_brackets),
        bounced: filter.bounced,
        credential: search.credential,
        users,
        subject: search.subject.as_deref().map(in_any_case),
    }))
}

fn with_and_without_brackets(id: &str) -> Vec<String> {
    vec![id.to_owned(), format!("<{id}>")]
}

async fn way(
    connection: &mut PgConnection,
    log: Option<LogId>,
    matching: &Matching,
) -> Result<Way, sqlx::Error> {
    if let Some(log) = log {
        return Ok(Way::Log(log));
    }
    if let Some(message_ids) = &matching.message_ids {
        return Ok(Way::Message(message_ids.clone()));
    }
    if let Some(recipient) = &matching.recipient {
        return Ok(Way::Recipient(recipient.clone()));
    }
    if let Some(credential) = matching.credential {
        return Ok(Way::Mailboxes(vec![credential]));
    }
    if let Some(users) = &matching.users {
        let mailboxes = end_users::mailboxes(connection, users, MOST_MAILBOXES + 1).await?;
        if i64::try_from(mailboxes.len()).is_ok_and(|count| count <= MOST_MAILBOXES) {
            return Ok(Way::Mailboxes(mailboxes));
        }
    }
    Ok(Way::Time)
}

impl Walk {
    /// All from here on has been searched.
    pub(super) fn position(&self) -> Uuid {
        self.position
    }

    /// How far back a step may look; `None`: as far as the log goes.
    pub(super) fn window(&self) -> Option<TimeDelta> {
        self.window
    }

    /// Begins with the window of an earlier walk.
    pub(super) fn narrow(&mut self, window: Option<TimeDelta>) {
        self.window = window.map(|window| window.clamp(SMALLEST_WINDOW, LARGEST_WINDOW));
        if self.window.is_some() {
            self.rows = FEWEST_ROWS;
        }
    }

    /// Whether the log's oldest row has been reached.
    pub(super) fn is_done(&self) -> bool {
        self.position <= self.floor
    }

    /// The time that its steps have taken.
    pub(super) fn spent(&self) -> Duration {
        self.spent
    }

    /// The next rows, `wanted` at most. There may be none although there are older ones.
    pub(super) async fn step(&mut self, wanted: usize) -> Result<Vec<LogRow>, sqlx::Error> {
        if self.is_done() {
            return Ok(Vec::new());
        }
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let is_last_try =
            self.window.is_some_and(|window| window <= SMALLEST_WINDOW) && self.rows <= FEWEST_ROWS;
        let statement = if is_last_try { LAST_TRY } else { STATEMENT };
        let began = Instant::now();
        let stepped = self.try_step(wanted, statement).await;
        let took = began.elapsed();
        self.spent += took;
        match stepped {
            Err(error) if is_timeout(&error) && !is_last_try => {
                self.rows = (self.rows / 8).max(FEWEST_ROWS);
                self.candidates /= 8;
                let window = self.window.map_or(FIRST_WINDOW, |window| window / 8);
                self.window = Some(window.max(SMALLEST_WINDOW));
                Ok(Vec::new())
            }
            Err(error) => Err(error),
            Ok((rows, position)) => {
                self.position = position;
                if took < SHORT {
                    self.rows = (self.rows * 2).min(MOST_ROWS);
                    let wider = self.window.map(|window| window * 4);
                    self.window = wider.filter(|window| *window < LARGEST_WINDOW);
                } else if took > LONG {
                    self.rows = (self.rows / 2).max(FEWEST_ROWS);
                }
                Ok(rows)
            }
        }
    }

    /// The rows of a step, and the position after it.
    async fn try_step(
        &mut self,
        wanted: i64,
        statement: Duration,
    ) -> Result<(Vec<LogRow>, Uuid), sqlx::Error> {
        let mut snapshot = pool::snapshot_within(&self.pool, statement).await?;
        let from = self.window.map_or(self.floor, |window| {
            lowest_uuid_at(moment_of(self.position) - window).max(self.floor)
        });
        let range = IdRange {
            from,
            to: self.position,
        };
        let (ids, behind) = match &self.way {
            Way::Time if self.is_plain() => self.by_time(&mut snapshot, range, wanted).await?,
            Way::Time => self.through_time(&mut snapshot, range, wanted).await?,
            _ => {
                let limit = wanted.max(self.candidates);
                let ids = self.candidates(&mut snapshot, range, limit).await?;
                let behind = behind(&ids, limit, range.from);
                (ids, behind)
            }
        };
        let mut rows = if ids.is_empty() {
            Vec::new()
        } else {
            email_logs::matching(&mut snapshot, self.subscriber, &ids, &self.matching).await?
        };
        snapshot.commit().await?;
        if rows.len() < ids.len() {
            let looked_at = i64::try_from(ids.len()).unwrap_or(i64::MAX);
            self.candidates = looked_at.saturating_mul(4).clamp(100, MOST_CANDIDATES);
        }
        let most = usize::try_from(wanted).unwrap_or(usize::MAX);
        if rows.len() > most {
            rows.truncate(most);
            let last = rows.last().map_or(behind, |row| row.id.0);
            return Ok((rows, last));
        }
        Ok((rows, behind))
    }

    /// By the columns of the owner's index alone.
    fn is_plain(&self) -> bool {
        self.matching.users.is_none() && self.matching.subject.is_none()
    }

    async fn candidates(
        &self,
        connection: &mut PgConnection,
        range: IdRange,
        limit: i64,
    ) -> Result<Vec<LogId>, sqlx::Error> {
        match &self.way {
            Way::Log(log) => {
                let is_there = range.from <= log.0 && log.0 < range.to;
                Ok(is_there.then_some(*log).into_iter().collect())
            }
            Way::Message(ids) if self.window.is_none() => {
                candidates::by_message(connection, self.subscriber, ids, range, limit).await
            }
            Way::Message(ids) => {
                candidates::by_message_within(connection, self.subscriber, ids, range, limit).await
            }
            Way::Recipient(address) => {
                candidates::by_recipient(connection, self.subscriber, address, range, limit).await
            }
            Way::Mailboxes(mailboxes) => {
                candidates::by_credentials(connection, mailboxes, range, limit).await
            }
            Way::Time => Ok(Vec::new()),
        }
    }

    /// The owner's rows themselves.
    async fn by_time(
        &self,
        connection: &mut PgConnection,
        range: IdRange,
        wanted: i64,
    ) -> Result<(Vec<LogId>, Uuid), sqlx::Error> {
        let window = self.scope.behind(range.to, moment_of(range.from));
        let kinds = &self.kinds;
        let ids = match self.matching.bounced {
            Some(true) => bounced_messages::find(connection, window, kinds, 0, wanted).await?,
            Some(false) => {
                bounced_messages::find_others(connection, window, kinds, 0, wanted).await?
            }
            None => email_logs::find(connection, window, kinds, 0, wanted).await?,
        };
        let behind = behind(&ids, wanted, range.from);
        Ok((ids, behind))
    }

    /// Matching rows among some thousand of the owner's.
    async fn through_time(
        &self,
        connection: &mut PgConnection,
        range: IdRange,
        wanted: i64,
    ) -> Result<(Vec<LogId>, Uuid), sqlx::Error> {
        let mut window = self.scope.behind(range.to, moment_of(range.from));
        let last = email_logs::find(connection, window, &self.kinds, self.rows - 1, 1).await?;
        if let Some(last) = last.first() {
            window.from = moment_of(last.0);
        }
        let (kinds, matching) = (&self.kinds, &self.matching);
        let ids = email_logs::scan(connection, window, kinds, matching, wanted).await?;
        let behind = behind(&ids, wanted, lowest_uuid_at(window.from));
        Ok((ids, behind))
    }
}

/// The position after the ids found in a range: its end, unless there may be more of them.
fn behind(ids: &[LogId], limit: i64, end: Uuid) -> Uuid {
    let is_full = i64::try_from(ids.len()).is_ok_and(|count| count >= limit);
    ids.last().filter(|_| is_full).map_or(end, |last| last.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_in_any_case() {
        for (text, pattern) in [
            ("aB1", "[aA][Bb]1"),
            ("ü", "[üÜ]"),
            ("a.*(\\ x", "[aA]\\.\\*\\(\\\\\\ [xX]"),
            ("]^-", "\\]\\^\\-"),
            ("字", "字"),
            // A letter that becomes two in the other case has one form here.
            ("ß", "ß"),
        ] {
            assert_eq!(in_any_case(text), pattern);
        }
    }
}
