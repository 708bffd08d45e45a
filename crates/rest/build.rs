//! Takes Swagger UI's files out of its archive. The archive holds each as a DEFLATE stream, which is what gzip's form
//! holds too (RFC 1952), so that they are served as they were compressed by its makers.

use std::error::Error;
use std::fs;
use std::io::{Cursor, Read};
use std::path::Path;

use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::{CompressionMethod, ZipArchive};

/// The files that the page needs.
const FILES: [&str; 2] = ["swagger-ui-bundle.js", "swagger-ui.css"];

/// Deflated, no name, no time, an unknown system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var("OUT_DIR")?;
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED))?;
    for name in FILES {
        let end = format!("/dist/{name}");
        let index = (0..archive.len())
            .find(|index| {
                let name = archive.name_for_index(*index).and_then(Result::ok);
                name.is_some_and(|name| name.ends_with(&end))
            })
            .ok_or_else(|| format!("Swagger UI has no {name}"))?;
        let mut file = archive.by_index_raw(index)?;
        let mut gzip = HEAD.to_vec();
        match file.compression() {
            CompressionMethod::Deflated => file.read_to_end(&mut gzip)?,
            other => return Err(format!("{name} is stored as {other}").into()),
        };
        gzip.extend(file.crc32().to_le_bytes());
        gzip.extend(u32::try_from(file.size())?.to_le_bytes());
        fs::write(Path::new(&folder).join(format!("{name}.gz")), gzip)?;
    }
    Ok(())
}
