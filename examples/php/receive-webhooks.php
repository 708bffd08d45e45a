<?php // behind your web server; to try it: php -S 127.0.0.1:9000 receive-webhooks.php
declare(strict_types=1);

/** The event, or null when it isn't Mailgate that called. */
function verified(string $secret, string $body, string $id, string $timestamp, string $signatures): ?array
{
    $key = str_starts_with($secret, 'whsec_') ? base64_decode(substr($secret, 6), true) : $secret;
    if (!$key) {
        throw new RuntimeException('MAILGATE_WEBHOOK_SECRET is not set, or not whole');
    }
    if ($id === '' || !ctype_digit($timestamp) || abs(time() - (int) $timestamp) > 300) {
        return null;
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $signature) {
        if (hash_equals($expected, $signature)) {
            return json_decode($body, true, 512, JSON_THROW_ON_ERROR);
        }
    }
    return null;
}

$id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
$event = verified(
    (string) getenv('MAILGATE_WEBHOOK_SECRET'),
    file_get_contents('php://input'),
    $id,
    $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '',
    $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '',
);
if ($event !== null) {
    error_log("$id {$event['event']} " . json_encode($event['data']));
}
http_response_code($event === null ? 400 : 204);
