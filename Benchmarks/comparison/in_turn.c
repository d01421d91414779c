/*
 * A closed loop in which each user's turn comes once, in scattered order, before any user's turn comes again. The other
 * load generators draw users at random: some come twice before others come at all.
 *
 * Message i is for user FIRST + (i mod CYCLE) * STEP mod RANGE. Every reply must be +ALLOWED, or, if REFUSALS is 1, also
 * -OVERLOADED. Prints the seconds, the number of refused messages, and the latencies of the others as JSON.
 *
 * usage: in_turn PORT CONNECTIONS PIPELINE FIRST RANGE CYCLE MESSAGES REFUSALS
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PIPELINE_MAXIMUM = 64, REQUEST_LENGTH = 60 };

/* A prime, so that a cycle of all users of the range has each once if the range is no multiple of it. */
static const uint64_t STEP = 514229;
static const char ALLOWED[] = "+ALLOWED ", OVERLOADED[] = "-OVERLOADED ", PING[] = "*1\r\n$4\r\nPING\r\n";

struct connection {
    int socket;
    /* Numbers of requests; request n was sent at sent_at[n % PIPELINE_MAXIMUM]. */
    unsigned sent, answered;
    uint64_t sent_at[PIPELINE_MAXIMUM];
    size_t input_length;
    char input[1 << 16];
};

static uint64_t pipeline, first, range, cycle, messages;
static int may_refuse;
static uint64_t sent, allowed, refused;
static uint32_t *microseconds;

static void fail(const char *what)
{
    fprintf(stderr, "in_turn: %s\n", what);
    exit(1);
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* Sends as many requests as the pipeline has room for, in one write. */
static void fill_pipeline(struct connection *connection)
{
    char output[PIPELINE_MAXIMUM * REQUEST_LENGTH + 1];
    size_t length = 0;
    const uint64_t time = now();
    while (connection->sent - connection->answered < pipeline && sent < messages) {
        const uint64_t user = first + sent++ % cycle * STEP % range;
        connection->sent_at[connection->sent++ % PIPELINE_MAXIMUM] = time;
        length += (size_t)snprintf(output + length, REQUEST_LENGTH + 1,
            "*2\r\n$7\r\nCONSUME\r\n$36\r\n00000000-0000-4000-8000-%012llu\r\n", (unsigned long long)user);
    }
    if (length > 0 && write(connection->socket, output, length) != (ssize_t)length) {
        fail("the server does not read");
    }
}

static void receive(struct connection *connection)
{
    const ssize_t count = read(connection->socket, connection->input + connection->input_length,
        sizeof connection->input - connection->input_length);
    if (count <= 0) {
        fail("the server closed a connection");
    }
    connection->input_length += (size_t)count;
    const uint64_t time = now();
    char *reply = connection->input, *const end = connection->input + connection->input_length, *line_end;
    while ((line_end = memchr(reply, '\n', (size_t)(end - reply))) != NULL) {
        const uint64_t sent_at = connection->sent_at[connection->answered++ % PIPELINE_MAXIMUM];
        if (strncmp(reply, ALLOWED, sizeof ALLOWED - 1) == 0) {
            microseconds[allowed++] = (uint32_t)(time - sent_at);
        } else if (may_refuse && strncmp(reply, OVERLOADED, sizeof OVERLOADED - 1) == 0) {
            refused++;
        } else {
            *line_end = '\0';
            fail(reply);
        }
        reply = line_end + 1;
    }
    connection->input_length = (size_t)(end - reply);
    memmove(connection->input, reply, connection->input_length);
}

/* Returns after the server has answered a PING: the system accepts connections before the server does. */
static struct connection *connect_to(uint16_t port)
{
    struct connection *connection = calloc(1, sizeof *connection);
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char pong[16];
    connection->socket = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (connect(connection->socket, (const struct sockaddr *)&address, sizeof address) != 0
        || write(connection->socket, PING, sizeof PING - 1) < 0
        || read(connection->socket, pong, sizeof pong) <= 0 || *pong != '+') {
        fail("the server does not answer PING");
    }
    return connection;
}

static int ascending(const void *first_value, const void *second_value)
{
    const uint32_t a = *(const uint32_t *)first_value, b = *(const uint32_t *)second_value;
    return (a > b) - (a < b);
}

/* In milliseconds; `share` in tenths of a percent. */
static double percentile(uint64_t share)
{
    return microseconds[(allowed * share + 999) / 1000 - 1] / 1000.0;
}

int main(int argc, char **argv)
{
    if (argc != 9) {
        fprintf(stderr, "usage: in_turn PORT CONNECTIONS PIPELINE FIRST RANGE CYCLE MESSAGES REFUSALS\n");
        return 2;
    }
    uint64_t numbers[8];
    for (int i = 0; i < 8; i++) {
        numbers[i] = strtoull(argv[i + 1], NULL, 10);
    }
    const uint64_t connections = numbers[1];
    pipeline = numbers[2], first = numbers[3], range = numbers[4], cycle = numbers[5], messages = numbers[6];
    may_refuse = numbers[7] == 1;
    if (pipeline < 1 || pipeline > PIPELINE_MAXIMUM || range % STEP == 0 || cycle < 1 || cycle > range
        || messages < 1) {
        fail("bad arguments");
    }
    microseconds = malloc(messages * sizeof *microseconds);
    struct connection **all = calloc(connections, sizeof *all);
    struct epoll_event ready[256];
    const int poll = epoll_create1(0);
    for (uint64_t i = 0; i < connections; i++) {
        all[i] = connect_to((uint16_t)numbers[0]);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = all[i]};
        epoll_ctl(poll, EPOLL_CTL_ADD, all[i]->socket, &event);
    }
    const uint64_t began = now();
    for (uint64_t i = 0; i < connections; i++) {
        fill_pipeline(all[i]);
    }
    while (allowed + refused < messages) {
        const int count = epoll_wait(poll, ready, 256, -1);
        for (int i = 0; i < count; i++) {
            receive(ready[i].data.ptr);
            fill_pipeline(ready[i].data.ptr);
        }
    }
    const double seconds = (double)(now() - began) / 1e6;
    if (allowed == 0) {
        fail("every message was refused");
    }
    qsort(microseconds, allowed, sizeof *microseconds, ascending);
    printf("{\"seconds\": %.6f, \"refused\": %llu, ", seconds, (unsigned long long)refused);
    printf("\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p99_9_ms\": %.3f, \"max_ms\": %.3f}\n", percentile(500), percentile(990),
        percentile(999), percentile(1000));
    return 0;
}
