//! Japanese, in the polite form.

use super::{
    ButtonMessages, ConsentMessages, FailureMessages, FrontMessages, Messages, Notice,
    NoticeMessages, Phrase, ResultMessages,
};

pub(super) static MESSAGES: Messages = Messages {
    consent: ConsentMessages {
        title: "メールボックスの接続",
        asks: Phrase("{app} が、お客様のメールボックスからメールを送信する許可を求めています。"),
        allowed: "許可:",
        not_allowed: "不許可:",
        can: Phrase("{app} ができること"),
        sends: "お客様のアドレスからメールを送信する。",
        sees_replies: "送信したメールに返信があったことを確認する。そのために、ゲートウェイがメールボックスの新着メールをチェックします。",
        cannot: Phrase("{app} ができないこと"),
        reads_nothing: "メッセージの本文を読む。",
        changes_nothing: "メールボックスの内容を変更または削除する。",
        review: "プロバイダーのページでサインインし、アクセス権の内容を確認します。ゲートウェイにパスワードが知られることはありません。",
        how_to_remove: "アクセス権を取り消すには",
        remove: Phrase(
            "{app} でメールボックスの接続を解除するか、{label} のアカウントのセキュリティ設定でアクセス権を削除してください。",
        ),
        remove_at: Phrase("{label} でアクセス権を管理"),
        remove_at_personal: Phrase("{label} でアクセス権を管理 (個人用アカウント)"),
        remove_at_work: Phrase("{label} でアクセス権を管理 (職場または学校アカウント)"),
        gateway: Phrase("メールゲートウェイ: {operator}"),
    },
    buttons: ButtonMessages {
        connect: Phrase("{label} を接続"),
        google: "Google でログイン",
        microsoft: "Microsoft でサインイン",
        any_account: "職場または学校アカウント、あるいは個人用アカウントをご利用いただけます。",
        work_account: "職場または学校アカウントをご利用いただけます。",
        personal_account: "個人用アカウントをご利用いただけます。",
    },
    result: ResultMessages {
        connected: "メールボックスが接続されました",
        can_send: Phrase("{app} は {email} からメールを送信できるようになりました。"),
        not_connected: "メールボックスは接続されていません",
        details: "詳細",
        provider_says: Phrase("プロバイダーからのメッセージ: 「{said}」"),
        try_again: "もう一度試す",
        back: Phrase("{app} に戻る ({host})"),
        leave: Phrase("{app} にお戻りください。このページは閉じてかまいません。"),
        code: "エラーコード:",
        request: "リクエスト ID:",
    },
    failures: FailureMessages {
        access_denied: Phrase(
            "{label} でアクセスが拒否されたため、{app} はお客様のメールボックスからメールを送信できません。誤って拒否した場合は、もう一度お試しください。事前に組織の同意が必要な場合は、管理者にお問い合わせください。",
        ),
        not_completed: Phrase(
            "{label} でのサインインが完了しませんでした。もう一度お試しください。問題が解決しない場合は、{app} にお問い合わせください。",
        ),
        insufficient_scope: Phrase(
            "{app} に必要な権限の一部が許可されませんでした。もう一度お試しのうえ、{label} に表示されるすべての権限をオンのままにしてください。",
        ),
        no_refresh_token: Phrase(
            "{label} で許可されたアクセスは短期間のみ有効です。{label} のアカウントのセキュリティ設定でアクセス権を削除してから、もう一度お試しください。",
        ),
        no_address: Phrase(
            "{label} のアカウントに、使用できるメールアドレスがありません。別のアカウントでもう一度お試しください。",
        ),
        unverified_address: Phrase(
            "このアカウントのメールアドレスは、{label} でまだ確認されていません。{label} でアドレスを確認してから、もう一度お試しください。",
        ),
        sign_in_required: Phrase(
            "{label} では、再度サインインするか、もう一度同意する必要があります。もう一度お試しください。",
        ),
        invalid_grant: Phrase(
            "このサインインは {label} で受け付けられなくなりました。時間がかかりすぎた可能性があります。もう一度お試しください。",
        ),
        provider_unavailable: Phrase(
            "現在 {label} に接続できません。数分後にもう一度お試しください。",
        ),
        provider_error: Phrase(
            "{label} からエラーが返されました。数分後にもう一度お試しください。問題が解決しない場合は、このメールゲートウェイの運用者にお問い合わせください。",
        ),
        plugin_off: Phrase(
            "{label} のメールボックスは、ここでは接続できなくなりました。{app} に別のリンクを依頼してください。",
        ),
        user_id_missing: Phrase(
            "リンクが不完全です。どなたのメールボックス用のリンクかが指定されていません。{app} に別のリンクを依頼してください。",
        ),
        wrong_account: Phrase(
            "このリンクは {email} 用ですが、別のアカウントでサインインされました。もう一度お試しのうえ、{label} で {email} を選択してください。",
        ),
        already_connected: Phrase(
            "お客様の別のメールボックスが接続されているか、以前に接続されていました。このリンクは第三者が作成した可能性があるため、別のメールボックスに置き換えることはできません。{app} に個人用のリンクを依頼してください。",
        ),
        too_many_mailboxes: Phrase(
            "このリンクで接続できるメールボックスの数の上限に達しています。先に {app} でいずれかの接続を解除するか、{app} に個人用のリンクを依頼してください。",
        ),
        too_many_for_app: Phrase(
            "{app} は現在、これ以上メールボックスを接続できません。お客様の操作に問題があったわけではありません。{app} にお知らせください。",
        ),
        app_suspended: Phrase(
            "{app} は現在、メールボックスを接続できません。お客様の操作に問題があったわけではありません。{app} にお知らせください。",
        ),
        session_required: Phrase(
            "{app} はこの種類のリンクを受け付けなくなりました。{app} に個人用のリンクを依頼してください。",
        ),
        link_used: Phrase(
            "このリンクは、別のメールボックスの接続にすでに使用されています。リンクは 1 回のみ有効です。{app} に新しいリンクを依頼してください。",
        ),
        unavailable: Phrase(
            "メールゲートウェイで接続を保存できませんでした。1 分後にもう一度お試しください。",
        ),
        internal_error: Phrase(
            "システムで問題が発生しました。もう一度お試しください。問題が解決しない場合は、このメールゲートウェイの運用者にお問い合わせください。",
        ),
    },
    notices: NoticeMessages {
        another_site: Notice {
            title: "別のサイトからのリクエストです",
            text: "別のサイトのページが、お客様のメールボックスを接続しようとしました。何も接続されていません。接続するには、アプリから受け取ったリンクを開いてください。",
        },
        unavailable: Notice {
            title: "しばらくしてからもう一度お試しください",
            text: "メールゲートウェイは一時的に利用できません。データは失われていません。1 分ほど待ってから、このページを再読み込みしてください。",
        },
        internal_error: Notice {
            title: "問題が発生しました",
            text: "システムで問題が発生しました。元のアプリからもう一度お試しください。問題が解決しない場合は、このメールゲートウェイの運用者にお問い合わせください。",
        },
        no_such_link: Notice {
            title: "このリンクは機能しません",
            text: "新しいリンクに置き換えられたか、途中で切れている可能性があります。元のアプリに新しいリンクを依頼してください。",
        },
        session_invalid: Notice {
            title: "このリンクは無効になりました",
            text: "有効期限が切れたか、置き換えられたか、途中で切れています。元のアプリに新しいリンクを依頼してください。",
        },
        session_used: Notice {
            title: "このリンクは使用済みです",
            text: "このリンクではすでにメールボックスが接続されています。リンクは 1 回のみ有効です。別のメールボックスを接続するには、元のアプリに新しいリンクを依頼してください。",
        },
        session_required: Notice {
            title: "このリンクは使用できません",
            text: "このアプリは個人用のリンクのみを受け付けます。元のアプリに個人用のリンクを依頼してください。",
        },
        app_suspended: Notice {
            title: "現在、メールボックスを接続できません",
            text: "このメールゲートウェイでのこのアプリのアカウントは停止されています。お客様の操作に問題があったわけではありません。元のアプリにお知らせください。",
        },
        plugin_off: Notice {
            title: "このプロバイダーは利用できません",
            text: "リンクで指定されたメールプロバイダーは、ここでは使用できません。元のアプリに別のリンクを依頼してください。",
        },
        wrong_link: Notice {
            title: "このリンクには誤りがあります",
            text: "リンクが不完全か、途中で変更されています。元のアプリに別のリンクを依頼してください。",
        },
        not_set_up: Notice {
            title: "まだメールボックスを接続できません",
            text: "メールゲートウェイの設定が完了していません。有効なメールプロバイダーがありません。元のアプリの提供元にお知らせください。",
        },
        rate_limited: Notice {
            title: "しばらくしてからもう一度お試しください",
            text: "このページを開いた回数が 1 分間の上限を超えました。1 分ほど待ってから、再読み込みしてください。",
        },
        no_such_result: Notice {
            title: "ページが見つかりません",
            text: "アドレスが途中で切れているか、変更されています。元のアプリにお戻りください。",
        },
        invalid_callback: Notice {
            title: "このページは直接開けません",
            text: "このページはメールプロバイダーから戻るためのページですが、アドレスの一部が欠けています。元のアプリからもう一度やり直してください。",
        },
        another_browser: Notice {
            title: "最初に使用したブラウザーで続けてください",
            text: "別のブラウザーで開始されたか、このブラウザーで Cookie が許可されていません。何も接続されていません。使用するブラウザーでアプリのリンクをもう一度開き、すべての手順をそのブラウザーで行ってください。",
        },
        link_dead: Notice {
            title: "このリンクは無効になりました",
            text: "すでに使用されたか、10 分以上経過したか、新しいリンクに置き換えられています。今回は何も接続されていません。元のアプリに新しいリンクを依頼してください。",
        },
    },
    front: FrontMessages {
        gateway: Notice {
            title: "メールゲートウェイ",
            text: "アプリは、ユーザーが接続したメールボックスから、このゲートウェイを通じてメールを送信します。",
        },
        nothing: Notice {
            title: "このアドレスには何もありません",
            text: "アドレスが不完全な可能性があります。",
        },
        for_users: "メールボックスを接続するために、アプリからこのページに移動してきましたか? アプリに戻り、リンクをもう一度開いてください。",
        for_developers: "アプリを開発していますか?",
        documentation: "送信方法のドキュメントをご覧ください。",
    },
    or: " または ",
    the_provider: "プロバイダー",
    logo: Phrase("{app} のロゴ"),
    languages: "言語",
    help: "ヘルプ",
};
