//! What a failing test says beside its own words: how to run it alone.

use std::sync::Once;

/// From now on a panic says so. Everything calls it that a test begins with: a database, a gateway, a program.
pub fn explain() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            usual(panic);
            // libtest names a test's thread after it; other threads have names of their own.
            if let Some(test) = std::thread::current().name().filter(|it| it.contains("::")) {
                eprintln!("alone: cargo test --locked --test integration -- --exact {test}");
            }
        }));
    });
}
