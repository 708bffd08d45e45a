//! Spanish.

use super::{Letter, Texts};

pub(super) const TEXTS: Texts = Texts {
    names: &[
        ("Carmen Ortega", "carmen.ortega"),
        ("Javier Muñoz", "javier.munoz"),
        ("María José Peña", "mj.pena"),
        ("Andrés Castillo", "andres.castillo"),
        ("Compras", "compras"),
    ],
    domains: &[
        "bodegas-del-sur.example",
        "example.com",
        "talleres-ibarra.example",
        "example.org",
    ],
    business: &[
        Letter {
            subject: "Su pedido NW-{n} está en camino",
            text: "Hola, {name}:\n\nSu pedido NW-{n} ha salido hoy de nuestro almacén y llegará en dos días laborables.\n\nUn saludo\n{sender}",
        },
        Letter {
            subject: "Factura {n}",
            text: "Hola, {name}:\n\nAdjuntamos la factura {n}. El plazo de pago es de 30 días.\n\nUn saludo\n{sender}",
        },
        Letter {
            subject: "¿Seguimos adelante con el presupuesto {n}?",
            text: "Hola, {name}:\n\n¿Ha podido revisar el presupuesto {n}? Quedo a su disposición para cualquier duda.\n\nUn saludo\n{sender}",
        },
        Letter {
            subject: "Confirmación de la reunión del miércoles",
            text: "Hola, {name}:\n\nLe confirmo nuestra reunión del miércoles a las 10:00.\n\nGracias\n{sender}",
        },
    ],
    recruiting: &[
        Letter {
            subject: "Hemos recibido su candidatura C-{n}",
            text: "Hola, {name}:\n\nGracias por su interés. Nos pondremos en contacto con usted en una semana.\n\nUn saludo\n{sender}",
        },
        Letter {
            subject: "Entrevista: ¿le viene bien el jueves?",
            text: "Hola, {name}:\n\nNos gustaría conocerle. ¿Le viene bien el jueves a las 12:00?\n\nUn saludo\n{sender}",
        },
    ],
    file: "Factura_{n}.pdf",
};
