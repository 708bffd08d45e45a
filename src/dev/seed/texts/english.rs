//! English.

use super::{Letter, Texts};

pub(super) const TEXTS: Texts = Texts {
    names: &[
        ("Olivia Bennett", "olivia.bennett"),
        ("Noah Williams", "noah.williams"),
        ("Grace Adeyemi", "grace.adeyemi"),
        ("Liam O'Connor", "liam.oconnor"),
        ("Ava Thompson", "ava.thompson"),
        ("Ethan Walker", "ethan.walker"),
        ("Isla MacLeod", "isla.macleod"),
        ("Samuel Mensah", "s.mensah"),
        ("Zoe Nakamura", "zoe.nakamura"),
        ("Purchasing", "purchasing"),
    ],
    domains: &[
        "example.com",
        "brightwater.example",
        "harbourandco.example",
        "example.org",
        "fieldstone-labs.example",
        "mail.example.net",
    ],
    business: &[
        Letter {
            subject: "Your order NW-{n} has shipped",
            text: "Hello {name},\n\nYour order NW-{n} left our warehouse this morning and should reach you within two working days.\n\nKind regards\n{sender}",
        },
        Letter {
            subject: "Invoice {n}",
            text: "Dear {name},\n\nPlease find invoice {n} for last month. Payment is due within 30 days.\n\nBest wishes\n{sender}",
        },
        Letter {
            subject: "Following up on our call",
            text: "Hi {name},\n\nThank you for your time today. As agreed, I'll send the revised quote by Thursday and put our engineers in touch with yours.\n\nBest\n{sender}",
        },
        Letter {
            subject: "Quote {n} for your renewal",
            text: "Hi {name},\n\nHere is quote {n} for the coming year. The price per seat stays as it is if you renew before the end of the month.\n\nBest\n{sender}",
        },
        Letter {
            subject: "Can we move Tuesday's demo?",
            text: "Hi {name},\n\nSomething has come up on Tuesday. Would Wednesday at 10:30 suit you instead?\n\nThanks\n{sender}",
        },
        Letter {
            subject: "Welcome aboard – three things to start with",
            text: "Hello {name},\n\nYour workspace is ready. Invite your team, import your contacts, and connect a mailbox: that is all it takes.\n\nSee you soon\n{sender}",
        },
        Letter {
            subject: "Support request #{n} has been solved",
            text: "Hello {name},\n\nWe believe that request #{n} is solved. Reply to this message and it is open again.\n\n{sender}",
        },
    ],
    recruiting: &[
        Letter {
            subject: "Interview on Thursday – Backend Engineer",
            text: "Dear {name},\n\nWe would like to meet you on Thursday at 14:00. The call takes about 45 minutes.\n\nKind regards\n{sender}",
        },
        Letter {
            subject: "Your application C-{n}",
            text: "Dear {name},\n\nThank you for your application. We read every one, and will be back within a week.\n\nKind regards\n{sender}",
        },
        Letter {
            subject: "An offer for you",
            text: "Dear {name},\n\nCongratulations! Attached is our offer. Take your time, and call me with any question.\n\n{sender}",
        },
    ],
    file: "Invoice-{n}.pdf",
};
