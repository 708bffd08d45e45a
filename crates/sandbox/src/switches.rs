//! The demo's switches: what becomes of the next message, whoever its recipients are.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Refused for good: 550 5.1.1.
    Fail,
    /// Refused for now: 451.
    Defer,
    /// Accepted after two seconds.
    Slow,
    /// Accepted, and returned to the sender's mailbox.
    Bounce,
    /// Accepted, and answered by its first recipient.
    Reply,
}

impl Effect {
    /// Its name in forms and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Defer => "defer",
            Self::Slow => "slow",
            Self::Bounce => "bounce",
            Self::Reply => "reply",
        }
    }

    /// Whether a message is sent back, which only mailboxes that are read by IMAP can show.
    pub(crate) const fn returns(self) -> bool {
        matches!(self, Self::Bounce | Self::Reply)
    }
}

/// How the switches are set: `{"effect": "bounce", "repeat": false}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// `None`: mail is accepted as usual.
    pub effect: Option<Effect>,
    /// Until it is switched off, and not for the next message only.
    #[serde(default)]
    pub repeat: bool,
}

/// The switches, in memory: a start begins with none. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Switches(Arc<Mutex<Setting>>);

impl Switches {
    /// How they are set.
    #[must_use]
    pub fn get(&self) -> Setting {
        *self.setting()
    }

    /// Sets them.
    pub fn set(&self, setting: Setting) {
        *self.setting() = setting;
    }

    /// The effect on a message that has just arrived, if it is `possible`. One for a single message ends with it.
    pub(crate) fn take(&self, possible: impl Fn(Effect) -> bool) -> Option<Effect> {
        let mut setting = self.setting();
        let effect = setting.effect.filter(|effect| possible(*effect))?;
        if !setting.repeat {
            *setting = Setting::default();
        }
        Some(effect)
    }

    fn setting(&self) -> MutexGuard<'_, Setting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_or_all_until_switched_off() {
        let switches = Switches::default();
        assert_eq!(switches.take(|_| true), None);
        let effect = Some(Effect::Bounce);
        switches.set(Setting {
            effect,
            repeat: false,
        });
        assert_eq!(switches.take(|effect| !effect.returns()), None);
        assert_eq!(switches.take(|_| true), effect);
        assert_eq!(switches.take(|_| true), None);
        let setting = Setting {
            effect,
            repeat: true,
        };
        switches.set(setting);
        for _ in 0..2 {
            assert_eq!(switches.take(|_| true), effect);
        }
        assert_eq!(switches.get(), setting);
        switches.set(Setting::default());
        assert_eq!(switches.take(|_| true), None);
    }

    #[test]
    fn names_are_those_of_the_json() {
        for name in ["fail", "defer", "slow", "bounce", "reply"] {
            let effect: Result<Effect, _> = serde_json::from_value(name.into());
            assert_eq!(effect.map(Effect::name).ok(), Some(name));
        }
    }
}
