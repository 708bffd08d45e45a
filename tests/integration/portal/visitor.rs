//! Somebody with a browser, without its eyes: requests with a cookie.

use reqwest::header::{COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use reqwest::{Client, Method, RequestBuilder, redirect};

use crate::support::gateway::Gateway;

/// A visitor; signed in once it has a cookie.
#[derive(Clone)]
pub struct Visitor {
    base_url: String,
    http: Client,
    cookie: Option<String>,
    /// The client's address, as a proxy says it.
    forwarded_for: Option<&'static str>,
}

/// An answer.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Page {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |it| it.to_str().unwrap())
    }

    pub fn location(&self) -> &str {
        self.header(LOCATION.as_str())
    }

    /// It contains all of these.
    pub fn says(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.text.contains(part), "{part}: {}", self.text);
        }
    }

    /// What a hidden field of its forms has.
    pub fn field(&self, name: &str) -> String {
        let begin = format!("name=\"{name}\" value=\"");
        let (_, rest) = self.text.split_once(&begin).expect("the field");
        rest.split_once('"').expect("its end").0.to_owned()
    }
}

impl Visitor {
    pub fn new(base_url: &str) -> Self {
        let http = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none());
        Self {
            base_url: base_url.to_owned(),
            http: http.build().unwrap(),
            cookie: None,
            forwarded_for: None,
        }
    }

    /// Behind a proxy.
    pub fn from(self, address: &'static str) -> Self {
        Self {
            forwarded_for: Some(address),
            ..self
        }
    }

    /// Signed in with the demo subscriber's API secret.
    pub async fn signed_in(gateway: &Gateway) -> Self {
        let mut visitor = Self::new(&gateway.daemon.base_url);
        let page = visitor.sign_in(&api_secret(gateway).await).await;
        assert_eq!(page.status, 303, "{page:?}");
        visitor
    }

    /// The same browser at another gateway.
    pub fn at(&self, base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            ..self.clone()
        }
    }

    pub async fn sign_in(&mut self, api_secret: &str) -> Page {
        let page = self
            .post("/portal/sign-in", &[("api_secret", api_secret)])
            .await;
        self.keep_cookie(&page);
        page
    }

    pub fn keep_cookie(&mut self, page: &Page) {
        if let Some(cookie) = page.headers.get(SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            self.cookie = cookie.split(';').next().map(ToOwned::to_owned);
        }
    }

    pub fn cookie(&self) -> &str {
        self.cookie.as_deref().unwrap_or_default()
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base_url))
            .header("accept", "text/html");
        let request = match self.forwarded_for {
            Some(address) => request.header("x-forwarded-for", address),
            None => request,
        };
        match &self.cookie {
            Some(cookie) => request.header(COOKIE, cookie),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Page {
        answer(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        answer(self.request(Method::POST, path).form(fields)).await
    }
}

/// Sends it.
pub async fn answer(request: RequestBuilder) -> Page {
    let response = request.send().await.unwrap();
    Page {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        text: response.text().await.unwrap(),
    }
}

/// The demo subscriber's.
pub async fn api_secret(gateway: &Gateway) -> String {
    let credentials = gateway.daemon.accounts.app_credentials(gateway.app.id);
    let credentials = credentials.await.unwrap().unwrap();
    credentials.api_secret.expose().to_owned()
}
