/* The floor: what it costs to receive bytes and write them to a file, and nothing else.
 *
 *   floor receive PORT FILE       listens, writes what comes, prints CPU seconds and bytes
 *   floor send PORT FILE...       sends files to it with sendfile
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static struct sockaddr_in loopback(const char *port) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((unsigned short)atoi(port));
    return address;
}

/* Not ru_maxrss: that begins with the peak of whoever started us. */
static long peak_bytes(void) {
    char line[256];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &kilobytes) == 1)
            break;
    return kilobytes * 1024;
}

static void receive(const char *port, const char *path) {
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = loopback(port);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1))
        fail("listen");
    int connection = accept(listener, NULL, NULL);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    char *buffer = malloc(BUFFER_BYTES);
    if (connection < 0 || file < 0 || buffer == NULL)
        fail("accept");
    long long total = 0;
    ssize_t got;
    while ((got = recv(connection, buffer, BUFFER_BYTES, 0)) > 0) {
        for (ssize_t done = 0; done < got;) {
            ssize_t put = write(file, buffer + done, got - done);
            if (put < 0)
                fail("write");
            done += put;
        }
        total += got;
    }
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    double cpu_s = use.ru_utime.tv_sec + use.ru_utime.tv_usec / 1e6 + use.ru_stime.tv_sec +
                   use.ru_stime.tv_usec / 1e6;
    printf("%.6f %lld %ld\n", cpu_s, total, peak_bytes());
}

static void send_files(const char *port, int count, char **paths) {
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = loopback(port);
    if (connect(connection, (struct sockaddr *)&address, sizeof address))
        fail("connect");
    for (int i = 0; i < count; i++) {
        int file = open(paths[i], O_RDONLY);
        struct stat status;
        if (file < 0 || fstat(file, &status))
            fail(paths[i]);
        for (off_t offset = 0; offset < status.st_size;)
            if (sendfile(connection, file, &offset, status.st_size - offset) <= 0)
                fail("sendfile");
        close(file);
    }
}

int main(int count, char **arguments) {
    if (count == 4 && strcmp(arguments[1], "receive") == 0)
        receive(arguments[2], arguments[3]);
    else if (count > 3 && strcmp(arguments[1], "send") == 0)
        send_files(arguments[2], count - 3, arguments + 3);
    else
        return 2;
    return 0;
}
