//! A delivery as a command for curl.

use mailgate_domain::webhooks::RequestHeader;

/// The command, for any POSIX shell: whatever its parts hold, they are words and nothing else.
pub(crate) fn command(url: &str, headers: &[RequestHeader], body: &str) -> String {
    let mut command = "curl --globoff --request POST".to_owned();
    for (name, value) in headers {
        add(&mut command, "--header", &format!("{name}: {value}"));
    }
    // Unlike `--data`, it reads no file where the text begins with `@`.
    add(&mut command, "--data-raw", body);
    add(&mut command, "--url", url);
    command
}

fn add(command: &mut String, option: &str, value: &str) {
    command.push_str(" \\\n  ");
    command.push_str(option);
    command.push(' ');
    command.push_str(&quoted(value));
}

/// Within single quotes everything stands for itself but their end.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// What a program is given by the shell that runs a command: `curl` is this function.
    fn arguments(command: &str) -> Vec<String> {
        let script = format!("curl() {{ printf '%s\\0' \"$@\"; }}\n{command}\n");
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\0').map(ToOwned::to_owned).collect()
    }

    #[test]
    fn the_shell_passes_everything_on_as_it_is() {
        let headers = [("webhook-id".to_owned(), "msg_1".to_owned())];
        for body in [
            "",
            "{\"a\":1}",
            "it's '' '\\'' quoted\"",
            "two\nlines\r\n\n",
            "Grüße, 日本 🎉",
            "$(id) `id` $HOME ${x} !! \\ * ~ # & ; | > /dev/null",
            "@/etc/passwd",
            "-v",
        ] {
            let url = format!("https://app.example/hook?it='{}'", body.len());
            let given = arguments(&command(&url, &headers, body));
            let expected = [
                "--globoff",
                "--request",
                "POST",
                "--header",
                "webhook-id: msg_1",
                "--data-raw",
                body,
                "--url",
                &url,
            ];
            assert_eq!(given, expected);
        }
    }

    #[test]
    fn it_is_written_on_several_lines() {
        let headers = [("content-type".to_owned(), "application/json".to_owned())];
        let expected = "curl --globoff --request POST \\\n  --header 'content-type: application/json' \\\n  \
                        --data-raw '{}' \\\n  --url 'https://app.example/'";
        assert_eq!(command("https://app.example/", &headers, "{}"), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn no_text_ends_its_quotes(body in "[^\0]{0,60}|['\\\\\"$`\n! ]{0,20}") {
            let given = arguments(&command("https://app.example/", &[], &body));
            prop_assert_eq!(&given[4], &body);
            prop_assert_eq!(given.len(), 7);
        }
    }
}
