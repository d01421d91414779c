user=$1 message=$2 unsure= # unsure: an attempt of this run may have counted the message
for attempt in 1 2 3; do
    reply=$(timeout 3 redis-cli -h 127.0.0.1 -p 6747 CONSUME "$user" "key=$message" 2>&1)
    [[ $reply =~ ^(ALLOWED|BLOCKED)\  ]] && break
    passes='^(UNKNOWN|UNAVAILABLE|OVERLOADED|DRAINING) '
    if [[ $attempt -eq 3 || $reply =~ ^[[:upper:]]+\  && ! $reply =~ $passes ]]; then
        echo "failed: ${reply:-no answer within 3 s}" >&2
        exit 1
    fi
    [[ $reply =~ $passes && $reply != UNKNOWN\ * ]] || unsure=yes
    sleep "0.$attempt"
done
declare -A fields
rest=" ${reply#* }"
while [[ $rest =~ ^\ ([a-z_]+)=(\"(([^\"\\]|\\.)*)\"|([^ ]+))(.*)$ ]]; do
    value=${BASH_REMATCH[3]}${BASH_REMATCH[5]}
    fields[${BASH_REMATCH[1]}]=$(sed 's/\\\(.\)/\1/g' <<<"$value")
    rest=${BASH_REMATCH[6]}
done
[[ ${fields[replayed]-} && ! $unsure ]] && sent="sent before" || sent="send it"
[[ $reply == BLOCKED\ * ]] || echo "$sent"
echo "${fields[banner]-}"
