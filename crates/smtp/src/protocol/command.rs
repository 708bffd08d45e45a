//! The commands of RFC 5321 §4.1.1 and of the offered extensions: syntax only. Whether a command is allowed in the
//! current state is up to the session.

use secrecy::SecretString;

use super::parameters::{MailParameters, refuse_recipient_parameters};
use super::reply::Reply;
use mailgate_types::email_address::{EmailAddress, is_domain};

/// Longest client name in EHLO and HELO, in octets (RFC 5321 §4.5.3.1.2).
const MAXIMUM_CLIENT_NAME: usize = 255;

/// The verb of a command line, before its arguments are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// RFC 5321 §4.1.1.1
    Ehlo,
    /// RFC 5321 §4.1.1.1
    Helo,
    /// RFC 3207
    StartTls,
    /// RFC 4954
    Auth,
    /// RFC 5321 §4.1.1.2
    Mail,
    /// RFC 5321 §4.1.1.3
    Rcpt,
    /// RFC 5321 §4.1.1.4
    Data,
    /// RFC 3030
    Bdat,
    /// RFC 5321 §4.1.1.5
    Rset,
    /// RFC 5321 §4.1.1.9
    Noop,
    /// RFC 5321 §4.1.1.6
    Vrfy,
    /// RFC 5321 §4.1.1.7
    Expn,
    /// RFC 5321 §4.1.1.8
    Help,
    /// RFC 5321 §4.1.1.10
    Quit,
}

/// A command with valid syntax.
#[derive(Debug)]
pub enum Command {
    /// The client's name: a domain, an address literal, or whatever its host is called.
    Ehlo(String),
    /// The client's name, as in EHLO.
    Helo(String),
    /// Starts TLS.
    StartTls,
    /// Starts authentication.
    Auth {
        /// The SASL mechanism's name, in upper case.
        mechanism: String,
        /// The initial response as sent: base64, or `=` for an empty one.
        initial_response: Option<SecretString>,
    },
    /// Starts a mail transaction.
    Mail {
        /// The envelope sender as written, which may be any text; empty for the null path `<>`.
        reverse_path: String,
        /// The declared parameters.
        parameters: MailParameters,
    },
    /// Adds a recipient.
    Rcpt {
        /// The recipient. A source route in front of it is dropped (RFC 5321 §4.1.1.3, App. C).
        forward_path: EmailAddress,
    },
    /// The message follows, dot-stuffed.
    Data,
    /// A chunk of the message follows.
    Bdat {
        /// Octets of the chunk.
        size: u64,
        /// Whether it is the last one.
        last: bool,
    },
    /// Aborts the mail transaction.
    Rset,
    /// No operation.
    Noop,
    /// Verifies a mailbox.
    Vrfy,
    /// Expands a list.
    Expn,
    /// Requests help.
    Help,
    /// Ends the session.
    Quit,
}

impl Verb {
    /// Splits a line (without CRLF) into verb and arguments. Trailing white space is tolerated (RFC 5321 §4.1.1).
    ///
    /// # Errors
    ///
    /// The refusal: 500 5.5.2 for octets that no command may contain, 500 5.5.1 for an unknown verb.
    pub fn split(line: &[u8]) -> Result<(Self, &str), Reply> {
        let text = std::str::from_utf8(line)
            .map_err(|_| Reply::new(500, "5.5.2", "Command isn't ASCII or UTF-8"))?
            .trim_end_matches([' ', '\t']);
        if text.chars().any(char::is_control) {
            return Err(Reply::new(500, "5.5.2", "Control character in command"));
        }
        let (word, arguments) = text.split_once(' ').unwrap_or((text, ""));
        let verb = match word.to_ascii_uppercase().as_str() {
            "EHLO" => Self::Ehlo,
            "HELO" => Self::Helo,
            "STARTTLS" => Self::StartTls,
            "AUTH" => Self::Auth,
            "MAIL" => Self::Mail,
            "RCPT" => Self::Rcpt,
            "DATA" => Self::Data,
            "BDAT" => Self::Bdat,
            "RSET" => Self::Rset,
            "NOOP" => Self::Noop,
            "VRFY" => Self::Vrfy,
            "EXPN" => Self::Expn,
            "HELP" => Self::Help,
            "QUIT" => Self::Quit,
            "" => return Err(Reply::new(500, "5.5.2", "Command missing")),
            _ => return Err(Reply::new(500, "5.5.1", "Command not recognized")),
        };
        Ok((verb, arguments.trim_start_matches(' ')))
    }
}

impl Command {
    /// Parses a command line without its CRLF.
    ///
    /// # Errors
    ///
    /// The refusal, a 5yz reply. It never repeats what was sent.
    pub fn parse(line: &[u8]) -> Result<Self, Reply> {
        let (verb, arguments) = Verb::split(line)?;
        Self::from_parts(verb, arguments)
    }

    /// Parses the arguments of a verb.
    ///
    /// # Errors
    ///
    /// The refusal: 501 for invalid arguments, 555 for unsupported parameters.
    pub fn from_parts(verb: Verb, arguments: &str) -> Result<Self, Reply> {
        // UTF-8 is allowed in addresses, for which the session requires SMTPUTF8 (RFC 6531 §3.4), and in host names.
        if !arguments.is_ascii()
            && !matches!(verb, Verb::Mail | Verb::Rcpt | Verb::Ehlo | Verb::Helo)
        {
            return Err(syntax("This command takes ASCII only"));
        }
        match verb {
            Verb::Ehlo => client_name(arguments).map(Self::Ehlo),
            Verb::Helo => client_name(arguments).map(Self::Helo),
            Verb::Auth => auth(arguments),
            Verb::Mail => mail(arguments),
            Verb::Rcpt => rcpt(arguments),
            Verb::Bdat => bdat(arguments),
            Verb::StartTls => without_arguments(arguments, Self::StartTls),
            Verb::Data => without_arguments(arguments, Self::Data),
            Verb::Rset => without_arguments(arguments, Self::Rset),
            Verb::Quit => without_arguments(arguments, Self::Quit),
            Verb::Vrfy | Verb::Expn if arguments.is_empty() => Err(syntax("Argument missing")),
            Verb::Vrfy => Ok(Self::Vrfy),
            Verb::Expn => Ok(Self::Expn),
            Verb::Noop => Ok(Self::Noop),
            Verb::Help => Ok(Self::Help),
        }
    }
}

fn syntax(text: &str) -> Reply {
    Reply::new(501, "5.5.2", text)
}

fn without_arguments(arguments: &str, command: Command) -> Result<Command, Reply> {
    if arguments.is_empty() {
        Ok(command)
    } else {
        Err(syntax("This command takes no argument"))
    }
}

/// Clients use their host's name, which needn't be a domain: like Postfix, accept any name. It is not interpreted or
/// passed on.
fn client_name(text: &str) -> Result<String, Reply> {
    if !text.is_empty() && text.len() <= MAXIMUM_CLIENT_NAME {
        Ok(text.to_owned())
    } else {
        Err(syntax("Syntax: EHLO domain or [address]"))
    }
}

fn auth(arguments: &str) -> Result<Command, Reply> {
    let mut words = arguments.split(' ').filter(|word| !word.is_empty());
    match (words.next(), words.next(), words.next()) {
        (Some(mechanism), initial_response, None) => Ok(Command::Auth {
            mechanism: mechanism.to_ascii_uppercase(),
            initial_response: initial_response.map(SecretString::from),
        }),
        _ => Err(syntax("Syntax: AUTH mechanism [initial-response]")),
    }
}

/// The reverse-path is only delimited: a printer's or a cron job's needn't be an address, nor be in brackets.
fn mail(arguments: &str) -> Result<Command, Reply> {
    let (path, rest) = path(arguments, "FROM:")
        .or_else(|| bare_path(arguments, "FROM:"))
        .ok_or_else(|| syntax("Syntax: MAIL FROM:<address> [parameters]"))?;
    let parameters = MailParameters::parse(rest)?;
    if path.is_ascii() || parameters.smtputf8 {
        Ok(Command::Mail {
            reverse_path: path.to_owned(),
            parameters,
        })
    } else {
        Err(needs_smtputf8())
    }
}

/// The refusal of an address that isn't ASCII in a transaction without SMTPUTF8 (RFC 6531 §3.5).
pub(super) fn needs_smtputf8() -> Reply {
    Reply::new(553, "5.6.7", "This address needs SMTPUTF8 on MAIL")
}

fn rcpt(arguments: &str) -> Result<Command, Reply> {
    let (path, rest) = path(arguments, "TO:").ok_or_else(|| syntax("Syntax: RCPT TO:<address>"))?;
    let forward_path = mailbox(path)?;
    refuse_recipient_parameters(rest)?;
    Ok(Command::Rcpt { forward_path })
}

/// The text between the angle brackets, and the text after them: nothing, or a space and more. Spaces before `<` and
/// within the brackets violate the grammar, but are common.
fn path<'line>(arguments: &'line str, keyword: &str) -> Option<(&'line str, &'line str)> {
    let inside = behind(arguments, keyword)?.strip_prefix('<')?;
    let end = closing_bracket(inside).or_else(|| inside.find('>'))?;
    let rest = &inside[end + 1..];
    (rest.is_empty() || rest.starts_with(' ')).then_some((inside[..end].trim_matches(' '), rest))
}

/// A path without angle brackets, up to the first space, and the text after it.
fn bare_path<'line>(arguments: &'line str, keyword: &str) -> Option<(&'line str, &'line str)> {
    let text = behind(arguments, keyword)?;
    let (path, rest) = text.split_at(text.find(' ').unwrap_or(text.len()));
    let is_bare = !path.is_empty() && !path.contains(['<', '>']);
    is_bare.then_some((path, rest))
}

/// The text behind `FROM:` or `TO:`.
fn behind<'line>(arguments: &'line str, keyword: &str) -> Option<&'line str> {
    let (start, text) = arguments.split_at_checked(keyword.len())?;
    (start.eq_ignore_ascii_case(keyword)).then(|| text.trim_start_matches(' '))
}

/// The first `>` outside a quoted local part.
fn closing_bracket(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'>' if !quoted => return Some(index),
            _ => {}
        }
    }
    None
}

/// A recipient's mailbox, with or without a source route in front.
fn mailbox(path: &str) -> Result<EmailAddress, Reply> {
    let address = if path.starts_with('@') {
        let (route, address) = path.split_once(':').unwrap_or((path, ""));
        let valid = route
            .split(',')
            .all(|hop| hop.strip_prefix('@').is_some_and(is_domain));
        if valid { address } else { path }
    } else {
        path
    };
    EmailAddress::parse(address).map_err(|error| {
        Reply::new(
            501,
            "5.1.3",
            &format!("Recipient address isn't valid: {error}"),
        )
    })
}

fn bdat(arguments: &str) -> Result<Command, Reply> {
    let refusal = || Reply::new(501, "5.5.4", "Syntax: BDAT size [LAST]");
    let mut words = arguments.split(' ').filter(|word| !word.is_empty());
    let size = words
        .next()
        .filter(|size| size.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|size| size.parse().ok())
        .ok_or_else(refusal)?;
    match (words.next(), words.next()) {
        (None, _) => Ok(Command::Bdat { size, last: false }),
        (Some(word), None) if word.eq_ignore_ascii_case("LAST") => {
            Ok(Command::Bdat { size, last: true })
        }
        _ => Err(refusal()),
    }
}

#[cfg(test)]
mod tests;
