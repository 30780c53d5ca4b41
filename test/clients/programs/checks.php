<?php
/** What both clients of PHP are asked. A program gives `say`, which sends a command and returns its answer, or throws. */

/** Prints `check<TAB>ok`, or what was seen instead. */
function run(array $checks): void
{
    foreach ($checks as $name => $check) {
        try {
            [$found, $wanted] = $check();
            $result = $found === $wanted ? 'ok' : json_encode($found) . ' instead of ' . json_encode($wanted);
        } catch (Throwable $problem) {
            $result = get_class($problem) . ': ' . str_replace("\n", ' ', $problem->getMessage());
        }
        echo "$name\t$result\n";
    }
}

function checksOf(callable $say, string $prefix): array
{
    $bytes = implode('', array_map('chr', range(0, 255)));
    $column = fn (array $answers, int $at): array => array_map(fn ($answer) => $answer[$at], $answers);
    $times = fn (int $count, callable $one): array => array_map($one, range(0, $count - 1));
    return [
        'echo' => fn () => [$say('ECHO', $bytes), $bytes],
        'grants' => fn () => [$column($times(4, fn () => $say('ALLOW', "{$prefix}a")), 0), [1, 1, 1, 0]],
        'repeats' => fn () => [
            $column($times(2, fn () => $say('ALLOW', "{$prefix}r", 'ID', 'one')), 2),
            [2, 2],
        ],
        'throttle' => fn () => [$say('CL.THROTTLE', "{$prefix}t", '2', '3', '60'), [0, 3, 2, -1, 20]],
    ];
}
