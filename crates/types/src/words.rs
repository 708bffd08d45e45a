//! Enums whose values are words of the interface and the database.

/// Defines an enum whose variants are words: `ALL`, `as_str`, `Display` and `Serialize`, and with `else` an error and
/// `FromStr`, by which statements read columns of text too: an unknown word is an error there.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$means:meta])* $variant:ident = $word:literal,)+
        }
        $($(#[$unknown_means:meta])* else $unknown:ident($message:literal);)?
    ) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$means])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of their definition.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word in the interface and the database.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        $(
            $(#[$unknown_means])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
            #[error($message)]
            pub struct $unknown;

            impl std::str::FromStr for $name {
                type Err = $unknown;

                fn from_str(text: &str) -> Result<Self, $unknown> {
                    let mut all = Self::ALL.into_iter();
                    all.find(|it| it.as_str() == text).ok_or($unknown)
                }
            }

            #[cfg(feature = "sqlx")]
            impl sqlx::Type<sqlx::Postgres> for $name {
                fn type_info() -> sqlx::postgres::PgTypeInfo {
                    <str as sqlx::Type<sqlx::Postgres>>::type_info()
                }

                fn compatible(column: &sqlx::postgres::PgTypeInfo) -> bool {
                    <str as sqlx::Type<sqlx::Postgres>>::compatible(column)
                }
            }

            #[cfg(feature = "sqlx")]
            impl sqlx::Decode<'_, sqlx::Postgres> for $name {
                fn decode(
                    value: sqlx::postgres::PgValueRef<'_>,
                ) -> Result<Self, sqlx::error::BoxDynError> {
                    Ok(<&str as sqlx::Decode<sqlx::Postgres>>::decode(value)?.parse()?)
                }
            }
        )?
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    words! {
        /// Two words.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Both {
            /// One.
            Former = "the.former",
            /// Another.
            Latter = "the_latter",
        }

        /// Neither.
        else Neither("is neither");
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        assert_eq!(Both::ALL, [Both::Former, Both::Latter]);
        for both in Both::ALL {
            assert_eq!(both.to_string().parse(), Ok(both));
            let json = serde_json::to_string(&both).unwrap_or_default();
            assert_eq!(json, format!("\"{both}\""));
        }
        for text in ["", "The.former", "the.former ", "latter", "*"] {
            assert_eq!(text.parse::<Both>(), Err(Neither), "{text:?}");
        }
    }
}
