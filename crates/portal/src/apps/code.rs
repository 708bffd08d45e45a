//! Code samples that send a message, with an app's own values: those of `examples/`, which are tested.

/// Stands for the send key until it is revealed.
pub(crate) const PLACEHOLDER: &str = "YOUR_SEND_KEY";

/// The values for the samples.
pub(crate) struct Values<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) pushable_key: &'a str,
    pub(crate) send_key: &'a str,
}

/// A code sample.
pub(crate) struct Sample {
    pub(crate) language: &'static str,
    /// For the copy button.
    pub(crate) id: &'static str,
    pub(crate) text: String,
}

impl Values<'_> {
    /// One line for a shell.
    pub(crate) fn curl(&self) -> String {
        format!(
            "curl {}/send -H 'X-Send-Key: {}' -H 'Content-Type: application/json' -d '{{\"pk\":\"{}\",\"to\":\"bob@example.com\",\"subject\":\"Hello\",\"body\":\"It works.\"}}'",
            self.base_url, self.send_key, self.pushable_key
        )
    }

    /// In five languages.
    pub(crate) fn samples(&self) -> [Sample; 5] {
        [
            self.sample(
                "Python",
                "code-python",
                include_str!("../../../../examples/python/send_rest.py"),
                &[(
                    "(os.environ[name] for name in (\"MAILGATE_URL\", \"MAILGATE_PK\", \"MAILGATE_SEND_KEY\"))",
                    "(\"MAILGATE_URL\", \"MAILGATE_PK\", \"MAILGATE_SEND_KEY\")",
                ), ("json, os, time", "json, time")],
            ),
            self.sample(
                "JavaScript",
                "code-javascript",
                include_str!("../../../../examples/javascript/send-rest.mjs"),
                &[
                    ("setting(\"MAILGATE_SEND_KEY\")", "\"MAILGATE_SEND_KEY\""),
                    ("setting(\"MAILGATE_PK\")", "\"MAILGATE_PK\""),
                    ("${setting(\"MAILGATE_URL\")}", "MAILGATE_URL"),
                    (
                        "function setting(name) {\n  if (!process.env[name]) throw new Error(`${name} is not set`);\n  return process.env[name];\n}\n\n",
                        "",
                    ),
                ],
            ),
            self.sample(
                "PHP",
                "code-php",
                include_str!("../../../../examples/php/send-rest.php"),
                &[
                    ("setting('MAILGATE_PK')", "'MAILGATE_PK'"),
                    ("setting('MAILGATE_URL')", "'MAILGATE_URL'"),
                    ("setting('MAILGATE_SEND_KEY')", "'MAILGATE_SEND_KEY'"),
                    (
                        "function setting(string $name): string\n{\n    return getenv($name) ?: throw new RuntimeException(\"$name is not set\");\n}\n\n",
                        "",
                    ),
                ],
            ),
            self.sample(
                "Ruby",
                "code-ruby",
                include_str!("../../../../examples/ruby/send_rest.rb"),
                &[
                    ("#{ENV.fetch(\"MAILGATE_URL\")}", "MAILGATE_URL"),
                    ("ENV.fetch(\"MAILGATE_PK\")", "\"MAILGATE_PK\""),
                    ("ENV.fetch(\"MAILGATE_SEND_KEY\")", "\"MAILGATE_SEND_KEY\""),
                ],
            ),
            self.sample(
                "Go",
                "code-go",
                include_str!("../../../../examples/go/send-rest/main.go"),
                &[
                    ("setting(\"MAILGATE_PK\")", "\"MAILGATE_PK\""),
                    ("setting(\"MAILGATE_URL\")", "\"MAILGATE_URL\""),
                    ("setting(\"MAILGATE_SEND_KEY\")", "\"MAILGATE_SEND_KEY\""),
                    (
                        "func setting(name string) string {\n\tvalue := os.Getenv(name)\n\tif value == \"\" {\n\t\tlog.Fatalf(\"%s is not set\", name)\n\t}\n\treturn value\n}\n\n",
                        "",
                    ),
                    ("\t\"os\"\n", ""),
                ],
            ),
        ]
    }

    /// A sample with its values inlined instead of read from the environment.
    fn sample(
        &self,
        language: &'static str,
        id: &'static str,
        program: &str,
        changes: &[(&str, &str)],
    ) -> Sample {
        let mut text = program.to_owned();
        for (from, to) in changes {
            text = text.replace(from, to);
        }
        for (name, value) in [
            ("MAILGATE_URL", self.base_url),
            ("MAILGATE_PK", self.pushable_key),
            ("MAILGATE_SEND_KEY", self.send_key),
        ] {
            text = text.replace(name, value);
        }
        Sample { language, id, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_the_values_and_reads_no_environment() {
        let values = Values {
            base_url: "https://gateway.example",
            pushable_key: "pk_demo",
            send_key: PLACEHOLDER,
        };
        for Sample { language, text, .. } in values.samples() {
            for value in ["https://gateway.example", "pk_demo", PLACEHOLDER] {
                assert!(text.contains(value), "{language}: {value}");
            }
            for rest in [
                "MAILGATE_",
                "setting(",
                "environ",
                "ENV",
                "getenv",
                "process.env",
                "os.",
            ] {
                assert!(!text.contains(rest), "{language}: {rest} in {text}");
            }
        }
        let curl = values.curl();
        assert!(curl.contains(r#"{"pk":"pk_demo","#), "{curl}");
    }
}
