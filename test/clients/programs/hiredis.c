/* Asks a node with hiredis as an application would. Prints `check<TAB>ok`, or what was seen instead. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisContext *client;
static const char *prefix;

static void report(const char *check, int is_right, const redisReply *seen) {
  if (is_right)
    printf("%s\tok\n", check);
  else if (seen == NULL)
    printf("%s\t%s\n", check, client->errstr);
  else
    printf("%s\tan answer of type %d: %s\n", check, seen->type, seen->str == NULL ? "" : seen->str);
}

/* An array of five integers whose first and third are these; -1: any. */
static int is_decision(const redisReply *answer, long long granted, long long remaining) {
  if (answer == NULL || answer->type != REDIS_REPLY_ARRAY || answer->elements != 5) return 0;
  if (answer->element[0]->integer != granted) return 0;
  return remaining == -1 || answer->element[2]->integer == remaining;
}

int main(int count, char **values) {
  if (count < 3) return 64;
  client = redisConnect("127.0.0.1", atoi(values[1]));
  prefix = values[2];
  if (client == NULL || client->err) {
    printf("handshake\t%s\n", client == NULL ? "no memory" : client->errstr);
    return 0;
  }
  redisReply *answer = redisCommand(client, "PING");
  report("handshake", answer != NULL && answer->type == REDIS_REPLY_STATUS && strcmp(answer->str, "PONG") == 0, answer);

  char bytes[256];
  for (int i = 0; i < 256; i += 1) bytes[i] = (char)i;
  answer = redisCommand(client, "ECHO %b", bytes, sizeof bytes);
  report("echo", answer != NULL && answer->len == sizeof bytes && memcmp(answer->str, bytes, sizeof bytes) == 0, answer);

  int is_right = 1;
  for (int i = 0; i < 4; i += 1) {
    answer = redisCommand(client, "ALLOW %sa", prefix);
    is_right = is_right && is_decision(answer, i < 3, -1);
  }
  report("grants", is_right, answer);

  is_right = 1;
  for (int i = 0; i < 2; i += 1) {
    answer = redisCommand(client, "ALLOW %sr ID one", prefix);
    is_right = is_right && is_decision(answer, 1, 2);
  }
  report("repeats", is_right, answer);

  is_right = 1;
  for (int i = 0; i < 100; i += 1) redisAppendCommand(client, "ALLOW %sp%d", prefix, i);
  for (int i = 0; i < 100; i += 1) {
    void *next = NULL;
    is_right = redisGetReply(client, &next) == REDIS_OK && is_decision(next, 1, 2) && is_right;
    answer = next;
  }
  report("pipeline", is_right, answer);

  answer = redisCommand(client, "CL.THROTTLE %st 2 3 60", prefix);
  report("throttle", is_decision(answer, 0, 2) && answer->element[4]->integer == 20, answer);

  answer = redisCommand(client, "FLUSHALL");
  is_right = answer != NULL && answer->type == REDIS_REPLY_ERROR;
  answer = redisCommand(client, "PING");
  report("error", is_right && answer != NULL && answer->type == REDIS_REPLY_STATUS, answer);
  return 0;
}
