<?php
declare(strict_types=1);

function setting(string $name): string
{
    return getenv($name) ?: throw new RuntimeException("$name is not set");
}

function send(string $key, array $fields): array
{
    $body = json_encode(['pk' => setting('MAILGATE_PK')] + $fields, JSON_THROW_ON_ERROR);
    for ($attempt = 0; $attempt < 6; $attempt++) {
        $wait = 2 ** $attempt;
        $request = curl_init(setting('MAILGATE_URL') . '/send');
        curl_setopt_array($request, [
            CURLOPT_POSTFIELDS => $body,
            CURLOPT_HTTPHEADER => [
                'X-Send-Key: ' . setting('MAILGATE_SEND_KEY'),
                'Content-Type: application/json',
                "Idempotency-Key: $key",
            ],
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => 60,
            CURLOPT_HEADERFUNCTION => function ($request, string $line) use (&$wait): int {
                if (preg_match('/^retry-after:\s*(\d+)/i', $line, $found)) {
                    $wait = (int) $found[1];
                }
                return strlen($line);
            },
        ]);
        $answer = curl_exec($request); // false: no answer came, or half of one
        $status = curl_getinfo($request, CURLINFO_RESPONSE_CODE);
        if ($answer !== false && in_array($status, [200, 202], true)) {
            return json_decode($answer, true, 512, JSON_THROW_ON_ERROR);
        }
        if ($answer !== false && !in_array($status, [409, 429, 500, 503, 504], true)) {
            throw new RuntimeException("refused, don't ask again: $status $answer");
        }
        sleep($wait);
    }
    throw new RuntimeException("no answer: ask again later, with the same fields and the key $key");
}

// One key for each message: keep it with the message until there is an answer.
$key = bin2hex(random_bytes(16));
$answer = send($key, ['to' => 'bob@example.com', 'subject' => 'Hello', 'body' => 'It works.']);
// sent; or failed_temp, and Mailgate tries again by itself
echo "{$answer['status']} {$answer['log_id']}\n";
