/*
 * Shuts an ext4 file system down without writing anything back, as a power cut does: unsynced data is lost. From then
 * on every access to it fails until it is mounted again. Usage: power-cut <mount point>
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>

/* EXT4_IOC_SHUTDOWN, and its flag for "do not flush the journal". */
#define SHUTDOWN _IOR('X', 125, uint32_t)
#define NO_LOG_FLUSH 2

int main(int count, char **arguments) {
  uint32_t flags = NO_LOG_FLUSH;
  int fd = count == 2 ? open(arguments[1], O_RDONLY) : -1;
  if (fd >= 0 && ioctl(fd, SHUTDOWN, &flags) == 0) return 0;
  perror("power-cut");
  return 1;
}
