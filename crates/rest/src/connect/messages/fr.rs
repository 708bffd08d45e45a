//! French, addressed with "vous".

use super::{
    ButtonMessages, ConsentMessages, FailureMessages, FrontMessages, Messages, Notice,
    NoticeMessages, Phrase, ResultMessages,
};

pub(super) static MESSAGES: Messages = Messages {
    consent: ConsentMessages {
        title: "Connecter votre boîte mail",
        asks: Phrase("{app} souhaite envoyer des e-mails depuis votre boîte mail."),
        allowed: "Autorisé\u{a0}:",
        not_allowed: "Non autorisé\u{a0}:",
        can: Phrase("Ce que {app} pourra faire"),
        sends: "Envoyer des e-mails depuis votre adresse.",
        sees_replies: "Voir quand quelqu’un répond à ces e-mails. Pour cela, la passerelle vérifie les nouveaux messages de votre boîte mail.",
        cannot: Phrase("Ce que {app} ne pourra pas faire"),
        reads_nothing: "Lire le texte de vos messages.",
        changes_nothing: "Modifier ou supprimer quoi que ce soit dans votre boîte mail.",
        review: "Vous vous connecterez et vérifierez l’accès sur la page du fournisseur. La passerelle ne voit jamais votre mot de passe.",
        how_to_remove: "Comment retirer l’accès",
        remove: Phrase(
            "Déconnectez votre boîte mail dans {app}, ou retirez l’accès dans les paramètres de sécurité de votre compte {label}.",
        ),
        remove_at: Phrase("Gérer les accès chez {label}"),
        remove_at_personal: Phrase("Gérer les accès chez {label} (compte personnel)"),
        remove_at_work: Phrase("Gérer les accès chez {label} (compte professionnel ou scolaire)"),
        gateway: Phrase("Passerelle de messagerie\u{a0}: {operator}"),
    },
    buttons: ButtonMessages {
        connect: Phrase("Connecter {label}"),
        google: "Se connecter avec Google",
        microsoft: "Se connecter avec Microsoft",
        any_account: "Avec un compte professionnel ou scolaire, ou un compte personnel.",
        work_account: "Avec un compte professionnel ou scolaire.",
        personal_account: "Avec un compte personnel.",
    },
    result: ResultMessages {
        connected: "Votre boîte mail est connectée",
        can_send: Phrase("{app} peut désormais envoyer des e-mails depuis {email}."),
        not_connected: "Votre boîte mail n’est pas connectée",
        details: "Détails",
        provider_says: Phrase("Message du fournisseur\u{a0}: «\u{a0}{said}\u{a0}»"),
        try_again: "Réessayer",
        back: Phrase("Retour à {app} ({host})"),
        leave: Phrase("Vous pouvez maintenant revenir à {app} et fermer cette page."),
        code: "Code d’erreur\u{a0}:",
        request: "ID de la demande\u{a0}:",
    },
    failures: FailureMessages {
        access_denied: Phrase(
            "L’accès a été refusé chez {label}\u{a0}: {app} ne peut donc pas envoyer d’e-mails depuis votre boîte mail. S’il s’agit d’une erreur, réessayez. Si votre organisation doit d’abord donner son accord, contactez son administrateur.",
        ),
        not_completed: Phrase(
            "La connexion chez {label} n’a pas abouti. Réessayez\u{a0}; si le problème persiste, contactez {app}.",
        ),
        insufficient_scope: Phrase(
            "{app} n’a pas obtenu toutes les autorisations nécessaires. Réessayez en laissant activées toutes les autorisations indiquées par {label}.",
        ),
        no_refresh_token: Phrase(
            "{label} n’a accordé l’accès que pour une courte durée. Retirez l’accès dans les paramètres de sécurité de votre compte {label}, puis réessayez.",
        ),
        no_address: Phrase(
            "Le compte {label} n’a pas d’adresse e-mail utilisable. Réessayez avec un autre compte.",
        ),
        unverified_address: Phrase(
            "{label} n’a pas encore vérifié l’adresse de ce compte. Faites-la vérifier, puis réessayez.",
        ),
        sign_in_required: Phrase(
            "{label} vous demande de vous reconnecter ou de donner à nouveau votre accord. Réessayez.",
        ),
        invalid_grant: Phrase(
            "{label} n’accepte plus cette connexion, qui a peut-être pris trop de temps. Réessayez.",
        ),
        provider_unavailable: Phrase(
            "{label} est injoignable pour le moment. Réessayez dans quelques minutes.",
        ),
        provider_error: Phrase(
            "{label} a renvoyé une erreur. Réessayez dans quelques minutes\u{a0}; si le problème persiste, contactez l’exploitant de cette passerelle de messagerie.",
        ),
        plugin_off: Phrase(
            "Il n’est plus possible de connecter ici une boîte mail {label}. Demandez un autre lien à {app}.",
        ),
        user_id_missing: Phrase(
            "Le lien est incomplet\u{a0}: il n’indique pas à qui appartient la boîte mail. Demandez un autre lien à {app}.",
        ),
        wrong_account: Phrase(
            "Ce lien est destiné à {email}, mais vous vous êtes connecté avec un autre compte. Réessayez et choisissez {email} chez {label}.",
        ),
        already_connected: Phrase(
            "Une autre de vos boîtes mail est connectée ici, ou l’a été. Ce lien ne peut pas la remplacer par une autre, car n’importe qui aurait pu le créer. Demandez un lien personnel à {app}.",
        ),
        too_many_mailboxes: Phrase(
            "Vous avez déjà connecté autant de boîtes mail qu’un tel lien le permet. Déconnectez-en d’abord une dans {app}, ou demandez un lien personnel à {app}.",
        ),
        too_many_for_app: Phrase(
            "{app} ne peut pas connecter d’autres boîtes mail pour le moment. Signalez-le à {app}. Vous n’y êtes pour rien.",
        ),
        app_suspended: Phrase(
            "{app} ne peut pas connecter de boîtes mail pour le moment. Signalez-le à {app}. Vous n’y êtes pour rien.",
        ),
        session_required: Phrase(
            "{app} n’accepte plus ce type de lien. Demandez un lien personnel à {app}.",
        ),
        link_used: Phrase(
            "Ce lien a déjà servi à connecter une autre boîte mail et ne fonctionne qu’une fois. Demandez un nouveau lien à {app}.",
        ),
        unavailable: Phrase(
            "La passerelle de messagerie n’a pas pu enregistrer la connexion. Réessayez dans une minute.",
        ),
        internal_error: Phrase(
            "Une erreur s’est produite de notre côté. Réessayez\u{a0}; si le problème persiste, contactez l’exploitant de cette passerelle de messagerie.",
        ),
    },
    notices: NoticeMessages {
        another_site: Notice {
            title: "Cette demande provient d’un autre site",
            text: "Une page d’un autre site a tenté de connecter votre boîte mail. Rien n’a été connecté. Pour la connecter, ouvrez le lien fourni par l’application.",
        },
        unavailable: Notice {
            title: "Veuillez réessayer dans un instant",
            text: "La passerelle de messagerie est momentanément indisponible. Rien n’est perdu\u{a0}: attendez une minute, puis rechargez cette page.",
        },
        internal_error: Notice {
            title: "Une erreur s’est produite",
            text: "Une erreur s’est produite de notre côté. Réessayez depuis l’application qui vous a redirigé vers cette page\u{a0}; si le problème persiste, contactez l’exploitant de cette passerelle de messagerie.",
        },
        no_such_link: Notice {
            title: "Ce lien ne fonctionne pas",
            text: "Il a peut-être été remplacé par un nouveau lien, ou il est incomplet. Demandez un nouveau lien à l’application qui vous a redirigé vers cette page.",
        },
        session_invalid: Notice {
            title: "Ce lien n’est plus valide",
            text: "Il a expiré, a été remplacé ou est incomplet. Demandez un nouveau lien à l’application qui vous a redirigé vers cette page.",
        },
        session_used: Notice {
            title: "Ce lien a déjà été utilisé",
            text: "Il a déjà servi à connecter une boîte mail et ne fonctionne qu’une fois. Pour connecter une autre boîte mail, demandez un nouveau lien à l’application qui vous a redirigé vers cette page.",
        },
        session_required: Notice {
            title: "Ce lien ne peut pas être utilisé",
            text: "Cette application n’accepte que les liens personnels. Demandez-en un à l’application qui vous a redirigé vers cette page.",
        },
        app_suspended: Notice {
            title: "Impossible de connecter des boîtes mail pour le moment",
            text: "Le compte de cette application auprès de cette passerelle est suspendu. Vous n’y êtes pour rien. Signalez-le à l’application qui vous a redirigé vers cette page.",
        },
        plugin_off: Notice {
            title: "Ce fournisseur n’est pas disponible",
            text: "Ce lien est destiné à un fournisseur de messagerie qui n’est pas disponible ici. Demandez un autre lien à l’application qui vous a redirigé vers cette page.",
        },
        wrong_link: Notice {
            title: "Ce lien contient une erreur",
            text: "Il est incomplet ou a été modifié. Demandez un autre lien à l’application qui vous a redirigé vers cette page.",
        },
        not_set_up: Notice {
            title: "Aucune boîte mail ne peut encore être connectée",
            text: "La passerelle de messagerie n’est pas entièrement configurée\u{a0}: aucun fournisseur de messagerie n’est activé. Veuillez le signaler à l’application qui vous a redirigé vers cette page.",
        },
        rate_limited: Notice {
            title: "Veuillez réessayer dans un instant",
            text: "Cette page a été ouverte trop souvent en une minute. Attendez une minute, puis rechargez-la.",
        },
        no_such_result: Notice {
            title: "Page introuvable",
            text: "L’adresse est incomplète ou a été modifiée. Revenez à l’application qui vous a redirigé vers cette page.",
        },
        invalid_callback: Notice {
            title: "Cette page ne peut pas être ouverte directement",
            text: "Les fournisseurs de messagerie renvoient vers cette page, mais il manque une partie de l’adresse. Recommencez depuis l’application qui vous a redirigé vers cette page.",
        },
        another_browser: Notice {
            title: "Continuez dans le navigateur où vous avez commencé",
            text: "Vous avez commencé dans un autre navigateur, ou celui-ci n’accepte pas les cookies. Rien n’a été connecté. Ouvrez à nouveau le lien de l’application dans le navigateur de votre choix et effectuez-y toutes les étapes.",
        },
        link_dead: Notice {
            title: "Ce lien n’est plus valide",
            text: "Il a déjà été utilisé, plus de dix minutes se sont écoulées ou il a été remplacé. Rien n’a été connecté cette fois-ci\u{a0}; demandez un nouveau lien à l’application qui vous a redirigé vers cette page.",
        },
    },
    front: FrontMessages {
        gateway: Notice {
            title: "Ceci est une passerelle de messagerie",
            text: "Des applications l’utilisent pour envoyer des e-mails depuis les boîtes mail que leurs utilisateurs ont connectées.",
        },
        nothing: Notice {
            title: "Il n’y a rien à cette adresse",
            text: "Elle est peut-être incomplète.",
        },
        for_users: "Une application vous a redirigé vers cette page pour connecter votre boîte mail\u{a0}? Revenez à l’application et ouvrez à nouveau son lien.",
        for_developers: "Vous développez une application\u{a0}?",
        documentation: "Découvrez comment envoyer des e-mails par cette passerelle.",
    },
    or: " ou ",
    the_provider: "votre fournisseur",
    logo: Phrase("Logo de {app}"),
    languages: "Langue",
    help: "Obtenir de l’aide",
};
