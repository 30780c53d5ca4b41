/*
 * Preloaded into a node: makes the syncs of LevelDB's logs slow or makes them fail, as the file named by
 * QUORATE_SYNC_FAULT currently says. "stall 300" delays each sync by 300 ms. "fail 2" fails the first two syncs of the
 * process with EIO, without syncing. Anything else, or no file: the disk works.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int failures;

static int is_log(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path);
  return length > 4 && memcmp(path + length - 4, ".log", 4) == 0;
}

/* Returns the number after `word`, or 0 if the file does not hold this order. */
static int ordered(const char *word, const char *orders) {
  size_t length = strlen(word);
  return strncmp(orders, word, length) == 0 ? atoi(orders + length) : 0;
}

static void read_orders(char *orders, size_t size) {
  orders[0] = 0;
  const char *path = getenv("QUORATE_SYNC_FAULT");
  int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t length = read(fd, orders, size - 1);
  orders[length > 0 ? length : 0] = 0;
  close(fd);
}

int fdatasync(int fd) {
  int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  if (is_log(fd)) {
    char orders[32];
    read_orders(orders, sizeof orders);
    int stall = ordered("stall ", orders);
    if (stall > 0) {
      struct timespec pause = {stall / 1000, stall % 1000 * 1000000L};
      nanosleep(&pause, NULL);
    }
    int fail = ordered("fail ", orders);
    if (fail > 0 && atomic_fetch_add(&failures, 1) < fail) {
      errno = EIO;
      return -1;
    }
  }
  return next(fd);
}
