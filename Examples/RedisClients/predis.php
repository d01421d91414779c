<?php
require 'Predis/autoload.php'; // with Composer: vendor/autoload.php

[, $user, $message] = $argv;
$headroom = new Predis\Client(['host' => '127.0.0.1', 'port' => 6747, 'timeout' => 1, 'read_write_timeout' => 3]);
$unsure = false; // an attempt of this run may have counted the message
for ($attempt = 1; ; $attempt++) {
    try {
        $reply = (string) $headroom->executeRaw(['CONSUME', $user, "key=$message"], $isError);
        if (!$isError) break;
    } catch (Predis\Connection\ConnectionException $exception) {
        [$reply, $isError] = [$exception->getMessage(), false];
        $headroom->disconnect();
    }
    if ($attempt == 3 || $isError && !preg_match('/^(UNKNOWN|UNAVAILABLE|OVERLOADED|DRAINING) /', $reply)) {
        fwrite(STDERR, "failed: $reply\n");
        exit(1);
    }
    $unsure = $unsure || !$isError || str_starts_with($reply, 'UNKNOWN ');
    usleep($attempt * 100000);
}
preg_match_all('/ ([a-z_]+)=(?:"((?:[^"\\\\]|\\\\.)*)"|(\S+))/', $reply, $found, PREG_SET_ORDER);
foreach ($found as $field) $fields[$field[1]] = preg_replace('/\\\\(.)/', '$1', $field[3] ?? $field[2]);
if (str_starts_with($reply, 'ALLOWED ')) echo isset($fields['replayed']) && !$unsure ? "sent before\n" : "send it\n";
echo $fields['banner'] ?? '', "\n";
