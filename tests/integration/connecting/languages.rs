//! The pages in each language: which one is chosen, that it is kept on the way, and that names stay what they are.

use mailgate_types::language::Language;
use reqwest::header::{ACCEPT_LANGUAGE, COOKIE, REFERER};
use url::Url;

use super::{Visit, another_app, browser, cookies_at, execute, link, until_callback};
use crate::peers::browser::{Browser, Step};
use crate::support::gateway::Gateway;

const EVE: &str = "eve@sandbox.example";

/// The titles of the page that asks, of success and of failure.
fn titles(language: Language) -> [&'static str; 3] {
    match language {
        Language::English => [
            "Connect your mailbox",
            "Your mailbox is connected",
            "Your mailbox is not connected",
        ],
        Language::German => [
            "Postfach verbinden",
            "Ihr Postfach ist verbunden",
            "Ihr Postfach ist nicht verbunden",
        ],
        Language::French => [
            "Connecter votre boîte mail",
            "Votre boîte mail est connectée",
            "Votre boîte mail n’est pas connectée",
        ],
        Language::Spanish => [
            "Conecte su buzón de correo",
            "Su buzón está conectado",
            "Su buzón no está conectado",
        ],
        Language::Japanese => [
            "メールボックスの接続",
            "メールボックスが接続されました",
            "メールボックスは接続されていません",
        ],
    }
}

/// Opens an address in a browser that prefers these languages.
async fn open(url: Url, accepted: &str) -> Visit {
    let cookies = cookies_at(url.as_str());
    let request = browser().get(url).header(COOKIE, cookies);
    Visit::by(request.header(ACCEPT_LANGUAGE, accepted)).await
}

/// An address in a page, by what stands before it.
#[track_caller]
fn address(page: &Visit, before: &str) -> String {
    let (_, rest) = page.body.split_once(before).expect(before);
    rest.split('"').next().unwrap().replace("&amp;", "&")
}

/// The page has a link to itself in every other language.
#[track_caller]
fn offers_the_others(page: &Visit, own: Language) {
    for language in Language::ALL {
        let link = format!("hreflang=\"{}\"", language.tag());
        assert_eq!(
            page.body.contains(&link),
            language != own,
            "{link}: {}",
            page.body
        );
        assert!(page.body.contains(language.own_name()), "{}", page.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_or_else_the_browser_chooses() {
    let gateway = Gateway::start().await;
    for (locale, accepted, tag) in [
        ("", "", "en"),
        ("", "it,*;q=0.1", "en"),
        ("", "de-AT,de;q=0.9,en;q=0.8", "de"),
        ("", "it,fr;q=0.3,es;q=0.4", "es"),
        ("", "de;q=0,ja;q=0.001", "ja"),
        ("ja", "de", "ja"),
        ("fr-CA", "de", "fr"),
        ("de_CH", "", "de"),
        ("en", "de", "en"),
        ("tlh", "de", "de"),
        ("\"><script>", "", "en"),
    ] {
        let parameters = [("locale", locale)];
        let parameters = &parameters[..usize::from(!locale.is_empty())];
        let page = open(link(&gateway, &gateway.app, parameters), accepted).await;
        assert_eq!(page.status, 200, "{}", page.body);
        page.is_page_in(tag);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_language_of_a_link_lasts_until_the_end() {
    let gateway = Gateway::start().await;
    execute(&gateway, "UPDATE apps SET multilink = true").await;
    for language in Language::ALL {
        let tag = language.tag();
        let [asks, success, failure] = titles(language);
        let start = link(&gateway, &gateway.app, &[("locale", tag)]);
        let page = Visit::to(start.clone()).await;
        page.is_page_in(tag);
        assert_eq!(page.title(), asks);
        offers_the_others(&page, language);
        let button = "method=\"post\" action=\"";
        let action = start.join(&address(&page, button)).unwrap();
        for (who, title) in [(EVE, success), ("deny@sandbox.example", failure)] {
            let begun = Visit::press(format!("{action}&login_hint={who}")).await;
            let asked = begun.parameter("ui_locales");
            assert_eq!(asked.as_deref(), Some(tag), "the provider");
            let back = Visit::to(begun.location()).await.location();
            let page = Visit::to(back.clone()).await.end().await;
            page.is_page_in(tag);
            assert_eq!(page.title(), title);
            offers_the_others(&page, language);
            // What can't be completed any more says so in it, too.
            let page = Visit::to(back).await;
            assert_eq!(page.status, 410);
            page.is_page_in(tag);
            assert!(!page.body.contains("code="), "{}", page.body);
        }
        let again = Visit::press(format!("{action}&login_hint=deny@sandbox.example")).await;
        let back = Visit::to(again.location()).await.location();
        let page = Visit::to(back).await.end().await;
        let again = address(&page, "id=\"try-again\" href=\"");
        Visit::to(again).await.is_page_in(tag);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_browser_prefers_is_left_to_the_browser() {
    let gateway = Gateway::start().await;
    let parameters = [("plugin", "plugin_b"), ("login_hint", EVE)];
    let callback = until_callback(&gateway, &gateway.app, &parameters).await;
    let result = open(callback, "fr").await.location();
    assert!(!result.as_str().contains("locale"), "{result}");
    open(result.clone(), "fr").await.is_page_in("fr");
    open(result.clone(), "ja").await.is_page_in("ja");
    // A reader who chooses another one at the end gets it.
    let page = open(result.clone(), "fr").await;
    let german = address(&page, "<a href=\"");
    assert!(german.ends_with("&locale=en"), "{german}");
    open(result.join(&german).unwrap(), "fr")
        .await
        .is_page_in("en");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_takes_a_language_its_own_way() {
    for (kind, expected) in [
        ("google", Some("hl")),
        ("microsoft", None),
        ("generic", Some("ui_locales")),
    ] {
        let gateway = Gateway::builder()
            .set("PLUGINS__PLUGIN_B__KIND", kind)
            .start()
            .await;
        let parameters = [("plugin", "plugin_b"), ("locale", "de-AT")];
        let begun = Visit::press(link(&gateway, &gateway.app, &parameters)).await;
        for name in ["hl", "ui_locales", "locale"] {
            let found = begun.parameter(name);
            let asked = (expected == Some(name)).then_some("de");
            assert_eq!(found.as_deref(), asked, "{kind}: {name}");
        }
        let begun = Visit::press(link(&gateway, &gateway.app, &parameters[..1])).await;
        for name in ["hl", "ui_locales"] {
            assert_eq!(begun.parameter(name), None, "{kind}: {name}");
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_said_in_it_with_the_request() {
    let gateway = Gateway::builder()
        .set("PORTAL__SUPPORT_URL", "https://help.example")
        .start()
        .await;
    let base = &gateway.daemon.base_url;
    let key = gateway.app.pushable_key.expose();
    for language in Language::ALL {
        let tag = language.tag();
        for (path, status) in [
            ("/connect/pk_x?", 404),
            (&*format!("/connect/{key}?plugin=plugin_c&"), 422),
            (&*format!("/connect/{key}?session=x&"), 410),
            ("/connect/result?shows=x&", 404),
            ("/oauth/callback?", 400),
        ] {
            let page = Visit::to(format!("{base}{path}locale={tag}")).await;
            assert_eq!(page.status, status, "{path}: {}", page.body);
            page.is_page_in(tag);
            let id = page.headers["x-request-id"].to_str().unwrap();
            assert!(page.body.contains(&format!("<code>{id}</code>")), "{id}");
            assert!(page.body.contains("href=\"https://help.example\""));
            if !path.starts_with("/oauth") {
                offers_the_others(&page, language);
            }
        }
        // Developers read English, whatever their browser prefers.
        let page = Visit::to(format!("{base}/connect/{key}?plugin=x&locale={tag}")).await;
        assert!(
            page.body.contains("<!-- For developers: plugin must be"),
            "{}",
            page.body
        );
        let request = browser().get(format!("{base}/nothing?locale={tag}"));
        let page = Visit::by(request.header("accept", "text/html")).await;
        assert_eq!(page.status, 404);
        page.is_page_in(tag);
        offers_the_others(&page, language);
    }
    // What the app is told is English, too.
    execute(
        &gateway,
        "UPDATE apps SET callback_url = 'https://app.example/'",
    )
    .await;
    let parameters = [
        ("plugin", "plugin_b"),
        ("login_hint", "deny@sandbox.example"),
        ("locale", "de"),
    ];
    let callback = until_callback(&gateway, &gateway.app, &parameters).await;
    let told = Visit::to(callback).await.parameter("error_description");
    assert!(
        told.as_deref()
            .is_some_and(|told| told.starts_with("Access was denied at")),
        "{told:?}"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_text_in_every_language() {
    let gateway = Gateway::start().await;
    // Markup, and marks that turn the text after them (U+202E, U+2066).
    execute(
        &gateway,
        "UPDATE apps SET multilink = true, name = '<i>' || chr(8238) || chr(8294) || 'x{label}'",
    )
    .await;
    let name = "&lt;i&gt;\u{202e}\u{2066}x{label}";
    for language in Language::ALL {
        let tag = language.tag();
        let asked = [("plugin", "plugin_b"), ("locale", tag), ("login_hint", EVE)];
        let page = Visit::to(link(&gateway, &gateway.app, &asked)).await;
        let done = super::walk(&gateway, &gateway.app, &asked).await;
        let denied = [
            ("plugin", "plugin_b"),
            ("locale", tag),
            ("login_hint", "deny@sandbox.example"),
        ];
        let denied = super::walk(&gateway, &gateway.app, &denied).await;
        for page in [page, done, denied] {
            page.is_page_in(tag);
            assert!(!page.body.contains("<i>"), "{}", page.body);
            // Wherever it stands it stands by itself.
            let isolated = format!("<bdi>{name}</bdi>");
            let count = page.body.matches(name).count();
            assert!(count > 0, "{}", page.body);
            assert_eq!(page.body.matches(&isolated).count(), count, "{}", page.body);
        }
        let begun = Visit::press(link(&gateway, &gateway.app, &asked)).await;
        let state = begun.parameter("state").unwrap();
        let base = &gateway.daemon.base_url;
        let said = format!("{base}/oauth/callback?state={state}&error=x&error_description=%3Cb%3E");
        let page = super::complete(said.parse().unwrap()).await;
        page.is_page_in(tag);
        assert!(page.body.contains("<bdi>&lt;b&gt;</bdi>"), "{}", page.body);
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_buttons_of_companies_are_their_own() {
    let gateway = Gateway::builder()
        .set("PLUGINS__PLUGIN_A__KIND", "google")
        .set("PLUGINS__PLUGIN_A__LABEL", "Google")
        .set(
            "PLUGINS__PLUGIN_A__AUTHORIZE_URL",
            "https://accounts.google.com/o/oauth2/v2/auth",
        )
        .set("PLUGINS__PLUGIN_B__KIND", "microsoft")
        .set("PLUGINS__PLUGIN_B__LABEL", "Microsoft & more")
        .set(
            "PLUGINS__PLUGIN_B__AUTHORIZE_URL",
            "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
        )
        .start()
        .await;
    for (tag, google, microsoft) in [
        ("en", "Sign in with Google", "Sign in with Microsoft"),
        ("de", "Über Google anmelden", "Mit Microsoft anmelden"),
        (
            "fr",
            "Se connecter avec Google",
            "Se connecter avec Microsoft",
        ),
        (
            "es",
            "Iniciar sesión con Google",
            "Iniciar sesión con Microsoft",
        ),
        ("ja", "Google でログイン", "Microsoft でサインイン"),
    ] {
        let page = Visit::to(link(&gateway, &gateway.app, &[("locale", tag)])).await;
        page.is_page_in(tag);
        for part in [
            &format!("</svg><span>{google}</span></button>"),
            &format!("</svg><span>{microsoft}</span></button>"),
            "class=\"sign-in google\" id=\"connect-plugin_a\"",
            "class=\"sign-in microsoft\" id=\"connect-plugin_b\"",
            "<p class=\"soft\">Microsoft &amp; more</p>",
            "href=\"https://myaccount.google.com/connections\"",
            "href=\"https://account.live.com/consent/Manage\"",
            "href=\"https://myapps.microsoft.com\"",
        ] {
            assert!(page.body.contains(part), "{part}: {}", page.body);
        }
    }
    // Beside them no other button is more prominent, and pages of others aren't sent to theirs.
    gateway.stop().await;
    let gateway = Gateway::builder()
        .set("PLUGINS__PLUGIN_B__KIND", "google")
        .start()
        .await;
    let page = Visit::to(link(&gateway, &gateway.app, &[])).await;
    assert!(
        page.body
            .contains("class=\"sign-in\" id=\"connect-plugin_a\""),
        "{}",
        page.body
    );
    assert!(!page.body.contains("myaccount.google.com"), "{}", page.body);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn for_everybody_in_every_language() {
    let gateway = Gateway::builder()
        .set("PLUGINS__PLUGIN_A__KIND", "google")
        .set("PORTAL__NAME", "Example Mail GmbH")
        .set("PORTAL__SUPPORT_URL", "https://help.example")
        .start()
        .await;
    let microsoft = another_app(&gateway, "Donaudampfschifffahrtsgesellschaftskapitän").await;
    execute(
        &gateway,
        "UPDATE apps SET multilink = true, multiuser = false",
    )
    .await;
    execute(&gateway, "UPDATE apps SET require_connect_session = false").await;
    for (browser, device) in [(Browser::desktop(), "desktop"), (Browser::phone(), "phone")] {
        let mut steps = Vec::new();
        for scheme in ["light", "dark"] {
            steps.push(Step::ColorScheme(scheme));
            for language in Language::ALL {
                let tag = language.tag();
                let [asks, success, failure] = titles(language);
                let picture =
                    |page: &str| Step::screenshot(&format!("{page}-{tag}-{device}-{scheme}"));
                let start = link(&gateway, &microsoft, &[("locale", tag)]);
                let address = format!("{device}@sandbox.example");
                steps.extend([
                    Step::goto(start.as_str()),
                    Step::expect_text(asks),
                    Step::Accessible(()),
                    Step::Fits(()),
                    picture("connect-chooser"),
                    Step::click("#connect-plugin_b"),
                    Step::click("role=button[name=\"Deny\"]"),
                    Step::expect_text(failure),
                    Step::Accessible(()),
                    Step::Fits(()),
                    picture("connect-denied"),
                    Step::click("#try-again"),
                    Step::expect_text(asks),
                    Step::click("#connect-plugin_b"),
                    Step::fill("#address", address),
                    Step::click("role=button[name=\"Continue with this address\"]"),
                    Step::expect_text(success),
                    Step::Accessible(()),
                    Step::Fits(()),
                    picture("connect-success"),
                ]);
            }
        }
        browser.run(&steps).await;
    }
    gateway.stop().await;
}

/// A site that users come from is offered at the end, in their language.
#[tokio::test(flavor = "multi_thread")]
async fn back_to_the_app_in_every_language() {
    let gateway = Gateway::start().await;
    execute(&gateway, "UPDATE apps SET multilink = true").await;
    for (tag, words) in [
        (
            "en",
            "Back to <strong><bdi>Demo</bdi></strong> (<strong><bdi>app.example</bdi></strong>)",
        ),
        (
            "de",
            "Zurück zu <strong><bdi>Demo</bdi></strong> (<strong><bdi>app.example</bdi></strong>)",
        ),
        (
            "fr",
            "Retour à <strong><bdi>Demo</bdi></strong> (<strong><bdi>app.example</bdi></strong>)",
        ),
        (
            "es",
            "Volver a <strong><bdi>Demo</bdi></strong> (<strong><bdi>app.example</bdi></strong>)",
        ),
        (
            "ja",
            "<strong><bdi>Demo</bdi></strong> に戻る (<strong><bdi>app.example</bdi></strong>)",
        ),
    ] {
        let asked = [("plugin", "plugin_b"), ("locale", tag), ("login_hint", EVE)];
        let start = link(&gateway, &gateway.app, &asked);
        let request = browser()
            .get(start)
            .header(REFERER, "https://app.example/x");
        let page = Visit::by(request).await;
        assert_eq!(page.status, 200);
        let callback = until_callback(&gateway, &gateway.app, &asked).await;
        let result = Visit::to(callback).await.location();
        let key = gateway.app.pushable_key.expose();
        let cookies = format!("mailgate_back={key}~https://app.example");
        let page = Visit::by(browser().get(result).header(COOKIE, cookies)).await;
        page.is_page_in(tag);
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    gateway.stop().await;
}
