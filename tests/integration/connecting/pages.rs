//! The pages themselves: what they show, whom they trust, and what wrong links are answered.

use reqwest::StatusCode;

use super::{Visit, another_app, complete, connect, execute, link, used_links, walk};
use crate::command_line::process::Invocation;
use crate::support::gateway::Gateway;

#[tokio::test(flavor = "multi_thread")]
async fn the_chooser_has_a_button_for_each_provider_that_is_on() {
    let gateway = Gateway::builder()
        .set("PLUGINS__PLUGIN_A__LABEL", "Tom & <Jerry>")
        .start()
        .await;
    let page = Visit::to(link(&gateway, &gateway.app, &[])).await;
    assert_eq!(page.status, 200);
    page.is_page();
    assert_eq!(page.title(), "Connect your mailbox");
    for part in [
        "<bdi>Demo</bdi>",
        "id=\"connect-plugin_a\">Connect Tom &amp; &lt;Jerry&gt;</button>",
        "id=\"connect-plugin_b\">Connect Sandbox B</button>",
        "method=\"post\" action=\"?plugin=plugin_a\"",
        "method=\"post\" action=\"?plugin=plugin_b\"",
        "What <strong><bdi>Demo</bdi></strong> will be able to do",
        "aria-label=\"Allowed:\" focusable=\"false\"><path d=\"M20 6 9 17l-5-5\"/></svg><span>Send email from your address",
        "aria-label=\"Not allowed:\" focusable=\"false\"><path d=\"M18 6 6 18M6 6l12 12\"/></svg><span>Read the text",
        "lang=\"ja\" title=\"Japanese\" rel=\"nofollow\">日本語</a>",
        "How to remove the access",
        "your account at Tom &amp; &lt;Jerry&gt; or Sandbox B",
        "Mail gateway: <strong><bdi>127.0.0.1</bdi></strong>",
    ] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    assert!(!page.body.contains("<img"));
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(!policy.contains("img-src"), "{policy}");

    // Its buttons lead on, with what the link said.
    let said = [
        ("user_id", "ü&\"<b>"),
        ("login_hint", "ada+1@sandbox.example"),
    ];
    let address = link(&gateway, &gateway.app, &said);
    let page = Visit::to(address.clone()).await;
    let (before, _) = page
        .body
        .split_once("\"><button class=\"main\" id=\"connect-plugin_b\"")
        .unwrap();
    let (_, action) = before.rsplit_once("action=\"").unwrap();
    let href = action.replace("&amp;", "&");
    let next = address.join(&href).unwrap();
    let pairs: Vec<(String, String)> = next.query_pairs().into_owned().collect();
    let expected = [("plugin", "plugin_b")].into_iter().chain(said);
    let expected: Vec<_> = expected
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(pairs, expected);
    let begun = Visit::press(next).await;
    assert_eq!(
        begun.parameter("login_hint").as_deref(),
        Some("ada+1@sandbox.example")
    );
    assert_eq!(used_links(&gateway).await, 0, "to begin stores nothing");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_app_shows_as_text() {
    let gateway = Gateway::start().await;
    execute(
        &gateway,
        "UPDATE apps SET name = '<script>alert(1)</script>\" onload=\"x',
                multilink = true, logo_url = 'https://cdn.example:8443/a\"onerror=\"x.png?a=1&b=<c>'",
    )
    .await;
    let chooser = Visit::to(link(&gateway, &gateway.app, &[])).await;
    let done = connect(&gateway, &gateway.app, "grace@sandbox.example").await;
    let denied = connect(&gateway, &gateway.app, "deny@sandbox.example").await;
    for (page, status) in [(chooser, 200), (done, 200), (denied, 400)] {
        assert_eq!(page.status, status, "{}", page.body);
        page.is_page();
        for part in [
            "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&quot;x",
            "src=\"https://cdn.example:8443/a&quot;onerror=&quot;x.png?a=1&amp;b=&lt;c&gt;\"",
            "alt=\"Logo of &lt;script&gt;",
        ] {
            assert!(page.body.contains(part), "{part}: {}", page.body);
        }
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.ends_with("; img-src https://cdn.example:8443"),
            "{policy}"
        );
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_links_are_told_what_is_wrong() {
    let gateway = Gateway::builder()
        .set("PLUGINS__PLUGIN_B__CLIENT_ID", "")
        .start()
        .await;
    let base = &gateway.daemon.base_url;
    let key = gateway.app.pushable_key.expose();
    let unknown = format!("pk_{}", "a".repeat(43));
    for path in [unknown.as_str(), "pk_", "x", "%00", "%ff", &key[..45]] {
        let page = Visit::to(format!("{base}/connect/{path}")).await;
        page.is_failure(404, "link_not_found");
    }
    let long = |length: usize| "ü".repeat(length);
    let long_user = format!("user_id={}", long(256));
    let long_hint = format!("plugin=plugin_a&login_hint={}", long(321));
    for (query, code) in [
        ("plugin=plugin_c", "invalid_request"),
        ("plugin=", "invalid_request"),
        ("plugin=Plugin_A", "invalid_request"),
        ("plugin=plugin_b", "plugin_off"),
        ("plugin=plugin_a&plugin=plugin_a", "invalid_request"),
        ("user_id=a&user_id=b", "invalid_request"),
        (
            "login_hint=a&plugin=plugin_a&login_hint=",
            "invalid_request",
        ),
        ("user_id=a%00b", "invalid_request"),
        ("user_id=a%0Ab", "invalid_request"),
        ("user_id=%FF", "invalid_request"),
        ("login_hint=%C2%85", "invalid_request"),
        (&long_user, "invalid_request"),
        (&long_hint, "invalid_request"),
    ] {
        let address = format!("{base}/connect/{key}?{query}");
        Visit::to(&address).await.is_failure(422, code);
        Visit::press(address).await.is_failure(422, code);
    }
    for query in [
        format!("plugin=plugin_a&user_id={}", long(255)),
        format!("plugin=plugin_a&login_hint={}", long(320)),
        "plugin=plugin_a&user_id=&login_hint=&more=x&more=y".to_owned(),
    ] {
        let begun = Visit::press(format!("{base}/connect/{key}?{query}")).await;
        assert_eq!(begun.status, 303, "{query}");
        assert_eq!(begun.headers["cache-control"], "no-store");
        assert_eq!(begun.headers["referrer-policy"], "no-referrer");
    }
    let page = Visit::to(format!("{base}/connect/{key}")).await;
    assert_eq!(page.body.matches("<button").count(), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_multiuser_app_has_to_name_its_user() {
    let gateway = Gateway::start().await;
    let other = another_app(&gateway, "Other").await;
    execute(
        &gateway,
        "UPDATE apps SET multiuser = true WHERE name = 'Other'",
    )
    .await;
    for parameters in [
        &[][..],
        &[("plugin", "plugin_a")],
        &[("plugin", "plugin_a"), ("user_id", "")],
    ] {
        let page = Visit::to(link(&gateway, &other, parameters)).await;
        page.is_failure(422, "invalid_request");
        assert!(page.body.contains("user_id"), "{}", page.body);
    }
    let named = [("plugin", "plugin_a"), ("user_id", "u")];
    let begun = Visit::press(link(&gateway, &other, &named)).await;
    assert_eq!(begun.status, 303);

    // Changed on the way: the user is told, and nothing is kept.
    let hint = [
        ("plugin", "plugin_a"),
        ("login_hint", "eve@sandbox.example"),
    ];
    let callback = super::until_callback(&gateway, &gateway.app, &hint).await;
    execute(&gateway, "UPDATE apps SET multiuser = true").await;
    complete(callback).await.is_failure(400, "user_id_missing");
    super::left_with(&gateway, 1).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_or_a_provider_the_page_says_so() {
    let gateway = Gateway::start().await;
    let (_folder, files) = crate::command_line::process::certificates();
    let mut bare = Invocation::serve(&gateway.database_url, &files).start();
    let addresses = bare.ready().await;
    let key = gateway.app.pushable_key.expose();
    for query in ["", "?plugin=plugin_a"] {
        let url = format!("http://{}/connect/{key}{query}", addresses.http);
        let page = Visit::to(url).await;
        page.is_failure(503, "not_set_up");
        assert!(page.headers.contains_key("retry-after"));
    }
    bare.terminate().await;

    let callback = super::until_callback(
        &gateway,
        &gateway.app,
        &[
            ("plugin", "plugin_a"),
            ("login_hint", "eve@sandbox.example"),
        ],
    )
    .await;
    gateway.daemon.pool.close().await;
    for address in [
        link(&gateway, &gateway.app, &[]),
        link(&gateway, &gateway.app, &[("plugin", "plugin_a")]),
        callback,
    ] {
        let page = Visit::to(address).await;
        page.is_failure(StatusCode::SERVICE_UNAVAILABLE.as_u16(), "unavailable");
        assert!(page.headers.contains_key("retry-after"));
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callback_by_itself_is_no_page_of_anybody() {
    let gateway = Gateway::start().await;
    let base = &gateway.daemon.base_url;
    for (query, status, code) in [
        ("", 400, "invalid_callback"),
        ("code=c", 400, "invalid_callback"),
        ("state=&code=c", 400, "invalid_callback"),
        ("state=s&state=s&code=c", 400, "invalid_callback"),
        ("state=s&code=c&code=c", 400, "invalid_callback"),
        ("state=s&code=c", 410, "link_expired"),
        ("state=%00%ff&error=<b>", 410, "link_expired"),
    ] {
        let page = Visit::to(format!("{base}/oauth/callback?{query}")).await;
        page.is_failure(status, code);
    }
    // What is wrong with the answer is told before the way is used up.
    let parameters = [
        ("plugin", "plugin_b"),
        ("login_hint", "eve@sandbox.example"),
    ];
    let callback = super::until_callback(&gateway, &gateway.app, &parameters).await;
    let page = Visit::to(format!("{callback}&code=another")).await;
    page.is_failure(400, "invalid_callback");
    assert_eq!(complete(callback).await.status, 200);
    let page = walk(&gateway, &gateway.app, &parameters).await;
    assert_eq!(page.title(), "Your mailbox is connected");
    gateway.stop().await;
}
