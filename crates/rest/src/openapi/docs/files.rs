//! The files of the pages at `/docs`, in the binary.

use std::sync::LazyLock;

use mailgate_server::content::{Caching, Content};

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of Swagger UI, compressed.
macro_rules! swagger {
    ($name:literal, $media_type:expr) => {
        LazyLock::new(|| {
            let content = include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz"));
            Content::gzipped(&content[..], $media_type, Caching::Briefly)
        })
    };
}

/// A file of ours.
macro_rules! own {
    ($name:literal, $media_type:expr, $caching:expr) => {
        LazyLock::new(|| {
            let content = include_bytes!(concat!("../../../../../assets/docs/", $name));
            Content::new(&content[..], $media_type, $caching)
        })
    };
}

/// The page with Swagger UI. Its own has no title, no viewport and a box for other documents. The style fixes faint
/// colours, and the script missing labels (WCAG 2.1, contrast and names).
pub(super) static TRY: LazyLock<Content> = LazyLock::new(|| {
    let html = include_str!("try.html");
    Content::new(html, "text/html; charset=utf-8", Caching::Briefly)
});

/// The reference's style, at an address that changes with it.
static STYLE: LazyLock<Content> = own!("reference.css", CSS, Caching::Immutable);

static SWAGGER: LazyLock<Content> = swagger!("swagger-ui-bundle.js", SCRIPT);
static SWAGGER_STYLE: LazyLock<Content> = swagger!("swagger-ui.css", CSS);
static INITIALIZER: LazyLock<Content> = own!("swagger-initializer.js", SCRIPT, Caching::Briefly);
static TRY_STYLE: LazyLock<Content> = own!("try.css", CSS, Caching::Briefly);
static TRY_SCRIPT: LazyLock<Content> = own!("try.js", SCRIPT, Caching::Briefly);

/// The name of the reference's style.
fn style() -> String {
    format!("reference.{}.css", STYLE.digest())
}

/// The path of the reference's style.
pub(super) fn style_path() -> String {
    format!("/docs/{}", style())
}

/// The file of this name.
pub(super) fn named(name: &str) -> Option<&'static Content> {
    Some(match name {
        "swagger-ui-bundle.js" => &SWAGGER,
        "swagger-ui.css" => &SWAGGER_STYLE,
        "swagger-initializer.js" => &INITIALIZER,
        "try.css" => &TRY_STYLE,
        "try.js" => &TRY_SCRIPT,
        name if name == style() => &STYLE,
        _ => return None,
    })
}
