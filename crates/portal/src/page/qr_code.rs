//! QR codes, drawn as an SVG path.

use std::fmt::Write as _;

use qrcodegen::{QrCode, QrCodeEcc};

/// The quiet zone: light modules around the code (ISO/IEC 18004 §9.1).
const QUIET: i32 = 4;

/// A code: its path, and the square's side in modules.
#[derive(Debug)]
pub(crate) struct Drawing {
    pub(crate) path: String,
    pub(crate) side: i32,
}

/// Draws a text; `None` if it is too long for any code.
pub(crate) fn draw(text: &str) -> Option<Drawing> {
    let code = QrCode::encode_text(text, QrCodeEcc::Low).ok()?;
    let size = code.size();
    let mut path = String::new();
    for y in 0..size {
        let mut x = 0;
        while x < size {
            let begin = x;
            while x < size && code.get_module(x, y) {
                x += 1;
            }
            if x > begin {
                let (left, top, width) = (begin + QUIET, y + QUIET, x - begin);
                // Writing to a String can't fail.
                let _ = write!(path, "M{left},{top}h{width}v1h-{width}z");
            }
            x += 1;
        }
    }
    Some(Drawing {
        path,
        side: size + 2 * QUIET,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corner_is_where_readers_look_for_it() {
        let drawing = draw("https://gateway.example/connect/pk_x");
        let drawing = drawing.as_ref();
        let path = drawing.map(|it| it.path.as_str()).unwrap_or_default();
        // A finder's first row: seven dark modules.
        assert!(path.starts_with("M4,4h7v1h-7z"), "{path}");
        assert_eq!(drawing.map(|it| it.side), Some(29 + 8));
    }

    #[test]
    fn what_is_too_long_is_not_drawn() {
        assert!(draw(&"x".repeat(3_000)).is_none());
    }
}
