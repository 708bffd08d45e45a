//! Japanese.

use super::{Letter, Texts};

pub(super) const TEXTS: Texts = Texts {
    names: &[
        ("鈴木様", "suzuki"),
        ("高橋様", "takahashi.k"),
        ("渡辺様", "watanabe"),
        ("中村様", "nakamura.m"),
        ("購買部御中", "koubai"),
    ],
    domains: &[
        "sakura-shoji.example",
        "example.com",
        "minato-kogyo.example",
        "example.org",
    ],
    business: &[
        Letter {
            subject: "ご注文 NW-{n} 発送のお知らせ",
            text: "{name}\n\nいつもお世話になっております。\nご注文 NW-{n} を本日発送いたしました。二営業日以内にお届けの予定です。\n\n{sender}",
        },
        Letter {
            subject: "請求書送付のご案内({n})",
            text: "{name}\n\nお世話になっております。\n請求書 {n} をお送りいたします。ご確認のほどよろしくお願いいたします。\n\n{sender}",
        },
        Letter {
            subject: "お打ち合わせ日程のご相談",
            text: "{name}\n\nお世話になっております。\n来週のお打ち合わせですが、水曜日の午前十時はいかがでしょうか。\n\n{sender}",
        },
        Letter {
            subject: "お見積書 {n} の件",
            text: "{name}\n\nお世話になっております。\nご依頼いただいたお見積書 {n} をお送りいたします。\n\n{sender}",
        },
    ],
    recruiting: &[Letter {
        subject: "応募受付のお知らせ C-{n}",
        text: "{name}\n\nご応募ありがとうございます。一週間以内にご連絡いたします。\n\n{sender}",
    }],
    file: "請求書_{n}.pdf",
};
