/* What the C library would ask of a host, answered here: no files, and the host's clock. */

#include <errno.h>
#include <sys/time.h>
#include <time.h>

static double clock_ms; /* what Date shows; moves only with the input of a step */

int clock_gettime(clockid_t id, struct timespec *out)
{
    out->tv_sec = (time_t)(clock_ms / 1000.0);
    out->tv_nsec = (long)((clock_ms - (double)out->tv_sec * 1000.0) * 1e6);
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    out->tv_sec = (time_t)(clock_ms / 1000.0);
    out->tv_usec = (suseconds_t)((clock_ms - (double)out->tv_sec * 1000.0) * 1e3);
    return 0;
}

/* The stdio of the engine's debug dumps ends in these four imports. They are never called in
   earnest; defining them under the names of the imports keeps the module free of imports. */
#define BAD_FILE 8

int32_t __imported_wasi_snapshot_preview1_fd_write(int32_t fd, int32_t iovs, int32_t n, int32_t out)
{
    return BAD_FILE;
}

int32_t __imported_wasi_snapshot_preview1_fd_seek(int32_t fd, int64_t at, int32_t whence, int32_t out)
{
    return BAD_FILE;
}

int32_t __imported_wasi_snapshot_preview1_fd_close(int32_t fd)
{
    return BAD_FILE;
}

int32_t __imported_wasi_snapshot_preview1_fd_fdstat_get(int32_t fd, int32_t out)
{
    return BAD_FILE;
}
