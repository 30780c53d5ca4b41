"""Asks a node with redis-py as an application would. Prints `check<TAB>ok`, or what was seen instead."""
import sys

import redis

port, prefix = int(sys.argv[1]), sys.argv[2]
client = redis.Redis(host="127.0.0.1", port=port)


def said(client, command, *args):
    return client.execute_command(command, *args)


def grants():
    answers = [said(client, "ALLOW", prefix + "a") for _ in range(4)]
    return [answer[0] for answer in answers], [1, 1, 1, 0]


def repeats():
    answers = [said(client, "ALLOW", prefix + "r", "ID", "one") for _ in range(2)]
    return [answer[2] for answer in answers], [2, 2]


def pipeline():
    # MULTI and EXEC around all of it, unless the caller asks for none.
    pipe = client.pipeline()
    for i in range(100):
        pipe.execute_command("ALLOW", "%sp%d" % (prefix, i))
    return [answer[0] for answer in pipe.execute()], [1] * 100


def error():
    try:
        said(client, "FLUSHALL")
        return "an answer", "an error"
    except redis.ResponseError:
        return client.ping(), True


def cluster():
    members = redis.cluster.RedisCluster(host="127.0.0.1", port=port)
    # It routes by what COMMAND says about keys.
    answers = [said(members, "ALLOW", "%sc%d" % (prefix, i)) for i in range(50)]
    return [answer[0] for answer in answers], [1] * 50


CHECKS = {
    "handshake": lambda: (client.ping(), True),
    "echo": lambda: (client.echo(bytes(range(256))), bytes(range(256))),
    "grants": grants,
    "repeats": repeats,
    "pipeline": pipeline,
    "throttle": lambda: (said(client, "CL.THROTTLE", prefix + "t", 2, 3, 60), [0, 3, 2, -1, 20]),
    "error": error,
    "cluster": cluster,
}
for name, check in CHECKS.items():
    try:
        found, wanted = check()
        print(name, "ok" if found == wanted else "%r instead of %r" % (found, wanted), sep="\t")
    except Exception as problem:
        print(name, repr(problem).replace("\n", " "), sep="\t")
