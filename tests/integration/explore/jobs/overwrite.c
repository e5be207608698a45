/* Overwrites a file in place, in two pieces, as a library in C does it. */

#include <fcntl.h>
#include <unistd.h>

int overwrite(const char *path, const char *content, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    if (file < 0)
        return -1;
    size_t half = size / 2;
    int failed = write(file, content, half) != (ssize_t)half || write(file, content + half, size - half) != (ssize_t)(size - half);
    return close(file) < 0 || failed ? -1 : 0;
}
