<?php
/** Asks a node with Predis as an application would. */
require __DIR__ . '/checks.php';
require 'Predis/Autoloader.php';

Predis\Autoloader::register();
[, $port, $prefix] = $argv;
$client = new Predis\Client(['host' => '127.0.0.1', 'port' => (int) $port]);

$say = function (string ...$command) use ($client) {
    $answer = $client->executeRaw($command, $isError);
    if ($isError) {
        throw new RuntimeException($answer);
    }
    return $answer;
};

run([
    'handshake' => fn () => [(string) $client->ping(), 'PONG'],
    ...checksOf($say, $prefix),
    'pipeline' => function () use ($client, $prefix) {
        $answers = $client->transaction(['exec' => true], function ($all) use ($prefix) {
            for ($i = 0; $i < 100; $i++) {
                $all->executeCommand(new Predis\Command\RawCommand(['ALLOW', "{$prefix}p$i"]));
            }
        });
        return [array_map(fn ($answer) => $answer[0], $answers), array_fill(0, 100, 1)];
    },
    'error' => function () use ($client) {
        $client->executeRaw(['FLUSHALL'], $isError);
        return [[$isError, (string) $client->ping()], [true, 'PONG']];
    },
]);
