//! English.

use super::{
    ButtonMessages, ConsentMessages, FailureMessages, FrontMessages, Messages, Notice,
    NoticeMessages, Phrase, ResultMessages,
};

pub(super) static MESSAGES: Messages = Messages {
    consent: ConsentMessages {
        title: "Connect your mailbox",
        asks: Phrase("{app} would like to send email from your mailbox."),
        allowed: "Allowed:",
        not_allowed: "Not allowed:",
        can: Phrase("What {app} will be able to do"),
        sends: "Send email from your address.",
        sees_replies: "See when someone replies to that email. To do this, the gateway checks new messages in your mailbox.",
        cannot: Phrase("What {app} won't be able to do"),
        reads_nothing: "Read the text of your messages.",
        changes_nothing: "Change or delete anything in your mailbox.",
        review: "You'll sign in and review the access on the provider's own page. The gateway never sees your password.",
        how_to_remove: "How to remove the access",
        remove: Phrase(
            "Disconnect your mailbox in {app}, or remove the access in the security settings of your account at {label}.",
        ),
        remove_at: Phrase("Manage access at {label}"),
        remove_at_personal: Phrase("Manage access at {label} (personal account)"),
        remove_at_work: Phrase("Manage access at {label} (work or school account)"),
        gateway: Phrase("Mail gateway: {operator}"),
    },
    buttons: ButtonMessages {
        connect: Phrase("Connect {label}"),
        google: "Sign in with Google",
        microsoft: "Sign in with Microsoft",
        any_account: "With a work or school account, or a personal one.",
        work_account: "With a work or school account.",
        personal_account: "With a personal account.",
    },
    result: ResultMessages {
        connected: "Your mailbox is connected",
        can_send: Phrase("{app} can now send email from {email}."),
        not_connected: "Your mailbox is not connected",
        details: "Details",
        provider_says: Phrase("The provider says: “{said}”"),
        try_again: "Try again",
        back: Phrase("Back to {app} ({host})"),
        leave: Phrase("You can close this page and return to {app}."),
        code: "Code:",
        request: "Request ID:",
    },
    failures: FailureMessages {
        access_denied: Phrase(
            "Access was denied at {label}, so {app} can't send from your mailbox. If that was a mistake, try again; if your organisation needs to approve it first, ask its administrator.",
        ),
        not_completed: Phrase(
            "{label} didn't complete the sign-in. Try again; if the problem persists, contact {app}.",
        ),
        insufficient_scope: Phrase(
            "{app} didn't get all the permissions that it needs. Try again, and leave every permission that {label} lists turned on.",
        ),
        no_refresh_token: Phrase(
            "{label} granted access only for a short time. Remove this access in the security settings of your account at {label}, and try again.",
        ),
        no_address: Phrase(
            "The account at {label} has no email address that can be used. Try again with another account.",
        ),
        unverified_address: Phrase(
            "{label} hasn't verified the address of this account yet. Verify it there, and try again.",
        ),
        sign_in_required: Phrase("{label} requires you to sign in or consent again. Try again."),
        invalid_grant: Phrase(
            "{label} no longer accepts this sign-in; it may have taken too long. Try again.",
        ),
        provider_unavailable: Phrase(
            "{label} can't be reached at the moment. Try again in a few minutes.",
        ),
        provider_error: Phrase(
            "{label} answered with an error. Try again in a few minutes; if the problem persists, contact the operator of this email gateway.",
        ),
        plugin_off: Phrase(
            "Mailboxes at {label} can no longer be connected here. Ask {app} for another link.",
        ),
        user_id_missing: Phrase(
            "The link is incomplete: it doesn't say whose mailbox it is for. Ask {app} for another link.",
        ),
        wrong_account: Phrase(
            "This link is for {email}, and you signed in with another account. Try again, and choose {email} at {label}.",
        ),
        already_connected: Phrase(
            "Another mailbox of yours is or was connected here. This link can't replace it with a different one, because anyone could have created the link. Ask {app} for a personal link.",
        ),
        too_many_mailboxes: Phrase(
            "You have already connected the maximum number of mailboxes for a link like this. Disconnect one in {app} first, or ask {app} for a personal link.",
        ),
        too_many_for_app: Phrase(
            "{app} can't connect any more mailboxes at the moment. You did nothing wrong; please let {app} know.",
        ),
        app_suspended: Phrase(
            "{app} can't connect mailboxes at the moment. You did nothing wrong; please let {app} know.",
        ),
        session_required: Phrase(
            "{app} no longer accepts links like this one. Ask {app} for a personal link.",
        ),
        link_used: Phrase(
            "This link was already used to connect another mailbox, and works only once. Ask {app} for a new link.",
        ),
        unavailable: Phrase(
            "The email gateway could not store the connection. Try again in a minute.",
        ),
        internal_error: Phrase(
            "Something went wrong on our side. Try again; if the problem persists, contact the operator of this email gateway.",
        ),
    },
    notices: NoticeMessages {
        another_site: Notice {
            title: "This request came from another site",
            text: "A page on another site tried to connect your mailbox. Nothing was connected. To connect it, open the link that the app gave you.",
        },
        unavailable: Notice {
            title: "Please try again shortly",
            text: "The email gateway is temporarily unavailable. Nothing is lost: wait a minute, and reload this page.",
        },
        internal_error: Notice {
            title: "Something went wrong",
            text: "Something went wrong on our side. Try again from the app that sent you here; if the problem persists, contact the operator of this email gateway.",
        },
        no_such_link: Notice {
            title: "This link doesn't work",
            text: "It may have been replaced by a new one, or part of it may be missing. Ask the app that sent you here for a new link.",
        },
        session_invalid: Notice {
            title: "This link is no longer valid",
            text: "It has expired, was replaced, or is incomplete. Ask the app that sent you here for a new link.",
        },
        session_used: Notice {
            title: "This link has already been used",
            text: "It was already used to connect a mailbox, and works only once. To connect another mailbox, ask the app that sent you here for a new link.",
        },
        session_required: Notice {
            title: "This link can't be used",
            text: "This app accepts only personal links. Ask the app that sent you here for one.",
        },
        app_suspended: Notice {
            title: "Mailboxes can't be connected at the moment",
            text: "This app's account at this email gateway is suspended. You did nothing wrong; please let the app that sent you here know.",
        },
        plugin_off: Notice {
            title: "This provider is not available",
            text: "The link is for a mail provider that isn't available here. Ask the app that sent you here for another link.",
        },
        wrong_link: Notice {
            title: "This link is invalid",
            text: "It is incomplete, or was changed on the way to you. Ask the app that sent you here for another link.",
        },
        not_set_up: Notice {
            title: "No mailbox can be connected yet",
            text: "The email gateway is not fully set up: no mail provider is turned on. Please let the app that sent you here know.",
        },
        rate_limited: Notice {
            title: "Please try again shortly",
            text: "This page was opened too many times within a minute. Wait a minute, and reload it.",
        },
        no_such_result: Notice {
            title: "Page not found",
            text: "The address is incomplete, or was changed. Go back to the app that sent you here.",
        },
        invalid_callback: Notice {
            title: "This page can't be opened directly",
            text: "Mail providers send people back to this page, but part of the address is missing. Start again from the app that sent you here.",
        },
        another_browser: Notice {
            title: "Continue in the browser where you started",
            text: "You started in another browser, or this one doesn't accept cookies. Nothing was connected. Open the app's link again in the browser that you want to use, and complete every step there.",
        },
        link_dead: Notice {
            title: "This link is no longer valid",
            text: "It was already used, more than ten minutes have passed, or it has been replaced. Nothing was connected this time; ask the app that sent you here for a new link.",
        },
    },
    front: FrontMessages {
        gateway: Notice {
            title: "This is an email gateway",
            text: "Apps send email through it, from the mailboxes that their users have connected.",
        },
        nothing: Notice {
            title: "There is nothing at this address",
            text: "The address may be incomplete.",
        },
        for_users: "Did an app send you here to connect your mailbox? Go back to the app and open its link again.",
        for_developers: "Are you building an app?",
        documentation: "Read how to send email through it.",
    },
    or: " or ",
    the_provider: "the provider",
    logo: Phrase("Logo of {app}"),
    languages: "Language",
    help: "Get help",
};
