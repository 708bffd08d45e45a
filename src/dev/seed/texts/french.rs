//! French.

use super::{Letter, Texts};

pub(super) const TEXTS: Texts = Texts {
    names: &[
        ("Madame Dubois", "claire.dubois"),
        ("Monsieur Bernard", "p.bernard"),
        ("Madame Nguyen", "linh.nguyen"),
        ("Monsieur Fontaine", "hugo.fontaine"),
        ("Madame Benali", "samira.benali"),
        ("Service achats", "achats"),
    ],
    domains: &[
        "atelier-lumiere.example",
        "example.com",
        "transports-martin.example",
        "mairie.example",
        "example.net",
    ],
    business: &[
        Letter {
            subject: "Votre commande NW-{n} a été expédiée",
            text: "Bonjour {name},\n\nVotre commande NW-{n} a quitté notre entrepôt ce matin ; vous la recevrez sous deux jours ouvrés.\n\nCordialement\n{sender}",
        },
        Letter {
            subject: "Facture n° {n}",
            text: "Bonjour {name},\n\nVeuillez trouver ci-joint la facture n° {n}, à régler sous 30 jours.\n\nCordialement\n{sender}",
        },
        Letter {
            subject: "Suite à notre échange – devis {n}",
            text: "Bonjour {name},\n\nComme convenu, voici le devis {n}. Je reste à votre disposition pour toute question.\n\nBien à vous\n{sender}",
        },
        Letter {
            subject: "Réunion reportée à jeudi ?",
            text: "Bonjour {name},\n\nSerait-il possible de reporter notre réunion à jeudi, 15 h ?\n\nMerci d'avance\n{sender}",
        },
    ],
    recruiting: &[
        Letter {
            subject: "Votre candidature C-{n}",
            text: "Bonjour {name},\n\nNous avons bien reçu votre candidature et reviendrons vers vous sous huit jours.\n\nCordialement\n{sender}",
        },
        Letter {
            subject: "Entretien à distance – êtes-vous disponible mardi ?",
            text: "Bonjour {name},\n\nVotre profil nous intéresse. Seriez-vous disponible mardi à 11 h pour un entretien ?\n\nCordialement\n{sender}",
        },
    ],
    file: "Facture-{n}.pdf",
};
