//! Warnings about settings that don't prevent the gateway from starting.

use secrecy::ExposeSecret as _;

use mailgate_settings::Settings;
use mailgate_telemetry::{memory, open_files};

/// One line for each warning, with its remedy.
#[must_use]
pub fn warnings(settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    if settings.http_base_url.is_empty() {
        warnings.push(
            "http.base_url is not set: connect links name this machine's own address, and no provider can send users back to it; set it to the address that users reach, such as https://gateway.example"
                .to_owned(),
        );
    }
    if settings.plugins.is_empty() {
        warnings.push(
            "no plugin has a client_id: nobody can connect a mailbox, and nothing can be sent; register an OAuth client with the provider and set plugins.plugin_a.client_id and client_secret"
                .to_owned(),
        );
    }
    for plugin in &settings.plugins {
        if plugin.client_secret.expose_secret().is_empty() {
            let name = plugin.plugin;
            warnings.push(format!(
                "plugins.{name}.client_secret is not set: most providers refuse to give tokens without it; set it, unless the client is registered as a public one"
            ));
        }
    }
    warnings.extend(open_files::shortage(settings, open_files::permitted()));
    warnings.extend(memory::shortage(settings, memory::permitted()));
    warnings
}
