/*
 * The ceiling of script/bench: about the least that a server does which counts each message in PostgreSQL before it
 * answers.
 *
 * One thread reads requests and appends them to the array `waiting`. Each lane, a thread with one database connection,
 * takes what waits there, counts it with one statement and writes the replies.
 *
 * It is a yardstick and not a service: it has no plans, keys, receipts, deadlines or limits, and trusts its clients. If
 * something is not as the benchmark sends it, it ends, because a figure would be worth nothing then.
 *
 * usage: ceiling PORT CONNINFO
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <libpq-fe.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    /* Headroom's defaults. */
    LANES = 2,
    BATCH_MAXIMUM = 512,
    WAITING_MAXIMUM = 1 << 16,
    /* A power of two, so that positions may overflow. */
    IN_FLIGHT_MAXIMUM = 256,
    USER_TEXT_LENGTH = 36,
    REPLY_MAXIMUM = 256,
    /* In PostgreSQL's catalog. */
    INT4_TYPE = 23,
    UUID_TYPE = 2950,
    ARRAY_HEADER_LENGTH = 20
};

static const char CONSUME[] = "*2\r\n$7\r\nCONSUME\r\n$36\r\n";
static const char PING[] = "*1\r\n$4\r\nPING\r\n";

/* The ordinal connects counts with users, in whatever order the rows are updated. */
static const char STATEMENT[] =
    "update message_usage as usage set message_count = usage.message_count + batch.messages, updated_at = now() "
    "from unnest($1::uuid[], $2::int[]) with ordinality as batch (user_id, messages, ordinal) "
    "where usage.user_id = batch.user_id and usage.billing_period = '2026-11' and now() < usage.usable_until "
    "and usage.message_count + batch.messages <= usage.\"limit\" "
    "returning batch.ordinal, usage.message_count, usage.\"limit\"";

struct reply {
    char user[USER_TEXT_LENGTH];
    int used, limit;
    bool is_counted;
};

/* Two lanes may have requests of one connection. Each stores its replies here, and the one with the oldest writes all
 * that are due, so that a connection's replies are in the order of its requests. */
struct connection {
    int socket;
    size_t input_length;
    char input[1 << 14];
    /* Of the members below. */
    pthread_mutex_t lock;
    /* Numbers of requests; the reply of request n is at n % IN_FLIGHT_MAXIMUM. */
    unsigned received, answered;
    bool is_closed;
    struct reply replies[IN_FLIGHT_MAXIMUM];
};

struct request {
    struct connection *connection;
    unsigned position;
    unsigned char user[16];
    int used, limit;
};

struct lane {
    PGconn *database;
    struct request batch[BATCH_MAXIMUM];
    char users[ARRAY_HEADER_LENGTH + BATCH_MAXIMUM * 20];
    char messages[ARRAY_HEADER_LENGTH + BATCH_MAXIMUM * 8];
    char output[IN_FLIGHT_MAXIMUM * REPLY_MAXIMUM];
};

static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some_wait = PTHREAD_COND_INITIALIZER;
static struct request waiting[WAITING_MAXIMUM];
static int waiting_count;
/* Requests that the reader has not appended to `waiting` yet. */
static struct request read_requests[WAITING_MAXIMUM];
static int read_count;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "ceiling: %s: %s\n", what, why);
    exit(1);
}

/* Connections */

/* Unlocks a connection, and frees it if its client has closed it and no lane needs it any more. */
static void release(struct connection *connection)
{
    const bool is_over = connection->is_closed && connection->answered == connection->received;
    pthread_mutex_unlock(&connection->lock);
    if (is_over) {
        close(connection->socket);
        pthread_mutex_destroy(&connection->lock);
        free(connection);
    }
}

static void send_bytes(const struct connection *connection, const char *bytes, size_t length)
{
    /* The client may have closed the connection; the reader notices that. */
    if (write(connection->socket, bytes, length) < 0) {
        return;
    }
}

/* Writes the replies that are due, with the fields of Headroom's. The connection is locked. */
static void write_replies(struct lane *lane, struct connection *connection)
{
    size_t length = 0;
    for (; connection->answered != connection->received; connection->answered++) {
        struct reply *reply = &connection->replies[connection->answered % IN_FLIGHT_MAXIMUM];
        if (!reply->is_counted) {
            break;
        }
        reply->is_counted = false;
        length += (size_t)snprintf(lane->output + length, REPLY_MAXIMUM,
            "+ALLOWED user=%.*s plan=bench state=active tier=silent display=hidden used=%d limit=%d remaining=%d "
            "period=2026-11 resets=2026-12-01T00:00:00Z\r\n",
            USER_TEXT_LENGTH, reply->user, reply->used, reply->limit, reply->limit - reply->used);
    }
    if (length > 0) {
        send_bytes(connection, lane->output, length);
    }
}

/* Lanes */

static int take_batch(struct lane *lane)
{
    pthread_mutex_lock(&waiting_lock);
    while (waiting_count == 0) {
        pthread_cond_wait(&some_wait, &waiting_lock);
    }
    const int count = waiting_count < BATCH_MAXIMUM ? waiting_count : BATCH_MAXIMUM;
    waiting_count -= count;
    memcpy(lane->batch, waiting, (size_t)count * sizeof *waiting);
    memmove(waiting, waiting + count, (size_t)waiting_count * sizeof *waiting);
    if (waiting_count > 0) {
        pthread_cond_signal(&some_wait);
    }
    pthread_mutex_unlock(&waiting_lock);
    return count;
}

static int by_user(const void *first, const void *second)
{
    const struct request *a = *(struct request *const *)first, *b = *(struct request *const *)second;
    const int order = memcmp(a->user, b->user, sizeof a->user);
    /* Requests of one user stay in the order of their arrival. */
    return order != 0 ? order : (a > b) - (a < b);
}

static char *put_int(char *to, int value)
{
    const uint32_t bytes = htobe32((uint32_t)value);
    memcpy(to, &bytes, sizeof bytes);
    return to + sizeof bytes;
}

static int get_int(const char *from)
{
    uint32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    return (int)be32toh(bytes);
}

/* One dimension, no nulls, subscripts from 1. */
static void put_array_header(char *to, int type, int count)
{
    put_int(put_int(put_int(put_int(put_int(to, 1), 0), type), count), 1);
}

/* Counts a batch with one statement. One user's requests are one row; users ascend, so that lanes lock rows in the same
 * order. */
static void count_batch(struct lane *lane, int count)
{
    struct request *sorted[BATCH_MAXIMUM];
    /* Where each user's requests begin in `sorted`. */
    int firsts[BATCH_MAXIMUM + 1], users = 0;
    for (int i = 0; i < count; i++) {
        sorted[i] = &lane->batch[i];
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_user);
    for (int i = 0; i < count; i++) {
        if (i == 0 || memcmp(sorted[i - 1]->user, sorted[i]->user, sizeof sorted[i]->user) != 0) {
            firsts[users++] = i;
        }
    }
    firsts[users] = count;

    char *user = lane->users + ARRAY_HEADER_LENGTH, *messages = lane->messages + ARRAY_HEADER_LENGTH;
    put_array_header(lane->users, UUID_TYPE, users);
    put_array_header(lane->messages, INT4_TYPE, users);
    for (int i = 0; i < users; i++) {
        user = (char *)memcpy(put_int(user, 16), sorted[firsts[i]]->user, 16) + 16;
        messages = put_int(put_int(messages, 4), firsts[i + 1] - firsts[i]);
    }
    const char *values[] = {lane->users, lane->messages};
    const int lengths[] = {(int)(user - lane->users), (int)(messages - lane->messages)}, formats[] = {1, 1};
    PGresult *result = PQexecPrepared(lane->database, "count", 2, values, lengths, formats, 1);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        fail("the statement", PQerrorMessage(lane->database));
    }
    if (PQntuples(result) != users) {
        fail("the statement", "not every user was counted");
    }
    for (int row = 0; row < users; row++) {
        /* The low half of a bigint. */
        const int ordinal = get_int(PQgetvalue(result, row, 0) + 4);
        int used = get_int(PQgetvalue(result, row, 1)) - (firsts[ordinal] - firsts[ordinal - 1]);
        for (int i = firsts[ordinal - 1]; i < firsts[ordinal]; i++) {
            sorted[i]->used = ++used;
            sorted[i]->limit = get_int(PQgetvalue(result, row, 2));
        }
    }
    PQclear(result);
}

/* Requests that were read together are together in the batch, so that most connections get one write. */
static void answer_batch(struct lane *lane, int count)
{
    for (int i = 0; i < count;) {
        struct connection *connection = lane->batch[i].connection;
        pthread_mutex_lock(&connection->lock);
        for (; i < count && lane->batch[i].connection == connection; i++) {
            struct reply *reply = &connection->replies[lane->batch[i].position % IN_FLIGHT_MAXIMUM];
            reply->used = lane->batch[i].used;
            reply->limit = lane->batch[i].limit;
            reply->is_counted = true;
        }
        write_replies(lane, connection);
        release(connection);
    }
}

static void *run_lane(void *argument)
{
    struct lane *lane = argument;
    for (;;) {
        const int count = take_batch(lane);
        count_batch(lane, count);
        answer_batch(lane, count);
    }
    return NULL;
}

static void start_lane(const char *conninfo)
{
    struct lane *lane = calloc(1, sizeof *lane);
    lane->database = PQconnectdb(conninfo);
    if (PQstatus(lane->database) != CONNECTION_OK) {
        fail("connecting", PQerrorMessage(lane->database));
    }
    /* A plan for the arrays of one batch would be made for each batch, and might read the whole table. */
    PQclear(PQexec(lane->database, "set plan_cache_mode = force_generic_plan"));
    PGresult *result = PQprepare(lane->database, "count", STATEMENT, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        fail("preparing the statement", PQerrorMessage(lane->database));
    }
    PQclear(result);
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_lane, lane) != 0) {
        fail("a lane", "no thread");
    }
}

/* The reader */

static const size_t CONSUME_LENGTH = sizeof CONSUME - 1 + USER_TEXT_LENGTH + 2;

static bool is_consume(const char *text, size_t length)
{
    return length >= CONSUME_LENGTH && memcmp(text, CONSUME, sizeof CONSUME - 1) == 0;
}

/* The length of the first request, an array; 0 until it is complete. */
static size_t request_length(const char *text, size_t length)
{
    if (is_consume(text, length)) {
        return CONSUME_LENGTH;
    }
    /* Each word has a line with its length; words of the benchmark's requests contain no line ends. */
    const char *end = text;
    for (long lines = 1 + 2 * strtol(text + 1, NULL, 10); lines > 0; lines--) {
        end = memchr(end, '\n', length - (size_t)(end - text));
        if (end == NULL) {
            return 0;
        }
        end++;
    }
    return (size_t)(end - text);
}

static unsigned char hex_value(char digit)
{
    /* Letters have bit 6, and end in 1 to 6. */
    return (unsigned char)((digit & 15) + 9 * (digit >> 6));
}

static void take_request(struct connection *connection, const char *user)
{
    if (connection->received - connection->answered == IN_FLIGHT_MAXIMUM || read_count == WAITING_MAXIMUM) {
        fail("the reader", "too many requests are in flight");
    }
    struct request *request = &read_requests[read_count++];
    request->connection = connection;
    request->position = connection->received++;
    memcpy(connection->replies[request->position % IN_FLIGHT_MAXIMUM].user, user, USER_TEXT_LENGTH);
    for (int i = 0; i < 16; i++, user += 2) {
        user += *user == '-';
        request->user[i] = (unsigned char)(hex_value(user[0]) << 4 | hex_value(user[1]));
    }
}

/* Takes the complete requests out of a connection's input. The connection is locked. */
static void take_requests(struct connection *connection)
{
    size_t from = 0, length;
    while (from < connection->input_length
        && (length = request_length(connection->input + from, connection->input_length - from)) > 0) {
        const char *request = connection->input + from;
        from += length;
        if (is_consume(request, length)) {
            take_request(connection, request + sizeof CONSUME - 1);
        } else {
            /* The load generators send others only before the first CONSUME, so no reply is due before this one. */
            const bool is_ping = length == sizeof PING - 1 && memcmp(request, PING, length) == 0;
            const char *reply = is_ping ? "+PONG\r\n" : "-UNKNOWN the ceiling knows CONSUME and PING\r\n";
            send_bytes(connection, reply, strlen(reply));
        }
    }
    connection->input_length -= from;
    memmove(connection->input, connection->input + from, connection->input_length);
}

static void receive(int poll, struct connection *connection)
{
    const ssize_t count = read(connection->socket, connection->input + connection->input_length,
        sizeof connection->input - connection->input_length);
    if (count > 0) {
        connection->input_length += (size_t)count;
        pthread_mutex_lock(&connection->lock);
        take_requests(connection);
    } else {
        epoll_ctl(poll, EPOLL_CTL_DEL, connection->socket, NULL);
        pthread_mutex_lock(&connection->lock);
        connection->is_closed = true;
    }
    release(connection);
}

/* Once for all that was ready: a lane that began with the first request would have a small batch. */
static void append_to_waiting(void)
{
    pthread_mutex_lock(&waiting_lock);
    if (waiting_count + read_count > WAITING_MAXIMUM) {
        fail("the reader", "too many requests wait");
    }
    memcpy(waiting + waiting_count, read_requests, (size_t)read_count * sizeof *waiting);
    waiting_count += read_count;
    pthread_cond_signal(&some_wait);
    pthread_mutex_unlock(&waiting_lock);
    read_count = 0;
}

static void accept_connection(int poll, int listener)
{
    struct connection *connection = calloc(1, sizeof *connection);
    connection->socket = accept(listener, NULL, NULL);
    if (connection->socket < 0) {
        fail("accept", "no connection");
    }
    pthread_mutex_init(&connection->lock, NULL);
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(poll, EPOLL_CTL_ADD, connection->socket, &event);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: ceiling PORT CONNINFO\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < LANES; i++) {
        start_lane(argv[2]);
    }
    const int listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1024) != 0) {
        fail("listen", argv[1]);
    }
    struct epoll_event listening = {.events = EPOLLIN}, ready[256];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &listening);
    for (;;) {
        const int count = epoll_wait(poll, ready, 256, -1);
        for (int i = 0; i < count; i++) {
            if (ready[i].data.ptr == NULL) {
                accept_connection(poll, listener);
            } else {
                receive(poll, ready[i].data.ptr);
            }
        }
        if (read_count > 0) {
            append_to_waiting();
        }
    }
}
