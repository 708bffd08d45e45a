//! A browser's name, from its User-Agent.

/// Browsers by their product tokens, which later ones pretend to be: the first that is found counts.
const BROWSERS: [(&str, &str); 14] = [
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("OPR/", "Opera"),
    ("Vivaldi/", "Vivaldi"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("HeadlessChrome/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Version/", "Safari"),
    ("Trident/", "Internet Explorer"),
];

/// Systems by what the comment says.
const SYSTEMS: [(&str, &str); 8] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
];

/// Longest name of a program.
const NAME: usize = 40;

/// "Chrome on Linux"; the first product's name of a program that isn't a browser: "curl".
pub(crate) fn browser(user_agent: &str) -> String {
    let named = |names: &[(&str, &'static str)]| {
        let found = names.iter().find(|(token, _)| user_agent.contains(token));
        found.map(|(_, name)| *name)
    };
    match (named(&BROWSERS), named(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, system) => match (program(user_agent), system) {
            (Some(program), _) => program.to_owned(),
            (None, Some(system)) => format!("Unknown browser on {system}"),
            (None, None) => "Unknown browser".to_owned(),
        },
    }
}

/// The name of a program that names itself first.
fn program(user_agent: &str) -> Option<&str> {
    let product = user_agent.split(['/', ' ']).next()?;
    let is_name = (1..=NAME).contains(&product.len())
        && (product.bytes()).all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    Some(product).filter(|product| is_name && *product != "Mozilla")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn well_known_ones_have_names() {
        for (user_agent, expected) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
                "Chrome on Linux",
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36",
                "Chrome on Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 OPR/120.0.0.0",
                "Opera on Windows",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Safari/605.1.15",
                "Safari on macOS",
            ),
            (
                "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox on Linux",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1",
                "Chrome on iPhone",
            ),
            (
                "Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
                "Safari on iPad",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15; SM-S931B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36",
                "Samsung Internet on Android",
            ),
            (
                "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
                "Chrome on ChromeOS",
            ),
            ("curl/8.14.1", "curl"),
            ("python-requests/2.32.3", "python-requests"),
            (
                "Mozilla/5.0 (Windows NT 10.0)",
                "Unknown browser on Windows",
            ),
            ("Mozilla/5.0", "Unknown browser"),
            ("<script>alert(1)</script>", "Unknown browser"),
            ("", "Unknown browser"),
        ] {
            assert_eq!(browser(user_agent), expected, "{user_agent}");
        }
    }

    proptest! {
        #[test]
        fn names_are_short_whatever_is_sent(user_agent in any::<String>()) {
            let name = browser(&user_agent);
            prop_assert!(!name.is_empty() && name.len() <= NAME, "{}", name);
            prop_assert!(name.is_ascii() && !name.contains('<'), "{}", name);
        }
    }
}
