//! German, addressed with "Sie".

use super::{
    ButtonMessages, ConsentMessages, FailureMessages, FrontMessages, Messages, Notice,
    NoticeMessages, Phrase, ResultMessages,
};

pub(super) static MESSAGES: Messages = Messages {
    consent: ConsentMessages {
        title: "Postfach verbinden",
        asks: Phrase("{app} möchte E-Mails über Ihr Postfach senden."),
        allowed: "Erlaubt:",
        not_allowed: "Nicht erlaubt:",
        can: Phrase("Was {app} tun kann"),
        sends: "E-Mails von Ihrer Adresse senden.",
        sees_replies: "Sehen, wenn jemand auf diese E-Mails antwortet. Dafür prüft das Gateway neue Nachrichten in Ihrem Postfach.",
        cannot: Phrase("Was {app} nicht tun kann"),
        reads_nothing: "Den Text Ihrer Nachrichten lesen.",
        changes_nothing: "Etwas in Ihrem Postfach ändern oder löschen.",
        review: "Sie melden sich auf der Seite des Anbieters an und prüfen dort den Zugriff. Das Gateway sieht Ihr Passwort nie.",
        how_to_remove: "So entziehen Sie den Zugriff",
        remove: Phrase(
            "Trennen Sie Ihr Postfach in {app}, oder entfernen Sie den Zugriff in den Sicherheitseinstellungen Ihres Kontos bei {label}.",
        ),
        remove_at: Phrase("Zugriff bei {label} verwalten"),
        remove_at_personal: Phrase("Zugriff bei {label} verwalten (privates Konto)"),
        remove_at_work: Phrase("Zugriff bei {label} verwalten (Geschäfts-, Schul- oder Unikonto)"),
        gateway: Phrase("E-Mail-Gateway: {operator}"),
    },
    buttons: ButtonMessages {
        connect: Phrase("{label} verbinden"),
        google: "Über Google anmelden",
        microsoft: "Mit Microsoft anmelden",
        any_account: "Mit einem Geschäfts-, Schul- oder Unikonto oder einem privaten Konto.",
        work_account: "Mit einem Geschäfts-, Schul- oder Unikonto.",
        personal_account: "Mit einem privaten Konto.",
    },
    result: ResultMessages {
        connected: "Ihr Postfach ist verbunden",
        can_send: Phrase("{app} kann jetzt E-Mails von {email} senden."),
        not_connected: "Ihr Postfach ist nicht verbunden",
        details: "Einzelheiten",
        provider_says: Phrase("Der Anbieter meldet: „{said}“"),
        try_again: "Erneut versuchen",
        back: Phrase("Zurück zu {app} ({host})"),
        leave: Phrase("Kehren Sie jetzt zu {app} zurück. Sie können diese Seite schließen."),
        code: "Fehlercode:",
        request: "Anfrage-ID:",
    },
    failures: FailureMessages {
        access_denied: Phrase(
            "Der Zugriff wurde bei {label} abgelehnt. Deshalb kann {app} nicht über Ihr Postfach senden. Wenn das ein Versehen war, versuchen Sie es erneut. Wenn Ihre Organisation zuerst zustimmen muss, wenden Sie sich an deren Administrator.",
        ),
        not_completed: Phrase(
            "Die Anmeldung bei {label} wurde nicht abgeschlossen. Versuchen Sie es erneut. Wenn das Problem bestehen bleibt, wenden Sie sich an {app}.",
        ),
        insufficient_scope: Phrase(
            "{app} hat nicht alle erforderlichen Berechtigungen erhalten. Versuchen Sie es erneut, und lassen Sie alle Berechtigungen aktiviert, die {label} auflistet.",
        ),
        no_refresh_token: Phrase(
            "{label} hat den Zugriff nur für kurze Zeit gewährt. Entfernen Sie den Zugriff in den Sicherheitseinstellungen Ihres Kontos bei {label}, und versuchen Sie es erneut.",
        ),
        no_address: Phrase(
            "Das Konto bei {label} hat keine verwendbare E-Mail-Adresse. Versuchen Sie es mit einem anderen Konto.",
        ),
        unverified_address: Phrase(
            "{label} hat die Adresse dieses Kontos noch nicht bestätigt. Bestätigen Sie sie dort, und versuchen Sie es erneut.",
        ),
        sign_in_required: Phrase(
            "{label} verlangt, dass Sie sich erneut anmelden oder noch einmal zustimmen. Versuchen Sie es erneut.",
        ),
        invalid_grant: Phrase(
            "{label} akzeptiert diese Anmeldung nicht mehr. Vielleicht hat sie zu lange gedauert. Versuchen Sie es erneut.",
        ),
        provider_unavailable: Phrase(
            "{label} ist zurzeit nicht erreichbar. Versuchen Sie es in einigen Minuten erneut.",
        ),
        provider_error: Phrase(
            "{label} hat mit einem Fehler geantwortet. Versuchen Sie es in einigen Minuten erneut. Wenn das Problem bestehen bleibt, wenden Sie sich an den Betreiber dieses E-Mail-Gateways.",
        ),
        plugin_off: Phrase(
            "Postfächer bei {label} können hier nicht mehr verbunden werden. Bitten Sie {app} um einen anderen Link.",
        ),
        user_id_missing: Phrase(
            "Der Link ist unvollständig: Es fehlt die Angabe, für wessen Postfach er gilt. Bitten Sie {app} um einen anderen Link.",
        ),
        wrong_account: Phrase(
            "Dieser Link gilt für {email}, aber Sie haben sich mit einem anderen Konto angemeldet. Versuchen Sie es erneut, und wählen Sie bei {label} das Konto {email}.",
        ),
        already_connected: Phrase(
            "Ein anderes Ihrer Postfächer ist oder war hier bereits verbunden. Dieser Link kann es nicht durch ein anderes ersetzen, weil jeder ihn erstellt haben könnte. Bitten Sie {app} um einen persönlichen Link.",
        ),
        too_many_mailboxes: Phrase(
            "Sie haben mit einem solchen Link bereits die maximale Anzahl an Postfächern verbunden. Trennen Sie zuerst eines in {app}, oder bitten Sie {app} um einen persönlichen Link.",
        ),
        too_many_for_app: Phrase(
            "{app} kann derzeit keine weiteren Postfächer verbinden. Bitte wenden Sie sich an {app}; es liegt nicht an Ihnen.",
        ),
        app_suspended: Phrase(
            "{app} kann derzeit keine Postfächer verbinden. Bitte wenden Sie sich an {app}; es liegt nicht an Ihnen.",
        ),
        session_required: Phrase(
            "{app} akzeptiert solche Links nicht mehr. Bitten Sie {app} um einen persönlichen Link.",
        ),
        link_used: Phrase(
            "Mit diesem Link wurde bereits ein anderes Postfach verbunden; er funktioniert nur einmal. Bitten Sie {app} um einen neuen Link.",
        ),
        unavailable: Phrase(
            "Das E-Mail-Gateway konnte die Verbindung nicht speichern. Versuchen Sie es in einer Minute erneut.",
        ),
        internal_error: Phrase(
            "Bei uns ist ein Fehler aufgetreten. Versuchen Sie es erneut. Wenn das Problem bestehen bleibt, wenden Sie sich an den Betreiber dieses E-Mail-Gateways.",
        ),
    },
    notices: NoticeMessages {
        another_site: Notice {
            title: "Diese Anfrage kam von einer anderen Website",
            text: "Eine Seite auf einer anderen Website hat versucht, Ihr Postfach zu verbinden. Es wurde nichts verbunden. Wenn Sie es verbinden möchten, öffnen Sie den Link, den Sie von der App erhalten haben.",
        },
        unavailable: Notice {
            title: "Bitte versuchen Sie es gleich noch einmal",
            text: "Das E-Mail-Gateway ist vorübergehend nicht verfügbar. Es ist nichts verloren gegangen: Warten Sie eine Minute, und laden Sie diese Seite neu.",
        },
        internal_error: Notice {
            title: "Etwas ist schiefgelaufen",
            text: "Bei uns ist ein Fehler aufgetreten. Starten Sie noch einmal in der App, die Sie hierher weitergeleitet hat. Wenn das Problem bestehen bleibt, wenden Sie sich an den Betreiber dieses E-Mail-Gateways.",
        },
        no_such_link: Notice {
            title: "Dieser Link funktioniert nicht",
            text: "Vielleicht wurde er durch einen neuen ersetzt, oder er ist unvollständig. Bitten Sie die App, die Sie hierher weitergeleitet hat, um einen neuen Link.",
        },
        session_invalid: Notice {
            title: "Dieser Link ist nicht mehr gültig",
            text: "Er ist abgelaufen, wurde ersetzt oder ist unvollständig. Bitten Sie die App, die Sie hierher weitergeleitet hat, um einen neuen Link.",
        },
        session_used: Notice {
            title: "Dieser Link wurde bereits verwendet",
            text: "Mit ihm wurde bereits ein Postfach verbunden; er funktioniert nur einmal. Wenn Sie ein weiteres Postfach verbinden möchten, bitten Sie die App, die Sie hierher weitergeleitet hat, um einen neuen Link.",
        },
        session_required: Notice {
            title: "Dieser Link kann nicht verwendet werden",
            text: "Diese App akzeptiert nur persönliche Links. Bitten Sie die App, die Sie hierher weitergeleitet hat, um einen solchen Link.",
        },
        app_suspended: Notice {
            title: "Postfächer können derzeit nicht verbunden werden",
            text: "Das Konto dieser App bei diesem E-Mail-Gateway ist gesperrt. Es liegt nicht an Ihnen: Wenden Sie sich an die App, die Sie hierher weitergeleitet hat.",
        },
        plugin_off: Notice {
            title: "Dieser Anbieter ist nicht verfügbar",
            text: "Der Link gilt für einen E-Mail-Anbieter, der hier nicht verfügbar ist. Bitten Sie die App, die Sie hierher weitergeleitet hat, um einen anderen Link.",
        },
        wrong_link: Notice {
            title: "Dieser Link ist fehlerhaft",
            text: "Er ist unvollständig oder wurde verändert. Bitten Sie die App, die Sie hierher weitergeleitet hat, um einen anderen Link.",
        },
        not_set_up: Notice {
            title: "Es kann noch kein Postfach verbunden werden",
            text: "Das E-Mail-Gateway ist noch nicht vollständig eingerichtet: Es ist kein E-Mail-Anbieter aktiviert. Bitte informieren Sie die App, die Sie hierher weitergeleitet hat.",
        },
        rate_limited: Notice {
            title: "Bitte versuchen Sie es gleich noch einmal",
            text: "Diese Seite wurde innerhalb einer Minute zu oft geöffnet. Warten Sie eine Minute, und laden Sie sie neu.",
        },
        no_such_result: Notice {
            title: "Seite nicht gefunden",
            text: "Die Adresse ist unvollständig oder wurde verändert. Kehren Sie zu der App zurück, die Sie hierher weitergeleitet hat.",
        },
        invalid_callback: Notice {
            title: "Diese Seite kann nicht direkt geöffnet werden",
            text: "E-Mail-Anbieter leiten nach der Anmeldung auf diese Seite zurück, aber ein Teil der Adresse fehlt. Starten Sie noch einmal in der App, die Sie hierher weitergeleitet hat.",
        },
        another_browser: Notice {
            title: "Machen Sie in dem Browser weiter, in dem Sie begonnen haben",
            text: "Sie haben in einem anderen Browser begonnen, oder dieser Browser akzeptiert keine Cookies. Es wurde nichts verbunden. Öffnen Sie den Link der App noch einmal in dem Browser, den Sie verwenden möchten, und führen Sie dort alle Schritte aus.",
        },
        link_dead: Notice {
            title: "Dieser Link ist nicht mehr gültig",
            text: "Er wurde bereits verwendet oder ersetzt, oder es sind mehr als zehn Minuten vergangen. Dieses Mal wurde nichts verbunden. Bitten Sie die App, die Sie hierher weitergeleitet hat, um einen neuen Link.",
        },
    },
    front: FrontMessages {
        gateway: Notice {
            title: "Dies ist ein E-Mail-Gateway",
            text: "Apps senden darüber E-Mails aus den Postfächern, die ihre Nutzer verbunden haben.",
        },
        nothing: Notice {
            title: "Unter dieser Adresse ist nichts zu finden",
            text: "Vielleicht ist sie unvollständig.",
        },
        for_users: "Hat eine App Sie hierher weitergeleitet, um Ihr Postfach zu verbinden? Kehren Sie zu der App zurück, und öffnen Sie ihren Link noch einmal.",
        for_developers: "Entwickeln Sie eine App?",
        documentation: "Lesen Sie, wie Sie darüber E-Mails senden.",
    },
    or: " oder ",
    the_provider: "E-Mail-Anbieter",
    logo: Phrase("Logo von {app}"),
    languages: "Sprache",
    help: "Hilfe erhalten",
};
