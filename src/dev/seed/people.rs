//! Whose mailboxes there are.

use super::texts::Tongue;
use mailgate_types::event::DisconnectReason;
use mailgate_types::plugin::Plugin;

/// The apps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// The demo's own.
    Demo,
    /// A CRM, whose users each have a mailbox.
    Northwind,
    /// Recruiters, who share theirs.
    Talentwerk,
}

/// Someone who has a mailbox.
#[derive(Debug)]
pub(super) struct Person {
    /// As their messages are signed.
    pub(super) name: &'static str,
    /// The mailbox.
    pub(super) address: &'static str,
    pub(super) plugin: Plugin,
    pub(super) company: Company,
    /// The app's own id for them.
    pub(super) user_id: Option<&'static str>,
    /// What they write in.
    pub(super) tongue: Tongue,
    /// How much they write, by comparison.
    pub(super) share: u64,
    /// Why the provider has ended the connection, and hours since.
    pub(super) ended: Option<(DisconnectReason, i64)>,
}

const fn user(
    user_id: &'static str,
    name: &'static str,
    address: &'static str,
    plugin: Plugin,
    tongue: Tongue,
    share: u64,
) -> Person {
    Person {
        name,
        address,
        plugin,
        company: Company::Northwind,
        user_id: Some(user_id),
        tongue,
        share,
        ended: None,
    }
}

const fn recruiter(
    name: &'static str,
    address: &'static str,
    plugin: Plugin,
    tongue: Tongue,
    share: u64,
) -> Person {
    Person {
        company: Company::Talentwerk,
        user_id: None,
        ..user("", name, address, plugin, tongue, share)
    }
}

use Plugin::{A, B};
use Tongue::{English, French, German, Japanese, Spanish};

/// Everyone; the demo's own mailbox first.
pub(super) const PEOPLE: [Person; 20] = [
    Person {
        name: "Ada Lovelace",
        address: "ada@sandbox.example",
        plugin: A,
        company: Company::Demo,
        user_id: None,
        tongue: English,
        share: 10,
        ended: None,
    },
    user(
        "u-1001",
        "Emma Clarke",
        "emma.clarke@northwind.example",
        A,
        English,
        12,
    ),
    user(
        "u-1002",
        "James Okafor",
        "james.okafor@northwind.example",
        A,
        English,
        9,
    ),
    user(
        "u-1003",
        "Priya Raman",
        "priya.raman@northwind.example",
        B,
        English,
        7,
    ),
    user(
        "u-1004",
        "Lukas Brandt",
        "lukas.brandt@northwind.example",
        A,
        German,
        10,
    ),
    user(
        "u-1005",
        "Johanna Weiß",
        "johanna.weiss@northwind.example",
        B,
        German,
        6,
    ),
    user(
        "u-1006",
        "Mathieu Lefèvre",
        "mathieu.lefevre@northwind.example",
        A,
        French,
        7,
    ),
    user(
        "u-1007",
        "Chloé Garnier",
        "chloe.garnier@northwind.example",
        B,
        French,
        5,
    ),
    user(
        "u-1008",
        "Alejandro Ruiz",
        "alejandro.ruiz@northwind.example",
        A,
        Spanish,
        6,
    ),
    user(
        "u-1009",
        "Lucía Fernández",
        "lucia.fernandez@northwind.example",
        B,
        Spanish,
        4,
    ),
    user(
        "u-1010",
        "佐藤 陽翔",
        "haruto.sato@northwind.example",
        A,
        Japanese,
        6,
    ),
    user(
        "u-1011",
        "田中 結衣",
        "yui.tanaka@northwind.example",
        B,
        Japanese,
        3,
    ),
    user(
        "u-1012",
        "Sofia Rossi",
        "sofia.rossi@northwind.example",
        A,
        English,
        4,
    ),
    Person {
        ended: Some((DisconnectReason::InvalidGrant, 48)),
        ..user(
            "u-1013",
            "Олександр Коваленко",
            "o.kovalenko@northwind.example",
            A,
            English,
            4,
        )
    },
    recruiter(
        "Anna Schuster",
        "anna.schuster@talentwerk.example",
        A,
        German,
        9,
    ),
    recruiter("Talentwerk Jobs", "jobs@talentwerk.example", B, German, 7),
    recruiter(
        "Marta Kowalska",
        "marta.kowalska@talentwerk.example",
        B,
        English,
        5,
    ),
    recruiter(
        "Inès Moreau",
        "ines.moreau@talentwerk.example",
        A,
        French,
        3,
    ),
    recruiter(
        "Diego Navarro",
        "diego.navarro@talentwerk.example",
        A,
        Spanish,
        2,
    ),
    Person {
        ended: Some((DisconnectReason::InteractionRequired, 21)),
        ..recruiter("Bewerbungen", "bewerbung@talentwerk.example", B, German, 4)
    },
];
