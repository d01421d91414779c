package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var headroom = redis.NewClient(&redis.Options{
	Addr: "127.0.0.1:6747", DialTimeout: time.Second, ReadTimeout: 3 * time.Second, MaxRetries: -1,
})

// Also returns whether an attempt of this run may have counted the message.
func consume(ctx context.Context, user, message string) (string, bool, error) {
	unsure := false
	for attempt := 1; ; attempt++ {
		reply, err := headroom.Do(ctx, "CONSUME", user, "key="+message).Text()
		var answered redis.Error
		again := err != nil && ctx.Err() == nil
		lost := again
		if errors.As(err, &answered) {
			code, _, _ := strings.Cut(answered.Error(), " ")
			lost = code == "UNKNOWN"
			again = code == "UNKNOWN" || code == "UNAVAILABLE" || code == "OVERLOADED" || code == "DRAINING"
		}
		if !again || attempt == 3 {
			return reply, unsure, err
		}
		unsure = unsure || lost
		time.Sleep(time.Duration(attempt) * 100 * time.Millisecond)
	}
}

var field = regexp.MustCompile(` ([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))`)
var escaped = regexp.MustCompile(`\\(.)`)

func main() {
	reply, unsure, err := consume(context.Background(), os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
	fields := map[string]string{}
	for _, found := range field.FindAllStringSubmatch(reply, -1) {
		fields[found[1]] = escaped.ReplaceAllString(found[2], "$1") + found[3]
	}
	if strings.HasPrefix(reply, "ALLOWED ") && fields["replayed"] != "" && !unsure {
		fmt.Println("sent before")
	} else if strings.HasPrefix(reply, "ALLOWED ") {
		fmt.Println("send it")
	}
	fmt.Println(fields["banner"])
}
