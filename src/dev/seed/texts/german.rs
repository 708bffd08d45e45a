//! German.

use super::{Letter, Texts};

pub(super) const TEXTS: Texts = Texts {
    names: &[
        ("Herr Krüger", "t.krueger"),
        ("Frau Hoffmann", "sabine.hoffmann"),
        ("Frau Yılmaz", "elif.yilmaz"),
        ("Herr Vogel", "m.vogel"),
        ("Frau Bauer", "bauer"),
        ("Herr Zimmermann", "jan.zimmermann"),
        ("Frau Schäfer", "lena.schaefer"),
        ("Einkauf", "einkauf"),
    ],
    domains: &[
        "mueller-maschinenbau.example",
        "stadtwerke-nord.example",
        "example.com",
        "buerobedarf.example",
        "example.org",
    ],
    business: &[
        Letter {
            subject: "Ihre Bestellung NW-{n} ist unterwegs",
            text: "Guten Tag {name},\n\nIhre Bestellung NW-{n} hat heute unser Lager verlassen und trifft in ein bis zwei Werktagen bei Ihnen ein.\n\nMit freundlichen Grüßen\n{sender}",
        },
        Letter {
            subject: "Rechnung {n}",
            text: "Guten Tag {name},\n\nanbei erhalten Sie die Rechnung {n}. Bitte überweisen Sie den Betrag innerhalb von 14 Tagen.\n\nMit freundlichen Grüßen\n{sender}",
        },
        Letter {
            subject: "Angebot {n} – Rückfrage zur Stückzahl",
            text: "Guten Tag {name},\n\nvielen Dank für Ihre Anfrage. Gilt das Angebot {n} auch für die größere Stückzahl, über die wir gesprochen haben?\n\nViele Grüße\n{sender}",
        },
        Letter {
            subject: "Terminbestätigung: Vorführung am Mittwoch",
            text: "Guten Tag {name},\n\nhiermit bestätige ich unseren Termin am Mittwoch um 10 Uhr. Die Einwahldaten folgen am Vortag.\n\nViele Grüße\n{sender}",
        },
        Letter {
            subject: "Kurze Erinnerung: offene Rückmeldung",
            text: "Guten Tag {name},\n\nhatten Sie schon Gelegenheit, unsere Unterlagen durchzusehen? Ich freue mich auf Ihre Rückmeldung.\n\nViele Grüße\n{sender}",
        },
    ],
    recruiting: &[
        Letter {
            subject: "Eingangsbestätigung Ihrer Bewerbung C-{n}",
            text: "Guten Tag {name},\n\nvielen Dank für Ihre Bewerbung. Wir melden uns innerhalb einer Woche bei Ihnen.\n\nHerzliche Grüße\n{sender}",
        },
        Letter {
            subject: "Einladung zum Vorstellungsgespräch",
            text: "Guten Tag {name},\n\nwir möchten Sie gern kennenlernen und laden Sie für Donnerstag um 14 Uhr zu einem Gespräch ein.\n\nHerzliche Grüße\n{sender}",
        },
        Letter {
            subject: "Ihre Unterlagen – es fehlt noch das Zeugnis",
            text: "Guten Tag {name},\n\nfür das weitere Verfahren benötigen wir noch Ihr letztes Arbeitszeugnis.\n\nHerzliche Grüße\n{sender}",
        },
        Letter {
            subject: "Neue Stelle für Sie: Fachkraft (m/w/d) für Lagerlogistik",
            text: "Guten Tag {name},\n\neine unserer Stellen passt sehr gut zu Ihrem Profil. Darf ich Ihnen mehr darüber erzählen?\n\nHerzliche Grüße\n{sender}",
        },
    ],
    file: "Rechnung_{n}.pdf",
};
