<?php
/** Asks a node with phpredis, the extension, as an application would. */
require __DIR__ . '/checks.php';

[, $port, $prefix] = $argv;
$client = new Redis();
$client->connect('127.0.0.1', (int) $port);

$say = function (string ...$command) use ($client) {
    $client->clearLastError();
    $answer = $client->rawCommand(...$command);
    if ($client->getLastError() !== null) {
        throw new RuntimeException($client->getLastError());
    }
    return $answer;
};

run([
    'handshake' => fn () => [$client->ping(), true],
    ...checksOf($say, $prefix),
    'pipeline' => function () use ($client, $prefix) {
        $pipe = $client->multi(Redis::PIPELINE);
        for ($i = 0; $i < 100; $i++) {
            $pipe->rawCommand('ALLOW', "{$prefix}p$i");
        }
        return [array_map(fn ($answer) => $answer[0], $pipe->exec()), array_fill(0, 100, 1)];
    },
    'error' => function () use ($client) {
        $client->rawCommand('FLUSHALL');
        return [[$client->getLastError() !== null, $client->ping()], [true, true]];
    },
    'cluster' => function () use ($port, $prefix) {
        $members = new RedisCluster(null, ["127.0.0.1:$port"]);
        $answers = [];
        for ($i = 0; $i < 50; $i++) {
            $answers[] = $members->rawCommand("{$prefix}c$i", 'ALLOW', "{$prefix}c$i")[0];
        }
        return [$answers, array_fill(0, 50, 1)];
    },
]);
