//! Amounts of money as the payment provider counts them, and how they are written.

use serde::{Deserialize, Serialize};

use crate::grouped::grouped;

/// Currencies (ISO 4217) whose smallest unit is the whole, and those where it is a thousandth, as the payment
/// provider counts them.
const WHOLE: [&str; 16] = [
    "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv",
    "xaf", "xof", "xpf",
];
const THOUSANDTHS: [&str; 5] = ["bhd", "jod", "kwd", "omr", "tnd"];

/// The length of a currency code.
const CODE: usize = 3;

/// An amount, as the provider reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmountDue {
    /// In the currency's smallest unit.
    pub minor_units: i64,
    /// Three lower-case letters (ISO 4217).
    pub currency: String,
}

impl AmountDue {
    /// This many times the amount; `None` if it is too large.
    #[must_use]
    pub fn times(&self, count: i64) -> Option<Self> {
        Some(Self {
            minor_units: self.minor_units.checked_mul(count)?,
            currency: self.currency.clone(),
        })
    }

    /// The sum of both; `None` if they aren't of one currency, or it is too large.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let minor_units = self.minor_units.checked_add(other.minor_units)?;
        let is_same = self.currency.eq_ignore_ascii_case(&other.currency);
        is_same.then(|| Self {
            minor_units,
            currency: self.currency.clone(),
        })
    }

    /// With the code behind the number: `5.00 EUR`.
    #[must_use]
    pub fn with_code(&self) -> String {
        let code = self.code();
        let number = number(self.minor_units.unsigned_abs(), &code, "");
        format!("{}{number} {}", self.sign("-"), code.to_ascii_uppercase())
    }

    /// With the symbol of a common currency in front, else with the code behind it: `€1 234.50`, `55.00 CHF`.
    #[must_use]
    pub fn short(&self) -> String {
        let code = self.code();
        let number = number(self.minor_units.unsigned_abs(), &code, "\u{202f}");
        let sign = self.sign("−");
        let symbol = match code.as_str() {
            "eur" => "€",
            "usd" => "$",
            "gbp" => "£",
            "jpy" => "¥",
            _ => return format!("{sign}{number}\u{a0}{}", code.to_ascii_uppercase()),
        };
        format!("{sign}{symbol}{number}")
    }

    fn sign(&self, minus: &'static str) -> &'static str {
        if self.minor_units < 0 { minus } else { "" }
    }

    /// The currency's code. Any other text from the provider is left out.
    fn code(&self) -> String {
        let letters = self.currency.chars().filter(char::is_ascii_alphabetic);
        let code: String = letters.take(CODE).collect();
        code.to_ascii_lowercase()
    }
}

/// The number with the currency's digits, and `separator` between thousands.
fn number(minor_units: u64, code: &str, separator: &str) -> String {
    let digits = if WHOLE.contains(&code) {
        0
    } else if THOUSANDTHS.contains(&code) {
        3
    } else {
        2
    };
    let whole = (minor_units / 10_u64.pow(digits)).to_string();
    let text = grouped(&whole, separator);
    if digits == 0 {
        return text;
    }
    let part = minor_units % 10_u64.pow(digits);
    format!("{text}.{part:0width$}", width = digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(minor_units: i64, currency: &str) -> AmountDue {
        AmountDue {
            minor_units,
            currency: currency.to_owned(),
        }
    }

    #[test]
    fn amounts_have_the_digits_and_the_symbol_of_their_currency() {
        for (minor_units, currency, with_code, short) in [
            (5_500, "eur", "55.00 EUR", "€55.00"),
            (5, "USD", "0.05 USD", "$0.05"),
            (
                123_456_789,
                "gbp",
                "1234567.89 GBP",
                "£1\u{202f}234\u{202f}567.89",
            ),
            (5_500, "chf", "55.00 CHF", "55.00\u{a0}CHF"),
            (5_500, "jpy", "5500 JPY", "¥5\u{202f}500"),
            (5_500, "krw", "5500 KRW", "5\u{202f}500\u{a0}KRW"),
            (5_500, "kwd", "5.500 KWD", "5.500\u{a0}KWD"),
            (-1, "eur", "-0.01 EUR", "−€0.01"),
            (
                i64::MIN,
                "jpy",
                "-9223372036854775808 JPY",
                "−¥9\u{202f}223\u{202f}372\u{202f}036\u{202f}854\u{202f}775\u{202f}808",
            ),
            (500, "e<r>\u{0}o", "5.00 ERO", "5.00\u{a0}ERO"),
        ] {
            let amount = amount(minor_units, currency);
            assert_eq!(amount.with_code(), with_code);
            assert_eq!(amount.short(), short);
        }
    }

    #[test]
    fn what_is_no_amount_is_none() {
        assert_eq!(amount(500, "eur").times(11), Some(amount(5_500, "eur")));
        assert_eq!(amount(i64::MAX, "eur").times(2), None);
        assert_eq!(
            amount(1, "eur").plus(&amount(2, "EUR")),
            Some(amount(3, "eur"))
        );
        assert_eq!(amount(1, "eur").plus(&amount(2, "usd")), None);
        assert_eq!(amount(1, "eur").plus(&amount(i64::MAX, "eur")), None);
    }
}
