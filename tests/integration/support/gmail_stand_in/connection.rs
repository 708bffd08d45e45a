//! The connections of clients, which break where the test says so.

use std::convert::Infallible;
use std::io;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::ServiceExt;

/// Marks an answer that is not given: the connection breaks instead.
#[derive(Clone, Copy)]
struct Broken;

/// One task for each connection, so that one can break without an answer.
pub(super) async fn serve(listener: TcpListener, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("it accepts");
        let router = router.clone();
        connections.spawn(async move {
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let router = router.clone();
                async move {
                    let answered: Result<Response, Infallible> =
                        router.oneshot(request.map(Body::new)).await;
                    let response = answered.unwrap_or_else(|never| match never {});
                    match response.extensions().get::<Broken>() {
                        Some(Broken) => Err(io::Error::other("as the test says")),
                        None => Ok(response),
                    }
                }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // It ends as the test says, or with its client.
            drop(connection.await);
        });
    }
}

pub(super) fn broken() -> Response {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(Broken);
    response
}
