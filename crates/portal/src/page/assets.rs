//! Style, scripts and icons, in the binary. Their addresses change with their content, so browsers keep them for a year.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use mailgate_server::content::{Caching, Content};

/// A file.
pub(crate) struct Asset {
    /// `portal.0123456789abcdef.css`
    file: String,
    content: Content,
}

impl Asset {
    fn new(name: &str, extension: &str, media_type: &'static str, content: &'static [u8]) -> Self {
        let content = Content::new(content, media_type, Caching::Immutable);
        Self {
            file: format!("{name}.{}.{extension}", content.digest()),
            content,
        }
    }

    /// Its path.
    pub(crate) fn path(&self) -> String {
        format!("/portal/assets/{}", self.file)
    }
}

/// The stylesheet.
pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_bytes!("../../../../assets/portal/portal.css");
    Asset::new("portal", "css", "text/css; charset=utf-8", content)
});

/// Our own script.
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_bytes!("../../../../assets/portal/portal.js");
    Asset::new("portal", "js", "text/javascript; charset=utf-8", content)
});

/// The script of exports.
pub(crate) static EXPORT: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_bytes!("../../../../assets/portal/export.js");
    Asset::new("export", "js", "text/javascript; charset=utf-8", content)
});

/// htmx.
pub(crate) static HTMX: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_bytes!("../../../../assets/vendor/htmx.min.js");
    Asset::new("htmx", "js", "text/javascript; charset=utf-8", content)
});

/// The icons: an SVG with a symbol for each, by the names of `assets/vendor/ICONS`.
pub(crate) static ICONS: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_bytes!("../../../../assets/vendor/icons.svg");
    Asset::new("icons", "svg", "image/svg+xml", content)
});

/// Serves a file.
pub(crate) async fn serve(
    Path(file): Path<String>,
    headers: HeaderMap,
) -> Result<Response, StatusCode> {
    let all: [&'static Asset; 5] = [&STYLE, &SCRIPT, &EXPORT, &HTMX, &ICONS];
    let asset = all.into_iter().find(|asset| asset.file == file);
    let asset = asset.ok_or(StatusCode::NOT_FOUND)?;
    Ok(asset.content.respond(&headers))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_first_visit_stays_small() {
        let bytes: usize = [&STYLE, &SCRIPT, &EXPORT, &HTMX, &ICONS]
            .map(|asset| asset.content.plain().len())
            .iter()
            .sum();
        assert!(bytes < 100_000, "{bytes}");
        let style = STYLE.content.plain().len();
        assert!(style < 30_000, "{style}");
        let transferred: usize = [&STYLE, &SCRIPT, &EXPORT, &HTMX, &ICONS]
            .map(|asset| asset.content.compressed().len())
            .iter()
            .sum();
        assert!(transferred < 40_000, "{transferred}");
    }

    #[test]
    fn the_sprite_has_every_icon_that_a_template_names() {
        let sprite = String::from_utf8_lossy(ICONS.content.plain());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates");
        let mut named = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for (_, rest) in text
                .match_indices("ui::icon(\"")
                .map(|(at, it)| text.split_at(at + it.len()))
            {
                let (name, _) = rest.split_once('"').unwrap();
                assert!(sprite.contains(&format!("id=\"{name}\"")), "{name}");
                named += 1;
            }
        }
        assert!(named > 0);
    }

    #[test]
    fn an_address_says_its_content() {
        let path = STYLE.path();
        assert!(path.starts_with("/portal/assets/portal."), "{path}");
        let parts: Vec<&str> = path.split('.').collect();
        assert_eq!((parts[1].len(), parts[2]), (16, "css"), "{path}");
    }
}
