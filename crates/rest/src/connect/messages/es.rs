//! Spanish, addressed with "usted".

use super::{
    ButtonMessages, ConsentMessages, FailureMessages, FrontMessages, Messages, Notice,
    NoticeMessages, Phrase, ResultMessages,
};

pub(super) static MESSAGES: Messages = Messages {
    consent: ConsentMessages {
        title: "Conecte su buzón de correo",
        asks: Phrase("{app} quiere enviar correos desde su buzón."),
        allowed: "Permitido:",
        not_allowed: "No permitido:",
        can: Phrase("Qué podrá hacer {app}"),
        sends: "Enviar correos desde su dirección.",
        sees_replies: "Ver cuándo alguien responde a esos correos. Para ello, la pasarela comprueba los mensajes nuevos de su buzón.",
        cannot: Phrase("Qué no podrá hacer {app}"),
        reads_nothing: "Leer el texto de sus mensajes.",
        changes_nothing: "Cambiar o eliminar nada de su buzón.",
        review: "Iniciará sesión y revisará el acceso en la página del propio proveedor. La pasarela nunca ve su contraseña.",
        how_to_remove: "Cómo retirar el acceso",
        remove: Phrase(
            "Desconecte su buzón en {app} o retire el acceso en la configuración de seguridad de su cuenta de {label}.",
        ),
        remove_at: Phrase("Gestionar el acceso en {label}"),
        remove_at_personal: Phrase("Gestionar el acceso en {label} (cuenta personal)"),
        remove_at_work: Phrase("Gestionar el acceso en {label} (cuenta profesional o educativa)"),
        gateway: Phrase("Pasarela de correo: {operator}"),
    },
    buttons: ButtonMessages {
        connect: Phrase("Conectar {label}"),
        google: "Iniciar sesión con Google",
        microsoft: "Iniciar sesión con Microsoft",
        any_account: "Con una cuenta profesional o educativa, o con una personal.",
        work_account: "Con una cuenta profesional o educativa.",
        personal_account: "Con una cuenta personal.",
    },
    result: ResultMessages {
        connected: "Su buzón está conectado",
        can_send: Phrase("{app} ya puede enviar correos desde {email}."),
        not_connected: "Su buzón no está conectado",
        details: "Detalles",
        provider_says: Phrase("El proveedor indica: «{said}»"),
        try_again: "Volver a intentarlo",
        back: Phrase("Volver a {app} ({host})"),
        leave: Phrase("Ya puede volver a {app} y cerrar esta página."),
        code: "Código de error:",
        request: "ID de la solicitud:",
    },
    failures: FailureMessages {
        access_denied: Phrase(
            "Se denegó el acceso en {label}, por lo que {app} no puede enviar desde su buzón. Si fue un error, inténtelo de nuevo; si su organización tiene que dar antes su consentimiento, consulte a su administrador.",
        ),
        not_completed: Phrase(
            "No se completó el inicio de sesión en {label}. Inténtelo de nuevo; si el problema continúa, póngase en contacto con {app}.",
        ),
        insufficient_scope: Phrase(
            "{app} no obtuvo todos los permisos que necesita. Inténtelo de nuevo y deje activados todos los permisos que muestra {label}.",
        ),
        no_refresh_token: Phrase(
            "{label} solo concedió el acceso por un periodo breve. Retire el acceso en la configuración de seguridad de su cuenta de {label} e inténtelo de nuevo.",
        ),
        no_address: Phrase(
            "La cuenta de {label} no tiene ninguna dirección de correo que se pueda usar. Inténtelo de nuevo con otra cuenta.",
        ),
        unverified_address: Phrase(
            "{label} todavía no ha verificado la dirección de esta cuenta. Verifíquela allí e inténtelo de nuevo.",
        ),
        sign_in_required: Phrase(
            "{label} requiere que vuelva a iniciar sesión o a dar su consentimiento. Inténtelo de nuevo.",
        ),
        invalid_grant: Phrase(
            "{label} ya no acepta este inicio de sesión; es posible que haya tardado demasiado. Inténtelo de nuevo.",
        ),
        provider_unavailable: Phrase(
            "No se puede acceder a {label} en este momento. Inténtelo de nuevo dentro de unos minutos.",
        ),
        provider_error: Phrase(
            "{label} respondió con un error. Inténtelo de nuevo dentro de unos minutos; si el problema continúa, póngase en contacto con quien gestiona esta pasarela de correo.",
        ),
        plugin_off: Phrase(
            "Aquí ya no se pueden conectar buzones de {label}. Pida otro enlace a {app}.",
        ),
        user_id_missing: Phrase(
            "El enlace está incompleto: no indica de quién es el buzón. Pida otro enlace a {app}.",
        ),
        wrong_account: Phrase(
            "Este enlace es para {email}, pero inició sesión con otra cuenta. Inténtelo de nuevo y elija {email} en {label}.",
        ),
        already_connected: Phrase(
            "Otro buzón suyo está conectado aquí, o lo estuvo antes. Este enlace no puede sustituirlo por otro, porque cualquiera podría haberlo creado. Pida a {app} un enlace personal.",
        ),
        too_many_mailboxes: Phrase(
            "Ya tiene conectados todos los buzones que permite un enlace como este. Desconecte primero uno en {app} o pida a {app} un enlace personal.",
        ),
        too_many_for_app: Phrase(
            "{app} no puede conectar más buzones por el momento. Avise a {app}; no es culpa suya.",
        ),
        app_suspended: Phrase(
            "{app} no puede conectar buzones por el momento. Avise a {app}; no es culpa suya.",
        ),
        session_required: Phrase(
            "{app} ya no acepta enlaces como este. Pida a {app} un enlace personal.",
        ),
        link_used: Phrase(
            "Este enlace ya se usó para conectar otro buzón y solo funciona una vez. Pida un enlace nuevo a {app}.",
        ),
        unavailable: Phrase(
            "La pasarela de correo no pudo guardar la conexión. Inténtelo de nuevo dentro de un minuto.",
        ),
        internal_error: Phrase(
            "Se produjo un error en nuestro sistema. Inténtelo de nuevo; si el problema continúa, póngase en contacto con quien gestiona esta pasarela de correo.",
        ),
    },
    notices: NoticeMessages {
        another_site: Notice {
            title: "Esta solicitud procede de otro sitio web",
            text: "Una página de otro sitio web intentó conectar su buzón. No se conectó nada. Para conectarlo, abra el enlace que le dio la aplicación.",
        },
        unavailable: Notice {
            title: "Inténtelo de nuevo en unos instantes",
            text: "La pasarela de correo no está disponible en este momento. No se ha perdido nada: espere un minuto y vuelva a cargar esta página.",
        },
        internal_error: Notice {
            title: "Se produjo un error",
            text: "Se produjo un error en nuestro sistema. Inténtelo de nuevo desde la aplicación que le trajo aquí; si el problema continúa, póngase en contacto con quien gestiona esta pasarela de correo.",
        },
        no_such_link: Notice {
            title: "Este enlace no funciona",
            text: "Es posible que se haya sustituido por uno nuevo o que esté incompleto. Pida un enlace nuevo a la aplicación que le trajo aquí.",
        },
        session_invalid: Notice {
            title: "Este enlace ya no es válido",
            text: "Ha caducado, se ha sustituido o está incompleto. Pida un enlace nuevo a la aplicación que le trajo aquí.",
        },
        session_used: Notice {
            title: "Este enlace ya se ha usado",
            text: "Ya se usó para conectar un buzón y solo funciona una vez. Para conectar otro buzón, pida un enlace nuevo a la aplicación que le trajo aquí.",
        },
        session_required: Notice {
            title: "Este enlace no se puede usar",
            text: "Esta aplicación solo acepta enlaces personales. Pida uno a la aplicación que le trajo aquí.",
        },
        app_suspended: Notice {
            title: "No se pueden conectar buzones por el momento",
            text: "La cuenta de esta aplicación en esta pasarela está suspendida. No es culpa suya: avise a la aplicación que le trajo aquí.",
        },
        plugin_off: Notice {
            title: "Este proveedor no está disponible",
            text: "El enlace es para un proveedor de correo que no está disponible aquí. Pida otro enlace a la aplicación que le trajo aquí.",
        },
        wrong_link: Notice {
            title: "Este enlace contiene un error",
            text: "Está incompleto o se ha modificado. Pida otro enlace a la aplicación que le trajo aquí.",
        },
        not_set_up: Notice {
            title: "Todavía no se puede conectar ningún buzón",
            text: "La pasarela de correo no está configurada del todo: no hay ningún proveedor de correo activado. Avise a la aplicación que le trajo aquí.",
        },
        rate_limited: Notice {
            title: "Inténtelo de nuevo en unos instantes",
            text: "Esta página se ha abierto demasiadas veces en un minuto. Espere un minuto y vuelva a cargarla.",
        },
        no_such_result: Notice {
            title: "No se encontró la página",
            text: "La dirección está incompleta o se ha modificado. Vuelva a la aplicación que le trajo aquí.",
        },
        invalid_callback: Notice {
            title: "Esta página no se puede abrir directamente",
            text: "Los proveedores de correo devuelven a los usuarios a esta página, pero falta una parte de la dirección. Empiece de nuevo desde la aplicación que le trajo aquí.",
        },
        another_browser: Notice {
            title: "Continúe en el navegador en el que empezó",
            text: "Empezó en otro navegador o este no acepta cookies. No se conectó nada. Vuelva a abrir el enlace de la aplicación en el navegador que quiera usar y complete allí todos los pasos.",
        },
        link_dead: Notice {
            title: "Este enlace ya no es válido",
            text: "Ya se usó, han pasado más de diez minutos o se ha sustituido. Esta vez no se conectó nada; pida un enlace nuevo a la aplicación que le trajo aquí.",
        },
    },
    front: FrontMessages {
        gateway: Notice {
            title: "Esta es una pasarela de correo",
            text: "Las aplicaciones envían correos a través de ella desde los buzones que sus usuarios han conectado.",
        },
        nothing: Notice {
            title: "No hay nada en esta dirección",
            text: "Es posible que la dirección esté incompleta.",
        },
        for_users: "¿Le trajo aquí una aplicación para conectar su buzón? Vuelva a la aplicación y abra de nuevo su enlace.",
        for_developers: "¿Desarrolla una aplicación?",
        documentation: "Lea cómo enviar correos a través de la pasarela.",
    },
    or: " o ",
    the_provider: "su proveedor",
    logo: Phrase("Logotipo de {app}"),
    languages: "Idioma",
    help: "Obtener ayuda",
};
