/* The first process of a pod: holds its namespaces, reaps what is left to it, and ends when it is told. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number) { (void)number; _exit(0); }

static void reap(int number) {
    (void)number;
    while (waitpid(-1, 0, WNOHANG) > 0) {
    }
}

int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    signal(SIGCHLD, reap);
    for (;;) pause();
}
