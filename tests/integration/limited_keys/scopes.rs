//! Every operation with the API secret names what it asks of an additional one, and asks for just that.

use super::api_secrets::{all_scopes, limited};
use super::*;

/// The operations with the API secret: method, path, and what they ask for.
async fn operations(gateway: &Gateway) -> Vec<(Method, String, String)> {
    let document = Answer::to(anonymous(gateway, Method::GET, "/openapi.json")).await;
    let document = document.body;
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let security = operation["security"].as_array().unwrap();
            let Some(roles) = security.iter().find_map(|it| it.get("api_secret")) else {
                continue;
            };
            let roles = roles.as_array().unwrap();
            assert_eq!(roles.len(), 1, "{method} {path} names what it asks for");
            let said = operation["responses"]["403"]["description"].as_str();
            assert!(
                said.unwrap().contains("insufficient_scope"),
                "{method} {path}"
            );
            let method = method.to_uppercase().parse().unwrap();
            found.push((method, path.clone(), roles[0].as_str().unwrap().to_owned()));
        }
    }
    found
}

/// The path with an app that is there and ids that aren't.
fn concrete(gateway: &Gateway, path: &str) -> String {
    let mut concrete = path.replace("{pushable_key}", gateway.app.pushable_key.expose());
    for (name, id) in [
        ("{webhook_id}", "wconf_01h2xcejqtf2nbrexx3vqjhp41"),
        ("{delivery_id}", "wdel_01h2xcejqtf2nbrexx3vqjhp41"),
        ("{credential_id}", "cred_01h2xcejqtf2nbrexx3vqjhp41"),
        ("{user_key}", "0193f8a2-6c1e-7d54-9b1a-3f2c5d7e9a10"),
        ("{log_id}", "log_01h2xcejqtf2nbrexx3vqjhp41"),
        ("{id}", "x_01h2xcejqtf2nbrexx3vqjhp41"),
    ] {
        concrete = concrete.replace(name, id);
    }
    assert!(!concrete.contains('{'), "{concrete}");
    concrete
}

#[tokio::test(flavor = "multi_thread")]
async fn each_operation_asks_for_its_scope_and_no_other() {
    let gateway = Gateway::builder()
        .set("LIMITS__REQUESTS_PER_SECOND", 100_000)
        .set("LIMITS__REQUESTS_BURST", 100_000)
        .start()
        .await;
    let mut operations = operations(&gateway).await;
    assert!(operations.len() >= 50, "{}", operations.len());
    // What takes the app or its pushable key away comes last.
    operations.sort_by_key(|(method, path, _)| {
        (
            *method == Method::DELETE && path == "/apps/{pushable_key}",
            path.ends_with("reset-pushable-key"),
        )
    });
    let mut secrets = Vec::new();
    for scope in all_scopes() {
        let without: Vec<&str> = all_scopes().into_iter().filter(|it| *it != scope).collect();
        // At most twenty: by the domain, as the portal does it.
        secrets.push((scope, without));
    }
    let owner = Caller::owner(&gateway).await;
    for (scope, without) in secrets {
        assert!(
            operations.iter().any(|(_, _, asked)| asked == scope),
            "{scope} is asked for"
        );
        let (with, with_id) = limited(&gateway, &[scope]).await;
        let (without, without_id) = limited(&gateway, &without).await;
        for (method, path, asked) in &operations {
            let path = concrete(&gateway, path);
            let request = |caller: &Caller<'_>| {
                let request = caller.request(method.clone(), &path);
                if *method == Method::GET {
                    request
                } else {
                    request.json(&json!({}))
                }
            };
            let refused = |answer: &Answer| answer.problem() == (403, "insufficient_scope");
            if asked == scope {
                let answer = Answer::to(request(&without)).await;
                assert!(
                    refused(&answer),
                    "{method} {path} without {scope}: {}",
                    answer.body
                );
                let detail = format!("This API secret doesn't have the scope {scope}.");
                assert_eq!(answer.body["detail"], detail);
                // Not the ones that would take the app from the next.
                let is_last = path.ends_with("reset-pushable-key")
                    || (*method == Method::DELETE && path.matches('/').count() == 2);
                if !is_last {
                    let request = request(&with);
                    let status = request.send().await.unwrap().status().as_u16();
                    assert_ne!(status, 401, "{method} {path} with {scope}");
                    assert_ne!(status, 403, "{method} {path} with {scope}");
                }
            } else {
                let answer = Answer::to(request(&with)).await;
                assert!(
                    refused(&answer),
                    "{method} {path} with {scope} alone: {}",
                    answer.body
                );
            }
        }
        for id in [with_id, without_id] {
            owner
                .delete(&format!("/me/api-secrets/{id}"))
                .await
                .success(204);
        }
    }
    let known: Vec<String> = all_scopes().into_iter().map(str::to_owned).collect();
    for (method, path, asked) in &operations {
        assert!(
            asked == "main" || known.contains(asked),
            "{method} {path}: {asked}"
        );
    }
    // The main one may do all of it, up to the deletion of the app.
    for (method, path, _) in operations
        .iter()
        .filter(|(_, path, _)| path != "/me/reset-api-secret")
    {
        if path.contains("reset-pushable-key") {
            continue;
        }
        let request = owner.request(method.clone(), &concrete(&gateway, path));
        let status = request.send().await.unwrap().status().as_u16();
        assert!(!matches!(status, 401 | 403), "{method} {path}: {status}");
    }
    gateway.stop().await;
}
