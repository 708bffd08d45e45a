//! AUTH within a session: the steps of the exchange, the driver's decision, and the count of failures.

use zeroize::Zeroize;

use super::{Event, Outcome, Session, State};
use crate::protocol::authentication::{Credentials, Exchange, Step, bearer_refusal};
use crate::protocol::line::Line;
use crate::protocol::reply::Reply;

impl Session {
    /// Accepts the credentials.
    pub fn authenticated(&mut self, output: &mut Vec<u8>) {
        if matches!(self.state, State::AwaitAuthentication { .. }) {
            self.authenticated = true;
            self.state = State::Command;
            Reply::new(235, "2.7.0", "Authentication successful").write_to(output);
        }
    }

    /// Refuses the credentials with `reply`. A temporary refusal (4yz) doesn't count as a failure; after
    /// [`super::SessionSettings::maximum_authentication_failures`] others the connection closes. For a bearer token the
    /// client first gets a challenge with the error, and the reply once it has answered that.
    pub fn refuse_authentication(&mut self, reply: Reply, output: &mut Vec<u8>) -> Option<Event> {
        let State::AwaitAuthentication { bearer } = self.state else {
            return None;
        };
        self.state = State::Command;
        if reply.is_temporary() {
            reply.write_to(output);
            return None;
        }
        self.authentication_failures += 1;
        let close = self.authentication_failures >= self.settings.maximum_authentication_failures;
        if bearer {
            bearer_refusal().write_to(output);
            self.state = State::BearerRefused { reply, close };
            return None;
        }
        reply.write_to(output);
        close.then(|| self.close())
    }

    pub(super) fn auth(
        &mut self,
        name: &str,
        initial_response: Option<&str>,
        output: &mut Vec<u8>,
    ) -> Outcome {
        let offered = self
            .settings
            .mechanisms
            .iter()
            .find(|mechanism| mechanism.name() == name);
        let Some(mechanism) = offered else {
            return Err(
                Reply::new(504, "5.5.4", "Authentication mechanism is not available").into(),
            );
        };
        let exchange = Exchange::new(*mechanism);
        let step = match initial_response {
            None => exchange.challenge(),
            Some(response) => exchange.initial_response(response),
        };
        self.take_step(step, output)
    }

    pub(super) fn response_line(&mut self, line: Line, output: &mut Vec<u8>) -> Option<Event> {
        let State::Response(exchange) = std::mem::replace(&mut self.state, State::Command) else {
            return None;
        };
        let outcome = match line {
            Line::Whole(mut line) => {
                let step = exchange.response(&line);
                line.as_mut().zeroize();
                self.take_step(step, output)
            }
            Line::BareLineEnd => Err(Reply::new(501, "5.5.2", "Bare CR or LF in response").into()),
            Line::TooLong => {
                Err(Reply::new(500, "5.5.6", "Authentication exchange line is too long").into())
            }
        };
        self.conclude(outcome, output)
    }

    pub(super) fn take_step(&mut self, step: Step, output: &mut Vec<u8>) -> Outcome {
        match step {
            Step::Challenge(challenge, exchange) => {
                challenge.write_to(output);
                self.state = State::Response(exchange);
                Ok(None)
            }
            Step::Complete(credentials) => {
                let bearer = matches!(credentials, Credentials::Bearer { .. });
                self.state = State::AwaitAuthentication { bearer };
                Ok(Some(Event::Authenticate(credentials)))
            }
            Step::Refused(reply) => Err(reply.into()),
            Step::Failed => {
                self.state = State::AwaitAuthentication { bearer: false };
                Ok(self.refuse_authentication(
                    Reply::new(535, "5.7.8", "Authentication failed"),
                    output,
                ))
            }
        }
    }

    pub(super) fn bearer_refused(&mut self, output: &mut Vec<u8>) -> Option<Event> {
        let State::BearerRefused { reply, close } =
            std::mem::replace(&mut self.state, State::Command)
        else {
            return None;
        };
        reply.write_to(output);
        close.then(|| self.close())
    }
}
