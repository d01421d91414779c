<?php
[, $user, $message] = $argv;
$headroom = null;
$unsure = false; // an attempt of this run may have counted the message
for ($attempt = 1; ; $attempt++) {
    try {
        if ($headroom === null) {
            $headroom = new Redis();
            $headroom->connect('127.0.0.1', 6747, 1.0, null, 0, 3.0); // seconds to connect, and to be answered
            $headroom->setOption(Redis::OPT_REPLY_LITERAL, true);     // without it every answer is just true
        }
        $headroom->clearLastError();
        $reply = $headroom->rawCommand('CONSUME', $user, "key=$message");
        $error = $headroom->getLastError() ?? '';
    } catch (RedisException $exception) {
        [$reply, $error] = [false, $exception->getMessage()];
    }
    if (is_string($reply)) break;
    $passes = preg_match('/^(UNKNOWN|UNAVAILABLE|OVERLOADED|DRAINING) /', $error);
    $answered = $passes || preg_match('/^[A-Z]+ /', $error);
    if ($attempt == 3 || $answered && !$passes) {
        fwrite(STDERR, "failed: $error\n");
        exit(1);
    }
    if (!$answered) $headroom = null;
    $unsure = $unsure || !$answered || str_starts_with($error, 'UNKNOWN ');
    usleep($attempt * 100000);
}
preg_match_all('/ ([a-z_]+)=(?:"((?:[^"\\\\]|\\\\.)*)"|(\S+))/', $reply, $found, PREG_SET_ORDER);
foreach ($found as $field) $fields[$field[1]] = preg_replace('/\\\\(.)/', '$1', $field[3] ?? $field[2]);
if (str_starts_with($reply, 'ALLOWED ')) echo isset($fields['replayed']) && !$unsure ? "sent before\n" : "send it\n";
echo $fields['banner'] ?? '', "\n";
