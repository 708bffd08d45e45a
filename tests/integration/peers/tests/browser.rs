//! That the browser does what it is told, and tells what happened.

use std::sync::Arc;

use axum::extract::{Form, Query};
use axum::http::StatusCode;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::{Html, Redirect};
use axum::routing::get;
use axum::{Router, serve};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::super::browser::{Browser, Home, Step, artefact, in_use};

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'";

/// Answers on loopback for as long as the test runs: the URL without a slash.
async fn site() -> String {
    let page = async || {
        let page = "<!doctype html><title>Greeter</title><meta name=viewport content=width=device-width>\
            <script src=/width.js></script><h1>Who   are\nyou?</h1><p id=width>no scripts</p>\
            <form method=post action=/greet><label>Name <input id=name name=name></label>\
            <button>Greet</button></form><a href=/gone>Elsewhere</a>";
        ([(CONTENT_SECURITY_POLICY, POLICY)], Html(page))
    };
    let script = async || {
        let script = "addEventListener('load', () => { \
            document.getElementById('width').textContent = `${innerWidth} wide`; })";
        ([("content-type", "text/javascript")], script)
    };
    let greet = async |Form(fields): Form<Vec<(String, String)>>| {
        Redirect::to(&format!("/greeting?name={}", fields[0].1))
    };
    let greeting = async |Query(fields): Query<Vec<(String, String)>>| {
        Html(format!("<title>Greeting</title><p>Hello, {}!", fields[0].1))
    };
    let gone = async || (StatusCode::GONE, Html("<title>Gone</title>gone"));
    let unsafe_page = async || {
        let page = "<title>Unsafe</title><p>shown</p><img src=/picture.png>";
        ([(CONTENT_SECURITY_POLICY, POLICY)], Html(page))
    };
    let throwing =
        async || Html("<title>Throwing</title><script>throw new Error('oh no')</script>");
    let application = Router::new()
        .route("/", get(page))
        .route("/width.js", get(script))
        .route("/greet", axum::routing::post(greet))
        .route("/greeting", get(greeting))
        .route("/gone", get(gone))
        .route("/unsafe", get(unsafe_page))
        .route("/throwing", get(throwing))
        // The browser asks for it by itself.
        .route("/favicon.ico", get(async || StatusCode::NO_CONTENT));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { serve(listener, application).await.unwrap() });
    url
}

#[tokio::test]
async fn forms_are_filled_and_sent_on_desktop_and_phone_with_and_without_scripts() {
    let site = site().await;
    let browsers = [
        ("desktop", Browser::desktop(), "1280 wide"),
        ("phone", Browser::phone(), "390 wide"),
        (
            "desktop-without-scripts",
            Browser::desktop().without_javascript(),
            "no scripts",
        ),
    ];
    for (name, browser, shown) in browsers {
        let picture = artefact(&format!("browser-{name}"));
        let _ = std::fs::remove_file(&picture);
        let results = browser
            .run(&[
                Step::goto(&site),
                Step::expect_text("Who are you?"),
                Step::expect_text(shown),
                Step::fill("#name", "Zo\u{eb}"),
                Step::read("#name"),
                Step::screenshot(&format!("browser-{name}")),
                Step::click("text=Greet"),
                Step::expect_url(r"/greeting\?name=Zo"),
                Step::expect_text("Hello, Zo\u{eb}!"),
                Step::read("p"),
            ])
            .await;
        let first = &results[0];
        assert_eq!(first.url, format!("{site}/"));
        assert_eq!((first.title.as_str(), first.status), ("Greeter", Some(200)));
        assert_eq!(results[4].text.as_deref(), Some("Zo\u{eb}"));
        let clicked = &results[6];
        assert_eq!(clicked.url, format!("{site}/greeting?name=Zo%C3%AB"));
        assert_eq!(
            (clicked.title.as_str(), clicked.status),
            ("Greeting", Some(200))
        );
        assert_eq!(results[9].text.as_deref(), Some("Hello, Zo\u{eb}!"));
        assert!(
            results.iter().all(|it| it.console_errors.is_empty()),
            "{results:?}"
        );
        let picture = std::fs::read(picture).unwrap();
        assert!(picture.starts_with(b"\x89PNG"));
        // The width in the first chunk (PNG, section 11.2.1).
        let width = u32::from_be_bytes(picture[16..20].try_into().unwrap());
        assert_eq!(width, if name == "phone" { 390 } else { 1280 });
    }
}

#[tokio::test]
async fn what_the_browser_says_is_told_and_what_it_refuses_fails() {
    let site = site().await;
    let unsafe_page = [
        Step::goto(format!("{site}/unsafe")),
        Step::expect_text("shown"),
    ];
    for browser in [Browser::desktop(), Browser::desktop().without_javascript()] {
        let failure = browser.try_run(&unsafe_page).await.unwrap_err();
        assert!(
            failure.contains("the browser refused something"),
            "{failure}"
        );
        assert!(failure.contains("/picture.png"), "{failure}");
        let results = browser.allow_refused().run(&unsafe_page).await;
        let refused: Vec<&String> = results.iter().flat_map(|it| &it.refused).collect();
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(
            refused[0].contains("Content Security Policy"),
            "{refused:?}"
        );
    }
    let results = Browser::desktop()
        .run(&[
            Step::goto(format!("{site}/throwing")),
            Step::goto(&site),
            Step::click("text=Elsewhere"),
        ])
        .await;
    let said: Vec<&String> = results.iter().flat_map(|it| &it.console_errors).collect();
    assert!(said[0].contains("oh no"), "{said:?}");
    assert!(said[1].contains("410"), "{said:?}");
    assert!(said[1].contains("/gone"), "{said:?}");
    assert_eq!(
        (results[2].title.as_str(), results[2].status),
        ("Gone", Some(410))
    );
}

#[tokio::test]
async fn a_step_that_fails_is_named() {
    let site = site().await;
    let cases = [
        (
            Step::expect_text("Who am I?"),
            "expected the text \"Who am I?\", but there is: Who are you?",
        ),
        (
            Step::expect_url("/greeting$"),
            "expected a URL like /greeting$, but there is: http",
        ),
        (Step::click("#nothing"), "waiting for locator('#nothing')"),
        (
            // Another loopback address, to which nothing has to be resolved.
            Step::goto("http://127.0.0.2:9999/"),
            "ERR_NAME_NOT_RESOLVED",
        ),
    ];
    let failures = cases.map(|(step, reason)| {
        let site = &site;
        async move {
            let steps = [Step::goto(site), step, Step::expect_text("never reached")];
            let browser = Browser::phone().impatient();
            let failure = browser.try_run(&steps).await.unwrap_err();
            assert!(failure.starts_with("step 2 {"), "{failure}");
            assert!(failure.contains(reason), "{failure}");
        }
    });
    futures_util::future::join_all(failures).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_browser_whose_run_is_given_up() {
    let reached = Arc::new(Notify::new());
    let told = Arc::clone(&reached);
    // An answer that never comes.
    let silent = async move || {
        told.notify_one();
        std::future::pending::<()>().await;
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let application = Router::new().route("/", get(silent));
    tokio::spawn(async move { serve(listener, application).await.unwrap() });
    let home = Home::new();
    let folder = home.folder.clone();
    let browser = Browser::desktop();
    let steps = [Step::goto(&url)];
    let mut run = Box::pin(browser.run_in(&home, &steps));
    tokio::select! {
        outcome = &mut run => panic!("{outcome:?}"),
        () = reached.notified() => assert!(in_use(&folder)),
    }
    drop(run);
    drop(home);
    assert!(!in_use(&folder) && !folder.exists());
}
