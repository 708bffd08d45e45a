<?php
declare(strict_types=1);

require 'vendor/autoload.php'; // composer require phpmailer/phpmailer

use PHPMailer\PHPMailer\Exception;
use PHPMailer\PHPMailer\PHPMailer;
use PHPMailer\PHPMailer\SMTP;

function setting(string $name, string $otherwise = ''): string
{
    return getenv($name) ?: ($otherwise ?: throw new RuntimeException("$name is not set"));
}

/** Sends the same bytes each time, so that the Idempotency-Key in them holds. */
function submit(PHPMailer $mail): void
{
    $refusal = null;
    $mail->SMTPDebug = SMTP::DEBUG_SERVER; // the only place where all replies can be seen
    $mail->Debugoutput = function (string $line) use (&$refusal): void {
        if (preg_match('/^SERVER -> CLIENT: (5\d\d .*)/', $line, $found)) {
            $refusal = $found[1];
        }
    };
    $mail->preSend(); // makes the bytes
    for ($attempt = 0; $attempt < 6; $attempt++) {
        try {
            $mail->postSend();
            return;
        } catch (Exception $failure) {
            if ($refusal !== null) {
                throw new RuntimeException("refused, don't submit it again: $refusal", 0, $failure);
            }
        } finally {
            $mail->smtpClose();
        }
        sleep(2 ** $attempt);
    }
    throw new RuntimeException('not taken yet: submit the same bytes again later');
}

$mail = new PHPMailer(true);
$mail->isSMTP();
$mail->Host = setting('MAILGATE_SMTP_HOST');
$mail->Port = (int) setting('MAILGATE_SMTP_PORT', '587');
$mail->SMTPSecure = PHPMailer::ENCRYPTION_STARTTLS;
$mail->SMTPAuth = true;
$mail->Username = setting('MAILGATE_APP_ID');
$mail->Password = setting('MAILGATE_SEND_KEY');
$mail->Timeout = 600;
$mail->CharSet = PHPMailer::CHARSET_UTF8;
$mail->setFrom(setting('MAILGATE_FROM')); // the address of a connected mailbox: it chooses the mailbox
$mail->addAddress('bob@example.com');
$mail->addCustomHeader('Idempotency-Key', bin2hex(random_bytes(16)));
$mail->Subject = 'Hello';
$mail->Body = 'It works.';
submit($mail);
echo "sent or stored\n";
